//! Serde mirror of Runloop's REST API v1, one file a resource.
//!
//! No logic. Lenient on purpose: a field that nothing here needs is not
//! mirrored, an absent field and `null` are the same, and a word of an
//! enumeration stays a string, because the service adds words. Start reading
//! at [`devboxes`].

pub mod accounts;
pub mod blueprints;
pub mod devboxes;
pub mod executions;
pub mod files;
mod many;
mod number;
pub mod policies;
pub mod snapshots;
pub mod text;

#[cfg(test)]
mod tests;
