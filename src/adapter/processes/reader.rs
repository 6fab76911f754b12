//! One view of a process's output.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Inner;
use super::buffer::{Buffer, Taken};
use super::follow::{Follow, Progress, until_stopped};
use super::records::{OutputPiece, Which};
use super::tail::Received;
use super::tally::Counted;
use crate::adapter::Call;
use crate::error::Result;
use crate::sse::{Limits, OutputDecoder};

/// Reads one or both streams of a process from the handle's offsets on.
///
/// Each reader has connections of its own, which it opens with the first call
/// of [`next_batch`](Self::next_batch): readers do not share what they read,
/// and one that is slow holds no other back. Dropping it cancels it.
pub struct OutputReader {
    inner: Arc<Inner>,
    which: Which,
    stop: CancellationToken,
    /// Whose turn it is: calls are answered in the order in which they came.
    turn: tokio::sync::Mutex<Reading>,
}

/// How far a reader is.
enum Reading {
    /// Not begun. Counted all the same: its owner means to read.
    Waiting(Vec<Counted>),
    Begun(Arc<Buffer>),
}

impl fmt::Debug for OutputReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputReader")
            .field("which", &self.which)
            .finish_non_exhaustive()
    }
}

impl OutputReader {
    pub(super) fn new(inner: Arc<Inner>, which: Which) -> Self {
        let stop = inner.stop.child_token();
        let counted = which
            .outputs()
            .iter()
            .map(|_| inner.tally.count())
            .collect();
        let turn = tokio::sync::Mutex::new(Reading::Waiting(counted));
        Self {
            inner,
            which,
            stop,
            turn,
        }
    }

    /// Everything that has arrived since the last call, or what arrives next;
    /// `None` at the end, after [`cancel`](Self::cancel) and after a detach.
    ///
    /// # Errors
    /// Once, behind all text: `NOT_FOUND` where the process is gone, `CLOSED`,
    /// `UNAVAILABLE` after a minute in which the service was out of reach,
    /// `PROTOCOL` where it sends no output stream.
    pub async fn next_batch(&self) -> Result<Option<Vec<OutputPiece>>> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Ok(None),
            taken = self.take() => {
                let Some(Taken { pieces, positions }) = taken? else { return Ok(None) };
                self.inner.advance(self.which, positions);
                Ok(Some(pieces))
            }
        }
    }

    async fn take(&self) -> Result<Option<Taken>> {
        let mut turn = self.turn.lock().await;
        if let Reading::Waiting(counted) = &mut *turn {
            if let Some(error) = self
                .inner
                .connection
                .stopped(&Call::default(), "process_read")
            {
                return Err(error);
            }
            let counted = std::mem::take(counted);
            *turn = Reading::Begun(self.begin(counted));
        }
        match &*turn {
            Reading::Begun(buffer) => buffer.take().await,
            Reading::Waiting(_) => Ok(None),
        }
    }

    fn begin(&self, counted: Vec<Counted>) -> Arc<Buffer> {
        let inner = &self.inner;
        let outputs = self.which.outputs();
        let buffer = Arc::new(Buffer::new(outputs.len(), inner.from));
        for (output, counted) in outputs.iter().zip(counted) {
            let offset = inner.from(*output);
            let follow = Follow {
                connection: inner.connection.clone(),
                target: Arc::clone(&inner.target),
                output: *output,
                decoder: OutputDecoder::new(offset, inner.target.mode(), Limits::default()),
                buffer: Arc::clone(&buffer),
                exit: inner.exit.interest(&inner.connection, &inner.target),
                counted,
                progress: Progress::new(),
                received: Received::new(offset == 0),
            };
            tokio::spawn(until_stopped(
                follow,
                inner.connection.clone(),
                self.stop.clone(),
            ));
        }
        buffer
    }

    /// Stops reading: the connections are given up and pending calls give `None`, at once.
    pub fn cancel(&self) {
        self.stop.cancel();
        // A call that holds the turn has begun.
        if let Ok(mut turn) = self.turn.try_lock()
            && let Reading::Waiting(counted) = &mut *turn
        {
            counted.clear();
        }
    }
}

impl Drop for OutputReader {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
