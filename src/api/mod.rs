//! Builds requests and reads answers, one file a resource. Pure.
//!
//! It owns paths, query strings and the meaning of a status. It must not do
//! I/O, know a connection or know what Beachside asks for. Start reading at
//! [`answer`], which says what becomes of every status.

pub mod accounts;
pub mod answer;
pub mod blueprints;
pub mod devboxes;
pub mod echo;
pub mod executions;
pub mod files;
pub mod path;
pub mod policies;
pub mod secrets;
pub mod snapshots;

pub use answer::Context;
pub use secrets::Secrets;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::message::Body;

/// A body as JSON text.
///
/// # Errors
/// `INTERNAL`: every type here can be written as JSON.
pub fn json<T: Serialize>(value: &T) -> Result<Body> {
    json_of(value, 128)
}

/// A body as JSON text of about so many bytes, so that it need not grow.
///
/// # Errors
/// As [`json`].
pub fn json_of<T: Serialize>(value: &T, bytes: usize) -> Result<Body> {
    let mut text = Vec::with_capacity(bytes);
    serde_json::to_writer(&mut text, value)
        .map_err(|_| Error::internal("a request body could not be written as JSON"))?;
    Ok(Body::Json(text.into()))
}
