//! What was received and not yet taken, for one reader.
//!
//! Bounded for each of the two streams by itself, so that one which nobody
//! takes does not hold the other back. Knows nothing of HTTP.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::records::OutputPiece;
use crate::api::executions::Output;
use crate::error::{Error, Result};

/// Text of one stream that is held before its connection is no longer read.
/// What a reader can hold is this and what three reads of a connection give.
pub(super) const MAX_HELD_BYTES: usize = 1024 * 1024;

/// Small pieces are joined up to this size: each piece costs JavaScript a string.
const JOINED_BYTES: usize = 64 * 1024;

/// The queue between the tasks that read streams and the one that takes.
#[derive(Debug)]
pub(super) struct Buffer {
    state: Mutex<State>,
    filled: Notify,
    taken: Notify,
}

#[derive(Debug, Default)]
struct State {
    pieces: Vec<OutputPiece>,
    held_bytes: [usize; 2],
    /// The service's offset behind what is held, for each stream.
    positions: [u64; 2],
    open: usize,
    failure: Option<Error>,
}

/// What was taken.
pub(super) struct Taken {
    pub(super) pieces: Vec<OutputPiece>,
    pub(super) positions: [u64; 2],
}

impl Buffer {
    /// An empty buffer that `open` streams will fill.
    pub(super) fn new(open: usize, positions: [u64; 2]) -> Self {
        Self {
            state: Mutex::new(State {
                open,
                positions,
                ..State::default()
            }),
            filled: Notify::new(),
            taken: Notify::new(),
        }
    }

    /// Adds what a stream gave; `text` is empty afterwards.
    pub(super) fn push(&self, output: Output, text: &mut String, position: u64) {
        if text.is_empty() {
            return;
        }
        let mut state = self.state();
        let slot = slot(output);
        if let Some(held) = state.held_bytes.get_mut(slot) {
            *held += text.len();
        }
        if let Some(known) = state.positions.get_mut(slot) {
            *known = position;
        }
        match state.pieces.last_mut() {
            Some(last) if last.output == output && last.text.len() + text.len() <= JOINED_BYTES => {
                last.text.push_str(text);
                text.clear();
            }
            _ => state.pieces.push(OutputPiece {
                output,
                text: std::mem::take(text),
            }),
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Waits until the stream may be read on. True where that took a wait.
    pub(super) async fn room(&self, output: Output) -> bool {
        let mut waited = false;
        loop {
            let taken = self.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            if self
                .state()
                .held_bytes
                .get(slot(output))
                .is_none_or(|held| *held < MAX_HELD_BYTES)
            {
                return waited;
            }
            waited = true;
            taken.await;
        }
    }

    /// One stream gives no more. A failure reaches the reader behind all text.
    pub(super) fn end(&self, failure: Option<Error>) {
        let mut state = self.state();
        state.open = state.open.saturating_sub(1);
        if let Some(failure) = failure {
            state.failure.get_or_insert(failure);
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Everything that is held, as soon as there is something; `None` at the end.
    pub(super) async fn take(&self) -> Result<Option<Taken>> {
        loop {
            if let Some(step) = self.take_now() {
                return step;
            }
            // One permit is kept for a push that comes before this waits.
            self.filled.notified().await;
        }
    }

    fn take_now(&self) -> Option<Result<Option<Taken>>> {
        let mut state = self.state();
        if !state.pieces.is_empty() {
            let pieces = std::mem::take(&mut state.pieces);
            state.held_bytes = [0; 2];
            let positions = state.positions;
            drop(state);
            self.taken.notify_waiters();
            return Some(Ok(Some(Taken { pieces, positions })));
        }
        // A failure of one stream does not take the other's text away.
        if state.open > 0 {
            return None;
        }
        Some(match state.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(None),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index of a stream in pairs of values.
pub(super) fn slot(output: Output) -> usize {
    match output {
        Output::Stdout => 0,
        Output::Stderr => 1,
    }
}
