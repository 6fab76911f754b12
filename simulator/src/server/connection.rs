//! One client connection: what the layers may ask of it.
//!
//! Invariant: `in_flight` counts requests whose answer has not been written
//! to its end, so an idle close never cuts a reply.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// How a response asks for its connection to end without being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hangup {
    /// An orderly end (FIN).
    Close,
    /// A reset (RST): the client sees `ECONNRESET`.
    Reset,
}

/// Shared between the socket, the service and the layers (as a request
/// extension).
#[derive(Debug)]
pub(crate) struct Connection {
    /// Unique within one simulator, from 1.
    pub(crate) id: u64,
    in_flight: AtomicUsize,
    reset_on_close: AtomicBool,
    /// 0: no limit.
    idle_limit_ms: AtomicU64,
    activity: Notify,
}

impl Connection {
    pub(super) fn new(id: u64) -> Arc<Self> {
        Arc::new(Self {
            id,
            in_flight: AtomicUsize::new(0),
            reset_on_close: AtomicBool::new(false),
            idle_limit_ms: AtomicU64::new(0),
            activity: Notify::new(),
        })
    }

    /// From now on the connection ends when it has been idle this long.
    pub(crate) fn close_when_idle_for(&self, limit: Duration) {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
        self.idle_limit_ms.store(limit_ms, Ordering::Relaxed);
        self.activity.notify_one();
    }

    /// Marks the socket to be reset, not closed, when it is dropped.
    pub(crate) fn reset_on_close(&self) {
        self.reset_on_close.store(true, Ordering::Relaxed);
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

/// The socket, which resets itself on drop when its connection says so.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    connection: Arc<Connection>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, connection: Arc<Connection>) -> Self {
        Self { stream, connection }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.connection.reset_on_close.load(Ordering::Relaxed) {
            // A socket that refuses the option is closed in the orderly way.
            self.stream.set_zero_linger().unwrap_or_default();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
