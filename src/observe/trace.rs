//! Ties requests to the call that makes them, and tells of each.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use super::events::{Event, Observer, RequestDetails};
use super::route::route;

/// Attempts of this process so far.
static REQUESTS: AtomicU64 = AtomicU64::new(1);

/// What a request carries where somebody listens: who made it, and who is told.
pub struct Trace {
    observer: Arc<dyn Observer>,
    operation: &'static str,
    operation_id: Option<Arc<str>>,
    attempts: AtomicU32,
}

impl Trace {
    /// The trace of one request, all its attempts included.
    #[must_use]
    pub fn new(
        observer: Arc<dyn Observer>,
        operation: &'static str,
        operation_id: Option<Arc<str>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            observer,
            operation,
            operation_id,
            attempts: AtomicU32::new(0),
        })
    }

    /// One attempt begins. Dropping what this gives is its end.
    #[must_use]
    pub fn attempt(self: &Arc<Self>, method: &'static str, path: &str, sent_bytes: usize) -> Span {
        let path = path.split('?').next().unwrap_or_default();
        let span = Span {
            trace: Arc::clone(self),
            request: REQUESTS.fetch_add(1, Ordering::Relaxed),
            attempt: self.attempts.fetch_add(1, Ordering::Relaxed) + 1,
            method,
            route: route(path),
            path: path.to_owned(),
            started: Instant::now(),
            status: None,
            request_id: None,
            failure: Some("dropped"),
            received_bytes: 0,
        };
        self.observer.observe(&Event::RequestStart {
            time: now_ms(),
            request: span.details(),
            sent_bytes,
        });
        span
    }

    /// The attempt that has just ended is followed by another.
    pub fn retry(&self, method: &str, path: &str, reason: &str, delay: Duration) {
        let path = path.split('?').next().unwrap_or_default();
        self.observer.observe(&Event::Retry {
            time: now_ms(),
            request: RequestDetails {
                request: 0,
                operation: self.operation,
                operation_id: self.operation_id.as_deref(),
                method,
                route: &route(path),
                path,
                attempt: self.attempts.load(Ordering::Relaxed),
            },
            reason,
            delay_ms: milliseconds(delay),
        });
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

/// One attempt. Its end is told when it is dropped, however that comes about.
#[derive(Debug)]
pub struct Span {
    trace: Arc<Trace>,
    request: u64,
    attempt: u32,
    method: &'static str,
    route: String,
    path: String,
    started: Instant,
    status: Option<u16>,
    request_id: Option<String>,
    failure: Option<&'static str>,
    received_bytes: u64,
}

impl Span {
    /// The head of the answer is there.
    pub fn answered(&mut self, status: u16, request_id: Option<&str>) {
        self.status = Some(status);
        self.request_id = request_id.map(str::to_owned);
    }

    /// So much more of the body has arrived.
    pub fn received(&mut self, bytes: usize) {
        self.received_bytes += bytes as u64;
    }

    /// The answer is whole, or broke off in this way.
    pub fn ended(&mut self, failure: Option<&'static str>) {
        self.failure = failure;
    }

    fn details(&self) -> RequestDetails<'_> {
        RequestDetails {
            request: self.request,
            operation: self.trace.operation,
            operation_id: self.trace.operation_id.as_deref(),
            method: self.method,
            route: &self.route,
            path: &self.path,
            attempt: self.attempt,
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.trace.observer.observe(&Event::RequestEnd {
            time: now_ms(),
            request: self.details(),
            status: self.status,
            request_id: self.request_id.as_deref(),
            failure: self.failure,
            duration_ms: milliseconds(self.started.elapsed()),
            received_bytes: self.received_bytes,
        });
    }
}

/// Milliseconds since the epoch, for events.
#[must_use]
pub fn now_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    milliseconds(since.unwrap_or_default())
}

/// To a thousandth.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}
