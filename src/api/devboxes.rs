//! Devboxes: create, read, wait, list, suspend, resume, shut down.

use std::time::Duration;

use super::json;
use super::path::{path, query};
use crate::error::Result;
use crate::message::{Body, Request};
use crate::wire::devboxes::{CreateDevbox, WaitForStatus};

/// Longest hold of a wait (certain: a constant of the official Python client).
pub const MAX_HOLD_SECONDS: u32 = 30;

/// Longest page (certain: the published specification).
pub const MAX_PAGE: u32 = 5000;

/// `POST /v1/devboxes`. No documented idempotency: sent once, found again by its metadata.
///
/// # Errors
/// `INTERNAL` when the body cannot be written.
pub fn create(body: &CreateDevbox<'_>) -> Result<Request> {
    Ok(Request::mutation("/v1/devboxes".to_owned(), json(body)?))
}

/// `GET /v1/devboxes/{id}`. A shut-down Devbox still answers 200.
#[must_use]
pub fn get(id: &str) -> Request {
    Request::get(path(["devboxes", id]))
}

/// `GET /v1/devboxes`: one page, optionally of one status.
#[must_use]
pub fn list(limit: u32, after: Option<&str>, status: Option<&str>) -> Request {
    let mut path = path(["devboxes"]);
    query(&mut path, "limit", &limit.min(MAX_PAGE).to_string());
    // Counting everything is work that nobody here looks at.
    query(&mut path, "include_total_count", "false");
    if let Some(status) = status {
        query(&mut path, "status", status);
    }
    if let Some(after) = after {
        query(&mut path, "starting_after", after);
    }
    Request::get(path)
}

/// `POST /v1/devboxes/{id}/wait_for_status`: 200 with the view once the status
/// is one of these, 408 when the hold is over.
///
/// # Errors
/// `INTERNAL` when the body cannot be written.
pub fn wait_for_status(id: &str, statuses: &[&str], hold_seconds: u32) -> Result<Request> {
    let timeout_seconds = hold_seconds.clamp(1, MAX_HOLD_SECONDS);
    let body = json(&WaitForStatus {
        statuses,
        timeout_seconds,
    })?;
    let hold = Duration::from_secs(timeout_seconds.into());
    Ok(Request::long_poll(
        path(["devboxes", id, "wait_for_status"]),
        body,
        hold,
    ))
}

/// `POST /v1/devboxes/{id}/suspend`. 400 where it is not running.
#[must_use]
pub fn suspend(id: &str) -> Request {
    Request::mutation(path(["devboxes", id, "suspend"]), Body::Empty)
}

/// `POST /v1/devboxes/{id}/resume`. 400 where it is not suspended.
#[must_use]
pub fn resume(id: &str) -> Request {
    Request::mutation(path(["devboxes", id, "resume"]), Body::Empty)
}

/// `POST /v1/devboxes/{id}/shutdown`. 409 while a snapshot is in progress; a repetition is 200.
#[must_use]
pub fn shutdown(id: &str) -> Request {
    Request::mutation(path(["devboxes", id, "shutdown"]), Body::Empty)
}
