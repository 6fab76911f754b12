//! Snapshots of a sandbox's disk.

use napi::Env;
use napi_derive::napi;
use serde::Deserialize;

use super::cancellation::Cancellation;
use super::connection::Connection;
use super::dispatcher::Promise;
use crate::adapter;
use crate::adapter::records::{CaptureRequest, FindRequest, ListSnapshotsRequest};

/// The request of a verb that needs to know the snapshot only.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfSnapshot {
    snapshot_id: String,
}

#[napi]
impl Connection {
    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn capture_snapshot<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: CaptureRequest, call| async move {
            connection.capture_snapshot(&request, &call).await
        };
        self.json(env, "captureSnapshot", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn wait_for_snapshot<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: OfSnapshot, call| async move {
            connection
                .wait_for_snapshot(&request.snapshot_id, &call)
                .await
        };
        self.json(env, "waitForSnapshot", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn inspect_snapshot<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: OfSnapshot, call| async move {
            connection
                .inspect_snapshot(&request.snapshot_id, &call)
                .await
        };
        self.json(env, "inspectSnapshot", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn list_snapshots<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: ListSnapshotsRequest, call| async move {
            connection.list_snapshots(&request, &call).await
        };
        self.json(env, "listSnapshots", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn delete_snapshot<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: OfSnapshot, call| async move {
            connection
                .delete_snapshot(&request.snapshot_id, &call)
                .await
        };
        self.json(env, "deleteSnapshot", &request, cancellation, verb)
    }

    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn find_snapshots<'env>(
        &self,
        env: &'env Env,
        request: String,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<Promise<'env>> {
        let verb = |connection: adapter::Connection, request: FindRequest, call| async move {
            connection.find_snapshots(&request, &call).await
        };
        self.json(env, "findSnapshots", &request, cancellation, verb)
    }
}
