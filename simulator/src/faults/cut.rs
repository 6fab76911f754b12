//! Ending a body before its end.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};

/// What was sent before the break is flushed only while the body is waited for.
const FLUSH_TIME: Duration = Duration::from_millis(10);

/// The connection breaks here.
#[derive(Debug, thiserror::Error)]
#[error("a fault ends the body here")]
pub(super) struct CutHere;

/// How a body ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// As if that were all.
    Clean,
    /// With the connection; with the stream where that is HTTP/2's.
    Broken,
    /// Not at all: nothing more comes.
    Stalled,
}

/// The first `limit` bytes and that end; a body that is shorter stays whole.
pub(super) fn cut_after(
    pieces: impl Stream<Item = Bytes> + Send + 'static,
    limit: usize,
    end: End,
) -> impl Stream<Item = Result<Bytes, CutHere>> + Send + 'static {
    // Once it is cut the source is let go, not waited for.
    stream::unfold(Some((pieces.boxed(), limit)), move |state| async move {
        let (mut pieces, left) = state?;
        let piece = pieces.next().await?;
        if piece.len() < left {
            let left = left - piece.len();
            return Some((stream::iter([Ok(piece)]).boxed(), Some((pieces, left))));
        }
        Some((last(piece.slice(..left), end), None))
    })
    .flatten()
}

fn last(piece: Bytes, end: End) -> BoxStream<'static, Result<Bytes, CutHere>> {
    let piece = stream::iter([Ok(piece)]);
    match end {
        End::Clean => piece.boxed(),
        End::Stalled => piece.chain(stream::pending()).boxed(),
        End::Broken => piece
            .chain(stream::once(async {
                tokio::time::sleep(FLUSH_TIME).await;
                Err(CutHere)
            }))
            .boxed(),
    }
}
