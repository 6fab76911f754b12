//! The body of an answer, without a box and without a channel.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::events::Events;
use super::payload;

/// What an answer consists of.
pub(super) enum StubBody {
    /// Text that is ready.
    Whole(Option<Bytes>),
    /// A file: this many bytes of payload, from an offset.
    File { at: u64, end: u64 },
    /// A stream of events.
    Events(Box<Events>),
}

impl StubBody {
    pub(super) fn whole(text: impl Into<Bytes>) -> Self {
        Self::Whole(Some(text.into()))
    }
}

impl Body for StubBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match self.get_mut() {
            Self::Whole(text) => text.take(),
            Self::File { at, end } => (*at < *end).then(|| {
                let piece = payload::plain(*at, *end - *at);
                *at += piece.len() as u64;
                piece
            }),
            Self::Events(events) => match events.poll_next(context) {
                Poll::Ready(piece) => piece,
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(text) => text.is_none(),
            Self::File { at, end } => at == end,
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::File { at, end } => SizeHint::with_exact(end - at),
            Self::Events(_) => SizeHint::default(),
        }
    }
}
