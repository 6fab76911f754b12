//! Disk snapshots: capture, status, list, delete.

use super::json;
use super::path::{path, query};
use crate::error::Result;
use crate::message::{Body, Request};
use crate::wire::snapshots::CaptureSnapshot;

/// `POST /v1/devboxes/{id}/snapshot_disk_async`: answered at once. The other
/// call, which blocks until the capture is done, outlives common timeouts.
///
/// # Errors
/// `INTERNAL` when the body cannot be written.
pub fn capture(devbox_id: &str, body: &CaptureSnapshot<'_>) -> Result<Request> {
    Ok(Request::mutation(
        path(["devboxes", devbox_id, "snapshot_disk_async"]),
        json(body)?,
    ))
}

/// `GET /v1/devboxes/disk_snapshots/{id}/status`: the only view of one
/// snapshot. A deleted one answers 200 with `deleted`.
#[must_use]
pub fn status(id: &str) -> Request {
    Request::get(path(["devboxes", "disk_snapshots", id, "status"]))
}

/// `GET /v1/devboxes/disk_snapshots`: one page, optionally of one metadata value.
#[must_use]
pub fn list(limit: u32, after: Option<&str>, metadata: Option<(&str, &str)>) -> Request {
    let mut path = path(["devboxes", "disk_snapshots"]);
    query(&mut path, "limit", &limit.to_string());
    if let Some((key, value)) = metadata {
        query(&mut path, &format!("metadata[{key}]"), value);
    }
    if let Some(after) = after {
        query(&mut path, "starting_after", after);
    }
    Request::get(path)
}

/// `POST /v1/devboxes/disk_snapshots/{id}/delete`. 409 until it is complete.
#[must_use]
pub fn delete(id: &str) -> Request {
    Request::mutation(
        path(["devboxes", "disk_snapshots", id, "delete"]),
        Body::Empty,
    )
}
