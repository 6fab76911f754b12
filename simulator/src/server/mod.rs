//! Accepting connections and turning their requests over to the router.
//!
//! Owns sockets, TLS and the two versions of HTTP, and nothing else: no route,
//! no state. A handler (or a fault) that wants the connection to do something
//! instead of an answer puts [`Hangup`] into the response's extensions. Start
//! reading in `listener.rs`; `negotiate.rs` finds out what a client speaks.

mod connection;
mod h1;
mod h2;
mod listener;
mod negotiate;
mod socket;
mod tls;

pub(crate) use connection::{Connection, Hangup};
pub(crate) use listener::{Service, bind, serve};
pub use tls::{Certificate, TlsOptions};
pub(crate) use tls::{Protocol, Tls};
