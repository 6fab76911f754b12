//! Reading and writing files: bytes cross without a detour over text.

use napi::Env;
use napi::bindgen_prelude::{Object, Uint8ArraySlice};
use napi_derive::napi;

use super::arguments::{Arguments, copied};
use super::bytes::uint8_array;
use super::calls::{start, start_as};
use super::cancellation::{Cancellation, call};
use super::connection::Connection;
use super::dispatcher::Promise;
use super::tell::progress;
use crate::adapter::{ReadFileRequest, WriteFileRequest};

#[napi]
impl Connection {
    #[napi(
        catch_unwind,
        ts_args_type = "request: { readonly sandboxId: string, readonly path: string }, \
            cancellation?: Cancellation, listener?: number",
        ts_return_type = "Promise<Uint8Array>"
    )]
    pub fn read_file<'env>(
        &self,
        env: &'env Env,
        request: Object<'_>,
        cancellation: Option<&Cancellation>,
        listener: Option<u32>,
    ) -> napi::Result<Promise<'env>> {
        let connection = self.0.clone();
        let call = call(cancellation).telling(progress(env, listener)?);
        let begin = || {
            let arguments = Arguments::of(request);
            let request = ReadFileRequest {
                sandbox_id: arguments.text("sandboxId")?,
                path: arguments.text("path")?,
            };
            Ok(async move { connection.read_file(&request, &call).await })
        };
        start_as(env, begin, uint8_array)
    }

    /// `content` apart from the rest, because the loader checks its buffer.
    #[napi(
        catch_unwind,
        ts_args_type = "request: import('./client/dist/adapter.js').WriteFileRequest, \
            content: Uint8Array, cancellation?: Cancellation, listener?: number",
        ts_return_type = "Promise<void>"
    )]
    pub fn write_file<'env>(
        &self,
        env: &'env Env,
        request: Object<'_>,
        content: Uint8ArraySlice<'_>,
        cancellation: Option<&Cancellation>,
        listener: Option<u32>,
    ) -> napi::Result<Promise<'env>> {
        let connection = self.0.clone();
        let call = call(cancellation).telling(progress(env, listener)?);
        start(env, || {
            let arguments = Arguments::of(request);
            let request = WriteFileRequest {
                sandbox_id: arguments.text("sandboxId")?,
                path: arguments.text("path")?,
                content: copied(&content),
                mode: arguments.optional_whole("mode")?,
            };
            Ok(async move { connection.write_file(&request, &call).await })
        })
    }
}
