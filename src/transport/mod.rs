//! The only room that does HTTP.
//!
//! It owns connections, TLS, proxies, timeouts, size limits and the retry of
//! reads. It must not know what a request means: that is
//! [`api`](crate::api)'s. A mutation is sent once, whatever happens. Start
//! reading at [`Transport`]; `http.rs` is the one file that names reqwest.

use futures::future::BoxFuture;

use crate::message::{Failure, Request, Response, StreamResponse};

mod arrived;
mod body;
mod causes;
mod headers;
mod http;
mod lanes;
mod observed;
mod opening;
mod retry;
#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod tests;
mod tls;

pub use http::{Http, Settings};
pub use observed::Observed;
pub use retry::Retrying;

/// Carries requests. One implementation does HTTP, one follows a script in tests.
pub trait Transport: Send + Sync + 'static {
    /// Sends one request and reads the whole answer, whatever its status.
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, Failure>>;

    /// Sends one request and hands out the body as it arrives, whatever the status.
    fn stream<'a>(&'a self, request: &'a Request)
    -> BoxFuture<'a, Result<StreamResponse, Failure>>;
}
