//! Running a command to its end. The hot path: values cross by position, because N-API makes a
//! string of every name.

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::{JsValue, Object, Uint8ArraySlice, Unknown};
use napi_derive::napi;

use super::arguments::{Arguments, copied, program, text};
use super::bytes::uint8_array;
use super::calls::start_as;
use super::cancellation::{Cancellation, call};
use super::connection::Connection;
use super::dispatcher::Promise;
use crate::adapter::{ExecRecord, ExecRequest};

#[napi]
impl Connection {
    /// `stdin` apart from the rest, because the loader checks its buffer; `options` where there
    /// are any. The loader makes a record of the fields.
    #[napi(
        catch_unwind,
        ts_args_type = "sandboxId: string, command: string | readonly string[], \
            options: Partial<import('./client/dist/adapter.js').ExecRequest> | undefined, \
            stdin: Uint8Array | undefined, cancellation?: Cancellation",
        ts_return_type = "Promise<[exitCode: number, \
            stdout: Uint8Array | undefined, stderr: Uint8Array | undefined, \
            stdoutBytes: number, stderrBytes: number, \
            stdoutTruncated: boolean, stderrTruncated: boolean, durationMs: number]>"
    )]
    pub fn exec<'env>(
        &self,
        env: &'env Env,
        sandbox_id: Unknown<'_>,
        command: Unknown<'_>,
        options: Option<Object<'_>>,
        stdin: Option<Uint8ArraySlice<'_>>,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let (connection, call) = (self.0.clone(), call(cancellation));
        let begin = || {
            let sandbox_id = text(&sandbox_id, "sandboxId")?;
            let mut request = ExecRequest::new(sandbox_id, program(&command, "command")?);
            request.stdin = stdin.as_ref().map(copied);
            if let Some(options) = options.map(Arguments::of) {
                request.cwd = options.optional_text("cwd")?;
                request.env = options.optional_texts_by_name("env")?.unwrap_or_default();
                request.timeout_seconds = options.optional_number("timeoutSeconds")?;
                request.max_output_bytes = options.optional_whole("maxOutputBytes")?;
            }
            Ok(async move { connection.exec(&request, &call).await })
        };
        start_as(env, begin, fields)
    }
}

fn fields<'env>(env: &'env Env, record: ExecRecord) -> napi::Result<Unknown<'env>> {
    let mut fields = env.create_array(8)?;
    fields.set(0, u32::from(record.exit_code))?;
    fields.set(1, output(env, record.stdout)?)?;
    fields.set(2, output(env, record.stderr)?)?;
    fields.set(3, record.stdout_bytes as f64)?;
    fields.set(4, record.stderr_bytes as f64)?;
    fields.set(5, record.stdout_truncated)?;
    fields.set(6, record.stderr_truncated)?;
    fields.set(7, record.duration_ms)?;
    Ok(fields.to_unknown())
}

/// Nothing for an empty stream: JavaScript makes an empty array for less.
fn output<'env>(env: &'env Env, bytes: Bytes) -> napi::Result<Option<Unknown<'env>>> {
    (!bytes.is_empty())
        .then(|| uint8_array(env, bytes))
        .transpose()
}
