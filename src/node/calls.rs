//! How a method of the addon runs a verb.

use std::future::Future;

use napi::Env;
use napi::bindgen_prelude::{ToNapiValue, Unknown};

use super::dispatcher::Promise;
use super::environment::Environment;
use super::{errors, panics};
use crate::error::Result;

/// Reads the arguments, then runs the future that `begin` makes of them and
/// returns its promise. Arguments that cannot be read throw at once; the
/// loader's `async` methods turn that into a rejection like any other.
pub(super) fn start<'env, T, F>(
    env: &'env Env,
    begin: impl FnOnce() -> Result<F>,
) -> napi::Result<Promise<'env>>
where
    T: ToNapiValue + Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    start_as(env, begin, |env, value| value.into_unknown(env))
}

/// As [`start`], for a result that needs a hand in becoming a JavaScript value.
pub(super) fn start_as<'env, T, F, V>(
    env: &'env Env,
    begin: impl FnOnce() -> Result<F>,
    view: V,
) -> napi::Result<Promise<'env>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
    V: for<'a> FnOnce(&'a Env, T) -> napi::Result<Unknown<'a>> + Send + 'static,
{
    let future = now(env, begin)?;
    Environment::of(env)?.dispatcher.run(future, view)
}

/// Runs synchronous code; an error or a panic throws.
pub(super) fn now<T>(env: &Env, run: impl FnOnce() -> Result<T>) -> napi::Result<T> {
    panics::caught(run).map_err(|error| errors::thrown(env, &error))
}
