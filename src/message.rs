//! One exchange with the provider, as data.
//!
//! [`api`](crate::api) builds a [`Request`] and reads a [`Response`];
//! [`transport`](crate::transport) carries them; neither needs to know the
//! other. Nothing here does I/O, and `Debug` never shows a body, because a
//! body may hold environment values, commands or file content.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::time::Instant;

use crate::observe::{Counter, Trace};

/// Largest JSON answer that is accepted, in bytes: a page of 100 views with
/// metadata fits with room to spare, an endless body does not.
pub const MAX_JSON_BYTES: usize = 16 * 1024 * 1024;

/// The two methods that the API uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Safe by definition.
    Get,
    /// Everything else, long polls included: the kind says whether it changes anything.
    Post,
}

/// What a call does to the provider, and so what may be done when it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Changes nothing; tried again by the transport.
    Read,
    /// Sent once, never again, never redirected.
    Mutation,
    /// Changes nothing and may be held by the server; the caller asks again itself.
    LongPoll,
    /// Changes nothing and answers with server-sent events; the caller reopens it itself.
    Stream,
    /// Changes nothing and answers with bytes, possibly many.
    Download,
}

/// What a request carries.
#[derive(Clone, Default)]
pub enum Body {
    /// Nothing; a POST then says `content-length: 0`.
    #[default]
    Empty,
    /// A JSON text.
    Json(Bytes),
    /// The upload form: the field `path`, then the part `file`.
    Multipart {
        /// Where the file goes in the guest.
        path: String,
        /// Its content.
        file: Bytes,
    },
}

/// A request, complete but for host, credentials and request id.
#[derive(Clone)]
pub struct Request {
    /// GET or POST.
    pub method: Method,
    /// Path and query, percent-encoded, beginning with `/v1/`.
    pub path: String,
    /// What is sent.
    pub body: Body,
    /// What it may change.
    pub kind: Kind,
    /// How long the server may take its time on purpose, before its answer or
    /// between two pieces of a stream. Added to the ordinary limit on silence.
    pub hold: Duration,
    /// Largest answer in bytes; a larger one fails with [`What::TooLarge`].
    pub max_body_bytes: usize,
    /// When the whole call ends at the latest, retries included.
    pub deadline: Option<Instant>,
    /// Counts the content of an upload or a download, for whoever is told of it.
    pub counter: Option<Counter>,
    /// Who is told of its attempts.
    pub trace: Option<Arc<Trace>>,
}

impl Request {
    /// A GET that changes nothing.
    #[must_use]
    pub fn get(path: String) -> Self {
        Self::new(Method::Get, path, Body::Empty, Kind::Read)
    }

    /// A POST that changes something.
    #[must_use]
    pub fn mutation(path: String, body: Body) -> Self {
        Self::new(Method::Post, path, body, Kind::Mutation)
    }

    /// A POST that changes nothing and is answered at once.
    #[must_use]
    pub fn read_by_post(path: String, body: Body) -> Self {
        Self::new(Method::Post, path, body, Kind::Read)
    }

    /// A POST that changes nothing and that the server holds for up to `hold`.
    #[must_use]
    pub fn long_poll(path: String, body: Body, hold: Duration) -> Self {
        Self {
            hold,
            ..Self::new(Method::Post, path, body, Kind::LongPoll)
        }
    }

    /// A POST that changes nothing and is answered with at most `max_bytes` bytes.
    #[must_use]
    pub fn download(path: String, body: Body, max_bytes: usize) -> Self {
        Self::new(Method::Post, path, body, Kind::Download).at_most(max_bytes)
    }

    /// A GET that is answered with server-sent events, with silences of up to `hold`.
    #[must_use]
    pub fn stream(path: String, hold: Duration) -> Self {
        Self {
            hold,
            ..Self::new(Method::Get, path, Body::Empty, Kind::Stream)
        }
    }

    fn new(method: Method, path: String, body: Body, kind: Kind) -> Self {
        Self {
            method,
            path,
            body,
            kind,
            hold: Duration::ZERO,
            max_body_bytes: MAX_JSON_BYTES,
            deadline: None,
            counter: None,
            trace: None,
        }
    }

    /// Ends the call at this time at the latest.
    #[must_use]
    pub fn by(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Has its content counted.
    #[must_use]
    pub fn counted(mut self, counter: Option<Counter>) -> Self {
        self.counter = counter;
        self
    }

    /// Lets the server hold the answer back for this long.
    #[must_use]
    pub fn held(mut self, hold: Duration) -> Self {
        self.hold = hold;
        self
    }

    /// Another limit on the answer than [`MAX_JSON_BYTES`].
    #[must_use]
    pub fn at_most(mut self, max_body_bytes: usize) -> Self {
        self.max_body_bytes = max_body_bytes;
        self
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body_bytes = match &self.body {
            Body::Empty => 0,
            Body::Json(json) => json.len(),
            Body::Multipart { file, .. } => file.len(),
        };
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("kind", &self.kind)
            .field("body_bytes", &body_bytes)
            .finish_non_exhaustive()
    }
}

/// What an answer says before its body.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Head {
    /// HTTP status.
    pub status: u16,
    /// The provider's `x-request-id`, else the one that was sent.
    pub request_id: Option<String>,
    /// Seconds from `retry-after-ms` or `retry-after`, in any of their forms.
    pub retry_after_seconds: Option<f64>,
    /// The media type without parameters, in lower case; empty when absent.
    pub content_type: String,
    /// Requests that were made for it, 1 without a retry.
    pub attempts: u32,
}

