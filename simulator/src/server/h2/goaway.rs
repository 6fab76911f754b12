//! Lets GOAWAY name another last stream than the one that h2 would name.
//!
//! h2 always names the newest stream that arrived. A server that says "not
//! acted on" names an older one, so the number is changed on the way out.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::server::connection::Connection;

const HEADER_BYTES: usize = 9;
/// Where the number of the last stream ends in a GOAWAY frame.
const LAST_STREAM_END: usize = HEADER_BYTES + 4;
const GOAWAY: u8 = 7;

/// Where in the sequence of frames the written bytes have come to.
#[derive(Debug, Clone, Default)]
struct Place {
    /// Bytes of the frame so far, its header included.
    position: usize,
    /// Bytes of its payload, known with its header.
    length: usize,
    kind: u8,
}

impl Place {
    /// Passes over bytes and tells where (index in `bytes`) the first four
    /// bytes of a GOAWAY's payload are.
    fn pass(&mut self, bytes: &[u8], mut found: impl FnMut(usize, usize)) {
        let mut index = 0;
        while let Some(byte) = bytes.get(index) {
            let step = match self.position {
                0..=2 => {
                    self.length = (self.length << 8) | usize::from(*byte);
                    1
                }
                3 => {
                    self.kind = *byte;
                    1
                }
                4..HEADER_BYTES => 1,
                HEADER_BYTES..LAST_STREAM_END if self.kind == GOAWAY => {
                    found(index, self.position - HEADER_BYTES);
                    1
                }
                _ => (HEADER_BYTES + self.length - self.position).min(bytes.len() - index),
            };
            self.position += step;
            index += step;
            if self.position >= HEADER_BYTES + self.length && self.position >= HEADER_BYTES {
                *self = Self::default();
            }
        }
    }

    /// The same bytes with `last` as the stream that GOAWAY names.
    fn changed(&self, bytes: &[u8], last: u32) -> Vec<u8> {
        let mut changed = bytes.to_vec();
        let named = last.to_be_bytes();
        self.clone().pass(bytes, |index, position| {
            if let (Some(byte), Some(new)) = (changed.get_mut(index), named.get(position)) {
                *byte = *new;
            }
        });
        changed
    }
}

/// An HTTP/2 server's end of a connection.
pub(super) struct Frames<S> {
    inner: S,
    connection: Arc<Connection>,
    place: Place,
}

impl<S> Frames<S> {
    pub(super) fn new(inner: S, connection: Arc<Connection>) -> Self {
        Self {
            inner,
            connection,
            place: Place::default(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Frames<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Frames<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match self.connection.last_stream() {
            None => Pin::new(&mut self.inner).poll_write(context, bytes),
            Some(last) => {
                let changed = self.place.changed(bytes, last);
                Pin::new(&mut self.inner).poll_write(context, &changed)
            }
        };
        let count = ready!(written)?;
        let taken = bytes.get(..count).unwrap_or_default();
        self.place.pass(taken, |_index, _position| {});
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn only_goaway_changes_however_the_bytes_are_cut() {
        // A SETTINGS frame of 6 bytes, GOAWAY of 8, PING of 8, an empty SETTINGS.
        let mut sent = vec![0, 0, 6, 4, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1];
        sent.extend([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2]);
        sent.extend([0, 0, 8, 6, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7]);
        sent.extend([0, 0, 0, 4, 1, 0, 0, 0, 0]);
        sent.extend([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2]);
        let mut expected = sent.clone();
        expected[24..28].copy_from_slice(&[0, 0, 1, 3]);
        expected[67..71].copy_from_slice(&[0, 0, 1, 3]);
        for size in 1..=sent.len() {
            let mut place = Place::default();
            let mut passed = Vec::new();
            for piece in sent.chunks(size) {
                passed.extend(place.changed(piece, 0x0103));
                place.pass(piece, |_, _| {});
            }
            assert_eq!(passed, expected, "in pieces of {size}");
        }
    }
}
