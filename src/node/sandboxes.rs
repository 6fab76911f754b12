//! The life of a sandbox, finding it, and opening its ports.

use napi::Env;
use napi_derive::napi;
use serde::Deserialize;

use super::cancellation::Cancellation;
use super::connection::Connection;
use super::dispatcher::Promise;
use crate::adapter;
use crate::adapter::records::{
    CreateSandboxRequest, FindRequest, ListSandboxesRequest, WaitForSandboxRequest,
};

/// The request of a verb that needs to know the sandbox only.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfSandbox {
    pub(super) sandbox_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PreviewRequest {
    sandbox_id: String,
    port: u32,
}

#[napi]
impl Connection {
    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn create_sandbox<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: CreateSandboxRequest, call| async move {
            connection.create_sandbox(&request, &call).await
        };
        self.json(env, "createSandbox", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn wait_for_sandbox<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: WaitForSandboxRequest, call| async move {
            connection.wait_for_sandbox(&request, &call).await
        };
        self.json(env, "waitForSandbox", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn inspect_sandbox<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: OfSandbox, call| async move {
            connection.inspect_sandbox(&request.sandbox_id, &call).await
        };
        self.json(env, "inspectSandbox", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn suspend_sandbox<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: OfSandbox, call| async move {
            connection.suspend_sandbox(&request.sandbox_id, &call).await
        };
        self.json(env, "suspendSandbox", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn resume_sandbox<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: OfSandbox, call| async move {
            connection.resume_sandbox(&request.sandbox_id, &call).await
        };
        self.json(env, "resumeSandbox", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn destroy_sandbox<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: OfSandbox, call| async move {
            connection.destroy_sandbox(&request.sandbox_id, &call).await
        };
        self.json(env, "destroySandbox", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn list_sandboxes<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: ListSandboxesRequest, call| async move {
            connection.list_sandboxes(&request, &call).await
        };
        self.json(env, "listSandboxes", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn find_sandboxes<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: FindRequest, call| async move {
            connection.find_sandboxes(&request, &call).await
        };
        self.json(env, "findSandboxes", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn preview<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: PreviewRequest, call| async move {
            connection
                .preview(&request.sandbox_id, request.port, &call)
                .await
        };
        self.json(env, "preview", &request, cancellation, verb)
    }
}
