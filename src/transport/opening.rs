//! Whether a request has left for the wire, as far as its body tells.
//!
//! Where an HTTP/2 connection carries all the streams that its server allows, a
//! request waits on this side, and nothing says so. But its body is asked for
//! only when it has a stream. Until then it can be withdrawn for certain: the
//! server cannot act on a request without its body.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use crate::message::{Kind, Request};

use super::lanes::{Lane, Lanes};

/// How often a request that waits for a stream looks whether its connection is
/// full, which it is when nothing changed in between.
const LOOK_EVERY: Duration = Duration::from_millis(125);

const WAITS: u8 = 0;
const OPENED: u8 = 1;
const WITHDRAWN: u8 = 2;

/// How long a stream may take to be counted by the HTTP library.
const COUNTED_AFTER: Duration = Duration::from_millis(1);

/// How long a server's settings take after a connection is there. A busy
/// machine reads them late, and a call that comes too early may be refused.
const SHORTEST_TRIP: Duration = Duration::from_millis(250);
const LONGEST_TRIP: Duration = Duration::from_millis(500);

/// How long a stream of events may be unanswered on a connection that is there.
const LATE_EVENTS: Duration = Duration::from_secs(1);

/// What became of one request; its body and its sender share it.
#[derive(Debug, Default)]
pub(super) struct Opening {
    state: AtomicU8,
    opened: Notify,
}

/// How a request came to its stream.
pub(super) enum Started<T> {
    /// Its body was asked for.
    Opened,
    /// It was withdrawn, and another connection would have room.
    Elsewhere,
    /// It was answered, or failed.
    Ended(T),
}

/// The body was asked for after the request was withdrawn.
#[derive(Debug, thiserror::Error)]
#[error("the request was withdrawn")]
pub(super) struct Withdrawn;

impl Opening {
    /// The content as a body that says when it is asked for.
    pub(super) fn body(
        self: Arc<Self>,
        content: Bytes,
    ) -> impl Stream<Item = Result<Bytes, Withdrawn>> {
        stream::once(async move { self.leaves(OPENED).then_some(content).ok_or(Withdrawn) })
    }

    /// Whether nothing was sent and nothing will be.
    pub(super) fn withdraw(&self) -> bool {
        self.leaves(WITHDRAWN)
    }

    /// Ends when the body was asked for.
    async fn opened(&self) {
        // One waiter: a permit that came earlier is kept for it.
        self.opened.notified().await;
    }

    /// Waits until the request has its stream on `lane`, or would get one on another.
    pub(super) async fn started<C, T>(
        &self,
        lanes: &Lanes<C>,
        lane: &mut Lane<C>,
        is_http2: impl Fn() -> bool,
        mut sending: Pin<&mut impl Future<Output = T>>,
    ) -> Started<T> {
        let mut turn = None;
        if let Some(taken) = is_http2().then(|| lanes.turn(lane)).flatten() {
            let mut taken = pin!(taken);
            turn = loop {
                match timeout(LOOK_EVERY, &mut taken).await {
                    Ok(taken) => break Some(taken),
                    Err(_) if lanes.is_overfull(lane) && self.withdraw() => {
                        return Started::Elsewhere;
                    }
                    Err(_) => {}
                }
            };
        }
        let begun = Instant::now();
        let mut look_at = begun + LOOK_EVERY;
        let mut seen = 0;
        loop {
            tokio::select! {
                biased;
                outcome = &mut sending => return Started::Ended(outcome),
                () = self.opened() => break,
                () = sleep_until(look_at) => {
                    if is_http2() && lanes.learn(lane, &mut seen) && self.withdraw() {
                        return Started::Elsewhere;
                    }
                    look_at = Instant::now() + LOOK_EVERY;
                }
            }
        }
        lane.opened();
        if let Some(turn) = turn {
            // Until the connection's task has counted the stream.
            if let Ok(outcome) = timeout(COUNTED_AFTER, &mut sending).await {
                return Started::Ended(outcome);
            }
            lanes.carries(lane);
            drop(turn);
        }
        if !lane.is_settled() {
            // To connect took two round trips at least; the settings take one.
            let trip = begun.elapsed().clamp(SHORTEST_TRIP, LONGEST_TRIP);
            match timeout(trip, sending).await {
                Ok(outcome) => return Started::Ended(outcome),
                Err(_) => lane.settled(),
            }
        }
        Started::Opened
    }

    fn leaves(&self, to: u8) -> bool {
        let moved = self
            .state
            .compare_exchange(WAITS, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if moved && to == OPENED {
            self.opened.notify_one();
        }
        moved
    }
}

/// Waits for the answer to a request without a body. An unanswered stream of
/// events, which may be asked for again, leaves a connection that is known to
/// be overfull.
pub(super) async fn answered<C, T>(
    lanes: &Lanes<C>,
    lane: &Lane<C>,
    request: &Request,
    is_http2: impl Fn() -> bool,
    mut sending: Pin<&mut impl Future<Output = T>>,
) -> Started<T> {
    if request.kind != Kind::Stream {
        return Started::Ended(sending.await);
    }
    let begun = Instant::now();
    loop {
        match timeout(LOOK_EVERY, &mut sending).await {
            Ok(outcome) => return Started::Ended(outcome),
            Err(_) if is_http2() && lanes.is_overfull(lane) => return Started::Elsewhere,
            // Its answer may wait for a first event, and nothing else tells.
            Err(_) if begun.elapsed() > LATE_EVENTS => lane.settled(),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn a_body_that_was_asked_for_cannot_be_withdrawn() {
        let opening = Arc::new(Opening::default());
        let mut body = opening.clone().body("content".into()).boxed();
        assert_eq!(body.next().await.unwrap().unwrap(), "content");
        assert!(!opening.withdraw());
        opening.opened().await;
        assert!(body.next().await.is_none());
    }

    #[tokio::test]
    async fn r29_a_withdrawn_request_gives_nothing_away() {
        let opening = Arc::new(Opening::default());
        let mut body = opening.clone().body("content".into()).boxed();
        assert!(opening.withdraw());
        assert!(body.next().await.unwrap().is_err());
    }
}
