//! What has arrived of a body, in one go.
//!
//! An HTTP/1.1 answer comes as one piece for each chunk of the wire, often a
//! line of text, and each is handed over by the task that owns the connection.
//! A task of its own takes them here and joins what is there, so that nothing
//! behind it has a turn for each. Must not know what a body means.

use std::pin::Pin;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use futures::stream::BoxStream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::message::Failure;

/// Pieces are joined up to this size and one piece of the wire.
const JOINED_BYTES: usize = 32 * 1024;

type Piece = Result<Bytes, Failure>;

/// The receiving end of a task that reads a body. Dropping it ends the task.
pub(super) struct Arrivals {
    from: mpsc::Receiver<Piece>,
    task: AbortHandle,
}

impl Arrivals {
    /// Spawns `read`, which may be ahead of the reader by two pieces: one that
    /// waits to be taken, and one that waits to be handed over.
    pub(super) fn spawn<F>(read: impl FnOnce(mpsc::Sender<Piece>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (to, from) = mpsc::channel(1);
        let task = tokio::spawn(read(to)).abort_handle();
        Self { from, task }
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stream for Arrivals {
    type Item = Piece;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Piece>> {
        self.from.poll_recv(context)
    }
}

/// What ended a body.
pub(super) type End<E> = Option<Result<(), E>>;

/// `first` and what has arrived behind it, and the end where that has too.
///
/// The connection's task hands over one piece a turn. So where there is none,
/// it gets one more turn before the body counts as quiet.
pub(super) async fn joined<E>(
    first: Bytes,
    body: &mut BoxStream<'static, Result<Bytes, E>>,
) -> (Bytes, End<E>) {
    let mut first = Some(first);
    let mut all = BytesMut::new();
    let mut is_quiet = false;
    let end = std::future::poll_fn(|context| {
        loop {
            if first.as_ref().map_or(all.len(), Bytes::len) >= JOINED_BYTES {
                return Poll::Ready(None);
            }
            match body.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(piece))) => {
                    is_quiet = false;
                    if let Some(first) = first.take() {
                        all.reserve(JOINED_BYTES + piece.len());
                        all.extend_from_slice(&first);
                    }
                    all.extend_from_slice(&piece);
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(Some(Ok(()))),
                Poll::Pending if is_quiet => return Poll::Ready(None),
                Poll::Pending => {
                    is_quiet = true;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    })
    .await;
    (first.unwrap_or_else(|| all.freeze()), end)
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};

    use super::*;

    fn pieces(pieces: &[Result<&'static str, u8>]) -> BoxStream<'static, Result<Bytes, u8>> {
        let pieces: Vec<_> = pieces.iter().map(|piece| piece.map(Bytes::from)).collect();
        futures::stream::iter(pieces).boxed()
    }

    #[tokio::test]
    async fn what_is_there_comes_in_one_piece_with_how_the_body_ended() {
        let mut body = pieces(&[Ok("b"), Ok(""), Ok("cd"), Err(7), Ok("never")]);
        let (bytes, end) = joined("a".into(), &mut body).await;
        assert_eq!((bytes, end), ("abcd".into(), Some(Err(7))));
        let (bytes, end) = joined("a".into(), &mut pieces(&[])).await;
        assert_eq!((bytes, end), ("a".into(), Some(Ok(()))));
    }

    #[tokio::test]
    async fn a_piece_alone_is_passed_on_without_a_copy() {
        let first = Bytes::from_static(b"alone");
        let (bytes, _) = joined(first.clone(), &mut pieces(&[])).await;
        assert_eq!(bytes.as_ptr(), first.as_ptr());
    }

    #[tokio::test]
    async fn more_than_the_bound_comes_in_several_pieces() {
        let text: &'static str = "x".repeat(1000).leak();
        let mut body = pieces(&[Ok(text); 200]);
        let mut total = 0;
        while let Some(Ok(first)) = body.next().await {
            let (bytes, _) = joined(first, &mut body).await;
            assert!(bytes.len() < JOINED_BYTES + text.len());
            total += bytes.len();
        }
        assert_eq!(total, 200_000);
    }

    #[tokio::test]
    async fn a_sender_that_hands_over_one_piece_a_turn_is_waited_for_and_a_quiet_one_is_not() {
        let (sender, receiver) = mpsc::channel(1);
        let mut body = futures::stream::unfold(receiver, |mut receiver| async {
            Some((Ok::<_, u8>(receiver.recv().await?), receiver))
        })
        .boxed();
        let sending = tokio::spawn(async move {
            for _ in 0..100 {
                sender.send(Bytes::from("piece")).await.unwrap();
            }
            std::future::pending::<()>().await;
        });
        let mut sizes = Vec::new();
        while sizes.iter().sum::<usize>() < 500 {
            let first = body.next().await.unwrap().unwrap();
            sizes.push(joined(first, &mut body).await.0.len());
        }
        assert!(sizes.len() < 10, "{sizes:?}");
        sending.abort();
    }

    #[tokio::test]
    async fn l8_dropping_the_receiving_end_ends_the_reading_task() {
        let (held, dropped) = tokio::sync::oneshot::channel::<()>();
        let arrivals = Arrivals::spawn(|_to| async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
        drop(arrivals);
        assert!(dropped.await.is_err());
    }

    #[tokio::test]
    async fn c1_a_reader_that_takes_nothing_stops_the_task_after_two_pieces() {
        let (told, mut said) = mpsc::unbounded_channel();
        let mut arrivals = Arrivals::spawn(|to| async move {
            for number in 0..10_u8 {
                told.send(number).unwrap();
                if to.send(Ok(Bytes::from(vec![number]))).await.is_err() {
                    return;
                }
            }
        });
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert_eq!(said.len(), 2);
        let all: Vec<u8> = arrivals
            .by_ref()
            .map(|piece| piece.unwrap()[0])
            .collect()
            .await;
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        assert!(said.recv().now_or_never().is_some());
    }
}
