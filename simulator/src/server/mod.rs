//! Accepting connections and turning their requests over to the router.
//!
//! Owns sockets and nothing else: no route, no state. A handler (or a fault)
//! that wants the connection to end instead of an answer puts [`Hangup`] into
//! the response's extensions. Start reading in `listener.rs`.

mod connection;
mod h1;
mod listener;

pub(crate) use connection::{Connection, Hangup};
pub(crate) use listener::{bind, serve};
