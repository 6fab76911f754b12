//! The verbs: what Beachside asks for, in terms of what Runloop has.
//!
//! It owns the order of requests, waits, deadlines, cancellation and what is
//! known of an outcome. It must not know HTTP (that is
//! [`transport`](crate::transport)), paths and statuses (that is
//! [`api`](crate::api)) or JavaScript. One file a verb; start reading at
//! [`Connection`].

mod asked;
mod call;
mod capabilities;
mod capture;
mod connection;
mod create;
mod cursor;
mod delete;
mod destroy;
mod exchange;
mod exec;
mod execution;
mod files;
mod guest_script;
mod image;
mod inspect;
mod list;
mod network;
mod pages;
mod poll;
mod preview;
pub mod processes;
pub mod records;
mod refused;
mod sandbox_view;
mod snapshot_list;
mod snapshot_view;
mod suspend;
#[cfg(test)]
mod testing;
mod transfer;
mod wait;

pub use call::Call;
pub use connection::Connection;
pub use exec::{ExecRecord, ExecRequest};
pub use files::{ReadFileRequest, WriteFileRequest};

pub use crate::shell::Program;
