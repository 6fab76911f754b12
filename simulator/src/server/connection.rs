//! One client connection: what the layers may ask of it.
//!
//! Invariant: `in_flight` counts requests whose answer has not been written
//! to its end, so an idle close never cuts a reply.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// How a response asks to be replaced by what the connection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hangup {
    /// An orderly end (FIN) of the whole connection.
    Close,
    /// A reset (RST) of the whole connection: the client sees `ECONNRESET`.
    Reset,
    /// HTTP/2: RST_STREAM of this stream with this code; HTTP/1.1: as `Close`.
    ResetStream(u32),
    /// HTTP/2: GOAWAY with this code, after which every open stream ends
    /// unanswered. It says that this stream may have been acted on.
    /// HTTP/1.1: as `Close`.
    Goaway(u32),
    /// HTTP/2: GOAWAY that says that this stream was not acted on, while
    /// older ones are answered. HTTP/1.1: as `Close`.
    GoawayBefore,
}

/// Which requests an HTTP/2 connection still takes.
#[derive(Debug, Default)]
struct Gate {
    /// The newest stream that was handed to the routes.
    newest: u32,
    /// What GOAWAY names as the last stream: newer ones are not acted on.
    last: Option<u32>,
}

/// Shared between the socket, the service and the layers (as a request
/// extension).
#[derive(Debug)]
pub(crate) struct Connection {
    /// Unique within one simulator, from 1.
    pub(crate) id: u64,
    is_tls: AtomicBool,
    in_flight: AtomicUsize,
    reset_on_close: AtomicBool,
    /// 0: no limit.
    idle_limit_ms: AtomicU64,
    activity: Notify,
    is_retiring: AtomicBool,
    retired: Notify,
    gate: Mutex<Gate>,
}

impl Connection {
    pub(super) fn new(id: u64) -> Arc<Self> {
        Arc::new(Self {
            id,
            is_tls: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
            reset_on_close: AtomicBool::new(false),
            idle_limit_ms: AtomicU64::new(0),
            activity: Notify::new(),
            is_retiring: AtomicBool::new(false),
            retired: Notify::new(),
            gate: Mutex::default(),
        })
    }

    pub(super) fn set_tls(&self) {
        self.is_tls.store(true, Ordering::Relaxed);
    }

    /// Whether it is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        self.is_tls.load(Ordering::Relaxed)
    }

    /// From now on the connection ends when it has been idle this long.
    pub(crate) fn close_when_idle_for(&self, limit: Duration) {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
        self.idle_limit_ms.store(limit_ms, Ordering::Relaxed);
        self.activity.notify_one();
    }

    /// Marks the socket to be reset, not closed, when it is dropped.
    pub(super) fn reset_on_close(&self) {
        self.reset_on_close.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_reset_on_close(&self) -> bool {
        self.reset_on_close.load(Ordering::Relaxed)
    }

    /// What is being answered is still answered, then the connection ends;
    /// HTTP/2 says so by GOAWAY at once.
    pub(crate) fn retire(&self) {
        self.is_retiring.store(true, Ordering::Relaxed);
        self.retired.notify_one();
    }

    pub(super) fn is_retiring(&self) -> bool {
        self.is_retiring.load(Ordering::Relaxed)
    }

    /// Resolves when [`Connection::retire`] was called.
    pub(super) async fn retired(&self) {
        while !self.is_retiring() {
            self.retired.notified().await;
        }
    }

    /// Whether this stream may be acted on; from then on it counts as if it
    /// had been.
    pub(super) fn admit(&self, stream: u32) -> bool {
        let mut gate = self.gate();
        let is_open = gate.last.is_none_or(|last| stream <= last);
        if is_open {
            gate.newest = gate.newest.max(stream);
        }
        is_open
    }

    /// Lets GOAWAY name the stream before this one, if it is the newest, or
    /// else the newest: what was acted on is never said not to have been.
    pub(super) fn shut_before(&self, stream: u32) {
        let mut gate = self.gate();
        let before = if gate.newest > stream {
            gate.newest
        } else {
            stream.saturating_sub(2)
        };
        gate.last = Some(gate.last.map_or(before, |last| last.min(before)));
    }

    /// What GOAWAY is to name instead of the newest stream.
    pub(super) fn last_stream(&self) -> Option<u32> {
        self.gate().last
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request until the guard is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.activity.notify_one();
        InFlight(Arc::clone(self))
    }

    /// Resolves when the idle limit has passed with nothing in flight.
    pub(super) async fn idle_expired(&self) {
        loop {
            let limit_ms = self.idle_limit_ms.load(Ordering::Relaxed);
            if limit_ms == 0 || self.in_flight.load(Ordering::Relaxed) > 0 {
                self.activity.notified().await;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(limit_ms)) => return,
                () = self.activity.notified() => {}
            }
        }
    }
}

/// One request that is being answered.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Connection>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.activity.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::Connection;

    #[test]
    fn goaway_never_denies_a_stream_that_was_handed_on() {
        let connection = Connection::new(1);
        assert!(connection.admit(1) && connection.admit(3));
        connection.shut_before(3);
        assert_eq!(connection.last_stream(), Some(1));
        assert!(!connection.admit(5));

        let connection = Connection::new(2);
        assert!(connection.admit(1) && connection.admit(3));
        connection.shut_before(1);
        assert_eq!(connection.last_stream(), Some(3));

        let connection = Connection::new(3);
        assert!(connection.admit(1));
        connection.shut_before(1);
        assert_eq!(connection.last_stream(), Some(0));
    }
}
