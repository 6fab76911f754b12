//! A connection, as the loader sees it.
//!
//! Its verbs stand in the files beside this one. Most take and give JSON text;
//! commands and files cross value by value, because they are many or large.

use std::future::Future;

use napi::Env;
use napi_derive::napi;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::calls::{now, start};
use super::cancellation::{Cancellation, call};
use super::dispatcher::Promise;
use super::json;
use super::observer::Observer;
use crate::adapter::{self, Call};
use crate::config::Config;
use crate::error::Result;

/// A connection to one account.
#[napi]
pub struct Connection(pub(super) adapter::Connection);

/// Checks the settings and then the key. Both are JSON text; `null` counts as omitted.
///
/// `base_url` is the environment variable `RUNLOOP_BASE_URL` as JavaScript has
/// it: Bun's and a worker's `process.env` are not the process's environment.
#[napi(catch_unwind, ts_return_type = "Promise<Connection>")]
pub fn connect<'env>(
    env: &'env Env,
    credentials: String,
    config: String,
    base_url: Option<String>,
    cancellation: Option<&Cancellation>,
    observer: Option<&Observer>,
) -> napi::Result<Promise<'env>> {
    let call = call(cancellation);
    let observer = observer.map(Observer::shared);
    start(env, || {
        let credentials: Value = json::read("credentials", &credentials)?;
        let environment = |name: &str| base_url.clone().filter(|_| name == "RUNLOOP_BASE_URL");
        let config = json::read("config", &config)?;
        let config = Config::parse_in(&credentials, &config, environment)?;
        Ok(async move {
            adapter::Connection::connect_observed(config, observer, &call)
                .await
                .map(Connection)
        })
    })
}

#[napi]
impl Connection {
    /// The account's id.
    #[napi(getter, catch_unwind)]
    pub fn account(&self) -> String {
        self.0.account().to_owned()
    }

    /// What the connection can do, as JSON text.
    #[napi(getter, catch_unwind)]
    pub fn capabilities(&self) -> String {
        self.0.capabilities().to_string()
    }

    /// Ends the connection. Twice is fine.
    #[napi(catch_unwind)]
    pub fn close(&self, env: &Env) -> napi::Result<()> {
        now(env, || {
            self.0.close();
            Ok(())
        })
    }
}

impl Connection {
    /// Runs a verb whose request and result are JSON text.
    pub(super) fn json<'env, A, T, F>(
        &self,
        env: &'env Env,
        method: &'static str,
        request: &str,
        cancellation: Option<&Cancellation>,
        verb: impl FnOnce(adapter::Connection, A, Call) -> F,
    ) -> napi::Result<Promise<'env>>
    where
        A: DeserializeOwned,
        T: Serialize,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        start(env, || {
            let request = json::read(method, request)?;
            let result = verb(self.0.clone(), request, call(cancellation));
            Ok(async move { json::write(&result.await?) })
        })
    }
}