impl Head {
    /// Whether the status is 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A whole answer.
#[derive(Clone)]
pub struct Response {
    /// Status and the headers that matter.
    pub head: Head,
    /// The body, within the request's limit.
    pub body: Bytes,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("head", &self.head)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// An answer whose body is still open.
pub struct StreamResponse {
    /// Status and the headers that matter.
    pub head: Head,
    /// Pieces as they arrive. Dropping it ends the request.
    pub body: BoxStream<'static, Result<Bytes, Failure>>,
}

impl fmt::Debug for StreamResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamResponse")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

impl StreamResponse {
    /// Reads the rest, at most `max_bytes`; more is [`What::TooLarge`].
    ///
    /// # Errors
    /// What the transport fails with while it reads.
    pub async fn collect(mut self, max_bytes: usize) -> Result<Response, Failure> {
        let mut pieces: Vec<Bytes> = Vec::new();
        let mut total = 0_usize;
        while let Some(piece) = self.body.next().await {
            let piece = piece?;
            total = total.saturating_add(piece.len());
            if total > max_bytes {
                return Err(Failure::too_large(max_bytes));
            }
            pieces.push(piece);
        }
        let body = match pieces.len() {
            0 => Bytes::new(),
            1 => pieces.swap_remove(0),
            _ => pieces.concat().into(),
        };
        Ok(Response {
            head: self.head,
            body,
        })
    }
}

/// Whether the provider can have received the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// No byte of it left: there was no connection. A definite failure.
    No,
    /// It may have arrived, whole or in part.
    Maybe,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The address could not be resolved or reached, or the proxy refused.
    Connect,
    /// No connection within the time that one may take.
    ConnectTimeout,
    /// The proxy wants a user name and password, or others: trying again with
    /// the same may lock the user out.
    Proxy,
    /// The connection could not be secured.
    Tls,
    /// Silence for longer than allowed, or the deadline.
    Timeout,
    /// The connection broke.
    Reset,
    /// The answer is larger than allowed.
    TooLarge,
    /// No URL leads to the path: an id is empty or `..`, so nothing has it.
    Unaddressable,
    /// The request could not be built: a fault of ours.
    Build,
}

/// An exchange without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Whether the provider can have received it.
    pub sent: Sent,
    /// The kind.
    pub what: What,
    /// A sentence for people, without credentials and without the body.
    pub detail: String,
    /// Requests that were made.
    pub attempts: u32,
}

impl Failure {
    /// A failure of a first attempt.
    #[must_use]
    pub fn new(sent: Sent, what: What, detail: impl Into<String>) -> Self {
        Self {
            sent,
            what,
            detail: detail.into(),
            attempts: 1,
        }
    }

    /// The answer is larger than `max_bytes`.
    #[must_use]
    pub fn too_large(max_bytes: usize) -> Self {
        Self::new(
            Sent::Maybe,
            What::TooLarge,
            format!("the answer is larger than {max_bytes} bytes"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Transport;
    use crate::transport::scripted::{Scripted, Step};

    #[tokio::test]
    async fn a_stream_is_collected_up_to_its_limit_and_no_further() {
        let pieces = || {
            vec![
                Ok(Bytes::from_static(b"abc")),
                Ok(Bytes::from_static(b"de")),
            ]
        };
        let script = Scripted::new([
            Step::Stream(Head::default(), pieces()),
            Step::Stream(Head::default(), pieces()),
        ]);
        let request = Request::stream("/v1/x".into(), Duration::ZERO);
        let whole = script
            .stream(&request)
            .await
            .unwrap()
            .collect(5)
            .await
            .unwrap();
        assert_eq!(whole.body, "abcde");
        let failure = script
            .stream(&request)
            .await
            .unwrap()
            .collect(4)
            .await
            .unwrap_err();
        assert_eq!(failure.what, What::TooLarge);
    }

    #[test]
    fn v17_debug_shows_no_body() {
        let body = Body::Json(Bytes::from_static(b"{\"token\":\"s3cr3t\"}"));
        let shown = format!("{:?}", Request::mutation("/v1/devboxes".into(), body));
        assert!(!shown.contains("s3cr3t"), "{shown}");
        let response = Response {
            head: Head::default(),
            body: Bytes::from_static(b"s3cr3t"),
        };
        assert!(!format!("{response:?}").contains("s3cr3t"));
    }
}
