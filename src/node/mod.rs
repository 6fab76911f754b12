//! The boundary to JavaScript: the only room that names N-API.
//!
//! It owns how a call crosses: reading arguments, running the future, settling
//! the promise, building errors. It must not know a verb's rules (that is
//! [`adapter`](crate::adapter)); a method here converts, calls and settles.
//! Everything that lives on a JavaScript thread is reached through
//! [`Environment`](environment::Environment), one for each environment (the
//! main thread and every worker). Start reading at [`calls`]; the reasons
//! stand in `docs/design/boundary.md`.

#![expect(
    unreachable_pub,
    reason = "napi's macro exports items to JavaScript, and asks for `pub`"
)]

mod arguments;
mod bytes;
mod calls;
mod cancellation;
mod commands;
mod connection;
mod dispatcher;
mod environment;
mod errors;
mod files;
mod json;
mod observer;
mod panics;
mod processes;
mod runtime;
mod sandboxes;
mod snapshots;
mod tell;
#[cfg(feature = "test-hooks")]
mod test_hooks;

use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;

use environment::Environment;

/// The version of this binary. The loader takes a binary of its own version only.
#[napi]
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs once for each environment that loads the addon.
#[napi(module_exports)]
pub fn init(_exports: Object<'_>, env: Env) -> napi::Result<()> {
    panics::silence();
    Environment::install(&env)
}

/// In a test build napi's macro exports nothing; this keeps the exports reached.
#[cfg(test)]
const _: () = {
    let _ = init;
    let _ = connection::connect;
    let _ = errors::register;
    let _ = tell::listen;
};
