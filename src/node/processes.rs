//! Live processes: starting and reopening them, and reading what they write.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::ToNapiValue;
use napi_derive::napi;
use serde::Serialize;

use super::calls::{now, start, start_as};
use super::cancellation::{Cancellation, call};
use super::connection::Connection;
use super::dispatcher::Promise;
use super::json;
use crate::adapter::Call;
use crate::adapter::processes::{self, OpenProcessRequest, Output, StartRequest, Which};
use crate::error::{Error, Result};

/// A command with live output.
#[napi]
pub struct Process(processes::Process);

/// One view of a process's output. Collecting it as garbage ends it.
#[napi]
pub struct OutputReader(Arc<processes::OutputReader>);

/// A piece of output.
#[napi(object, object_from_js = false)]
pub struct OutputPiece {
    /// `stdout` or `stderr`.
    #[napi(ts_type = "\"stdout\" | \"stderr\"")]
    pub stream: &'static str,
    pub text: String,
}

/// The service's offsets behind what was read.
#[napi(object, object_from_js = false)]
pub struct Offsets {
    pub stdout: f64,
    pub stderr: f64,
}

#[napi]
impl Connection {
    #[napi(catch_unwind, ts_return_type = "Promise<Process>")]
    pub fn start_process<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let (connection, call) = (self.0.clone(), call(cancellation));
        start(env, || {
            let request: StartRequest = json::read("startProcess", &request)?;
            Ok(async move { connection.start_process(&request, &call).await.map(Process) })
        })
    }

    #[napi(catch_unwind, ts_return_type = "Promise<Process>")]
    pub fn open_process<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let (connection, call) = (self.0.clone(), call(cancellation));
        start(env, || {
            let request: OpenProcessRequest = json::read("openProcess", &request)?;
            Ok(async move { connection.open_process(&request, &call).await.map(Process) })
        })
    }
}

#[napi]
impl Process {
    /// The provider's id.
    #[napi(getter, catch_unwind)]
    pub fn id(&self) -> String {
        self.0.id().to_owned()
    }

    /// A new view of `stdout`, `stderr` or `output` (both). Nothing is read before it is asked.
    #[napi(catch_unwind)]
    pub fn read(&self, env: &Env, which: String) -> napi::Result<OutputReader> {
        now(env, || {
            let which = match which.as_str() {
                "stdout" => Which::Stdout,
                "stderr" => Which::Stderr,
                "output" => Which::Both,
                _ => {
                    let message = "read() takes \"stdout\", \"stderr\" or \"output\"";
                    return Err(Error::invalid_argument(message));
                }
            };
            Ok(OutputReader(Arc::new(self.0.read(which))))
        })
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn wait<'env>(
        &self,
        env: &'env Env,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb =
            |process: processes::Process, call: Call| async move { process.wait(&call).await };
        self.json(env, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn status<'env>(
        &self,
        env: &'env Env,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb =
            |process: processes::Process, call: Call| async move { process.status(&call).await };
        self.json(env, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn kill<'env>(
        &self,
        env: &'env Env,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let (process, call) = (self.0.clone(), call(cancellation));
        start(env, || Ok(async move { process.kill(&call).await }))
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn terminate<'env>(
        &self,
        env: &'env Env,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb =
            |process: processes::Process, call: Call| async move { process.terminate(&call).await };
        self.json(env, cancellation, verb)
    }

    /// Stops everything of ours; the process goes on. Twice is fine.
    #[napi(catch_unwind)]
    pub fn detach(&self) {
        self.0.detach();
    }

    /// How far the views of this handle came.
    #[napi(catch_unwind)]
    pub fn offsets(&self) -> Offsets {
        // Exact below 2^53 bytes of output.
        #[expect(clippy::cast_precision_loss, reason = "nine petabytes of output")]
        let [stdout, stderr] = self.0.offsets().map(|offset| offset as f64);
        Offsets { stdout, stderr }
    }
}

impl Process {
    /// Runs a verb whose result is JSON text.
    fn json<'env, T, F>(
        &self,
        env: &'env Env,
        cancellation: Option<&Cancellation>,
        verb: impl FnOnce(processes::Process, Call) -> F,
    ) -> napi::Result<Promise<'env>>
    where
        T: Serialize,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        start(env, || {
            let result = verb(self.0.clone(), call(cancellation));
            Ok(async move { json::write(&result.await?) })
        })
    }
}

#[napi]
impl OutputReader {
    /// What has arrived since the last call, or what arrives next; `null` at the end.
    #[napi(catch_unwind, ts_return_type = "Promise<Array<OutputPiece> | null>")]
    pub fn next_batch<'env>(&self, env: &'env Env) -> napi::Result<Promise<'env>> {
        let reader = Arc::clone(&self.0);
        let begin = || Ok(async move { reader.next_batch().await });
        start_as(env, begin, |env, batch| {
            let pieces = batch.map(|pieces| {
                let pieces = pieces.into_iter().map(|piece| OutputPiece {
                    stream: match piece.output {
                        Output::Stdout => "stdout",
                        Output::Stderr => "stderr",
                    },
                    text: piece.text,
                });
                pieces.collect::<Vec<_>>()
            });
            pieces.into_unknown(env)
        })
    }

    /// Stops reading and settles pending calls with `null`, at once.
    #[napi(catch_unwind)]
    pub fn cancel(&self) {
        self.0.cancel();
    }
}
