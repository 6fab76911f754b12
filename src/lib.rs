//! Drives Runloop Devboxes through Runloop's REST API v1.
//!
//! The rooms, in the order in which a call passes them:
//!
//! - `node` (feature `node`): the only room that names N-API. Converts, calls, settles.
//! - [`adapter`]: the verbs. What Beachside asks for, in terms of what Runloop has.
//! - [`shell`]: quoting, the POSIX wrapper around a command, and its result record. Pure.
//! - [`sse`]: server-sent events to text at an offset. Pure.
//! - [`api`]: builds requests and reads responses, one file a resource. Pure.
//! - [`wire`]: serde mirror of the REST API. No logic.
//! - [`transport`]: the only room that does HTTP.
//! - [`config`], [`error`], [`observe`] (what a call tells of itself) and [`message`] (one exchange, as data):
//!   what everything may use.
//!
//! Start reading at [`adapter`].

pub mod adapter;
pub mod api;
pub mod config;
pub mod error;
pub mod message;
pub mod observe;
pub mod shell;
pub mod sse;
pub mod transport;
pub mod wire;

#[cfg(test)]
mod cases;
#[cfg(feature = "node")]
mod node;
