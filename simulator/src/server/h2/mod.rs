//! HTTP/2 on one connection, by the h2 crate itself: hyper's server hides the
//! numbers of streams and cannot choose what GOAWAY says.
//!
//! `stream.rs` is one request; `goaway.rs` changes which stream GOAWAY names.

mod goaway;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use h2::Reason;
use h2::server::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::goaway::Frames;
use self::stream::Instead;
use super::connection::{Connection, Hangup};

/// Room for uploads; a client that sends slower than this wants less.
const WINDOW_BYTES: u32 = 1024 * 1024;

/// How long a connection that has said GOAWAY waits for the client to leave.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);

/// Serves the connection until the client leaves, the idle limit passes, a
/// request asks for its end or `stop` fires.
pub(super) async fn serve_connection<S>(
    stream: S,
    connection: Arc<Connection>,
    router: Router,
    max_concurrent_streams: u32,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let handshake = Builder::new()
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(2 * WINDOW_BYTES)
        .max_concurrent_streams(max_concurrent_streams)
        .handshake::<_, Bytes>(Frames::new(stream, Arc::clone(&connection)));
    let served = async {
        let mut accepting = handshake.await?;
        let mut answers = JoinSet::new();
        // From GOAWAY on: when to leave even if the client does not.
        let mut leaving = None;
        let mut is_retired = false;
        let mut unanswered = Vec::new();
        loop {
            tokio::select! {
                accepted = accepting.accept() => {
                    let Some(accepted) = accepted else { return Ok(()) };
                    let (request, mut respond) = accepted?;
                    if connection.admit(respond.stream_id().as_u32()) {
                        let (connection, router) = (Arc::clone(&connection), router.clone());
                        answers.spawn(stream::answer(request, respond, connection, router));
                    } else {
                        respond.send_reset(Reason::REFUSED_STREAM);
                    }
                }
                Some(answered) = answers.join_next() => {
                    if let Ok(Some(Instead { how, stream })) = answered {
                        match how {
                            Hangup::Goaway(code) => {
                                accepting.abrupt_shutdown(Reason::from(code));
                                leaving = Some(Instant::now() + LEAVE_LIMIT);
                            }
                            Hangup::GoawayBefore => connection.retire(),
                            Hangup::Close | Hangup::ResetStream(_) => return Ok(()),
                            Hangup::Reset => {
                                connection.reset_on_close();
                                return Ok(());
                            }
                        }
                        unanswered.push(stream);
                    }
                    if is_retired && answers.is_empty() {
                        leaving = Some(Instant::now() + LEAVE_LIMIT);
                    }
                }
                () = connection.idle_expired(), if leaving.is_none() => {
                    tracing::debug!(connection = connection.id, "idle connection closed");
                    accepting.graceful_shutdown();
                    leaving = Some(Instant::now() + LEAVE_LIMIT);
                }
                () = connection.retired(), if !is_retired => {
                    is_retired = true;
                    accepting.graceful_shutdown();
                    if answers.is_empty() {
                        leaving = Some(Instant::now() + LEAVE_LIMIT);
                    }
                }
                () = at(leaving) => return Ok(()),
            }
        }
    };
    tokio::select! {
        ended = served => if let Err::<(), h2::Error>(error) = ended {
            tracing::debug!(connection = connection.id, %error, "connection ended");
        },
        () = stop.cancelled() => {}
    }
}

/// Resolves then, or never.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
