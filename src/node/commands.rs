//! Running a command to its end. The hot path: values cross one by one.

use napi::Env;
use napi::bindgen_prelude::{JsObjectValue, JsValue, Object, Uint8ArraySlice, Unknown};
use napi_derive::napi;

use super::arguments::{Arguments, copied};
use super::bytes::uint8_array;
use super::calls::start_as;
use super::cancellation::{Cancellation, call};
use super::connection::Connection;
use super::dispatcher::Promise;
use crate::adapter::{ExecRecord, ExecRequest};

#[napi]
impl Connection {
    /// `stdin` apart from the rest, because the loader checks its buffer.
    #[napi(
        catch_unwind,
        ts_args_type = "request: import('./client/dist/adapter.js').ExecRequest, \
            stdin: Uint8Array | undefined, cancellation?: Cancellation",
        ts_return_type = "Promise<import('./client/dist/adapter.js').ExecRecord>"
    )]
    pub fn exec<'env>(
        &self,
        env: &'env Env,
        request: Object<'_>,
        stdin: Option<Uint8ArraySlice<'_>>,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let (connection, call) = (self.0.clone(), call(cancellation));
        let begin = || {
            let arguments = Arguments::of(request);
            let request = ExecRequest {
                sandbox_id: arguments.text("sandboxId")?,
                command: arguments.program("command")?,
                cwd: arguments.optional_text("cwd")?,
                env: arguments.optional_texts_by_name("env")?.unwrap_or_default(),
                stdin: stdin.as_ref().map(copied),
                timeout_seconds: arguments.optional_number("timeoutSeconds")?,
                max_output_bytes: arguments.optional_whole("maxOutputBytes")?,
            };
            Ok(async move { connection.exec(&request, &call).await })
        };
        start_as(env, begin, exec_record)
    }
}

fn exec_record<'env>(env: &'env Env, record: ExecRecord) -> napi::Result<Unknown<'env>> {
    let mut object = Object::new(env)?;
    object.set_named_property("exitCode", u32::from(record.exit_code))?;
    object.set_named_property("stdout", uint8_array(env, record.stdout)?)?;
    object.set_named_property("stderr", uint8_array(env, record.stderr)?)?;
    object.set_named_property("stdoutBytes", record.stdout_bytes as f64)?;
    object.set_named_property("stderrBytes", record.stderr_bytes as f64)?;
    object.set_named_property("stdoutTruncated", record.stdout_truncated)?;
    object.set_named_property("stderrTruncated", record.stderr_truncated)?;
    object.set_named_property("durationMs", record.duration_ms)?;
    Ok(object.to_unknown())
}
