//! Reading an output as text while it grows.
//!
//! Text is decoded as it comes: a character that is only half there waits for
//! its rest, invalid bytes are U+FFFD. Offsets count either the UTF-8 bytes of
//! that text or the bytes that the command wrote.

use std::sync::Arc;

use super::choices::{ChunkOffset, OffsetUnit};
use super::executions::{Execution, Output};
use super::settings::Settings;

/// A piece of the text and the offset that goes out with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) text: String,
    pub(crate) offset: u64,
}

/// A reader at a position of one output of one execution.
#[derive(Debug)]
pub(crate) struct Follower {
    execution: Arc<Execution>,
    output: Output,
    settings: Arc<Settings>,
    /// The next byte to read of what the command wrote.
    raw: u64,
    /// UTF-8 bytes of the text before it.
    decoded: u64,
    /// Text before this offset is passed over.
    wanted: u64,
    /// The newest bytes that are held back, by a fault.
    held_back: u64,
    /// The output's length when `next` last looked.
    seen: u64,
}

impl Follower {
    /// A reader that begins at `offset`, which counts what the settings say.
    /// An offset inside a character begins with that character (unknown).
    pub(crate) fn new(
        execution: Arc<Execution>,
        output: Output,
        offset: u64,
        settings: Arc<Settings>,
    ) -> Self {
        let (raw, wanted) = match settings.stream_unit {
            OffsetUnit::Raw => (offset, 0),
            OffsetUnit::Decoded => (0, offset),
        };
        Self {
            execution,
            output,
            settings,
            raw,
            decoded: 0,
            wanted,
            held_back: 0,
            seen: 0,
        }
    }

    /// Holds the newest bytes back from now on; 0 for none.
    pub(crate) fn hold_back(&mut self, bytes: u64) {
        self.held_back = bytes;
    }

    /// The next piece that can be told now, at most the chunk size of the
    /// settings; `None` if there is nothing to tell yet.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<Chunk>> {
        loop {
            let spool = self.execution.output(self.output);
            // Asked before the length: nothing can come after it.
            let is_whole = self.has_ended() && self.held_back == 0;
            self.seen = spool.len();
            let end = self.seen.saturating_sub(self.held_back);
            let available = usize::try_from(end.saturating_sub(self.raw)).unwrap_or(usize::MAX);
            let count = available.min(self.settings.stream_chunk_bytes.max(4));
            if count == 0 {
                return Ok(None);
            }
            let bytes = spool.read_at(self.raw, count)?;
            let (text, used) = decode(&bytes, is_whole && count == available);
            if used == 0 {
                return Ok(None);
            }
            if let Some(chunk) = self.advance(text, used) {
                return Ok(Some(chunk));
            }
        }
    }

    /// Waits until `next` may have something to tell, or never will.
    pub(crate) async fn grown(&self) {
        // Half a character may already be there: wait for more than was seen.
        self.execution
            .output(self.output)
            .grown_past(self.seen.max(self.raw))
            .await;
    }

    /// Whether the command can still write.
    pub(crate) fn can_grow(&self) -> bool {
        !self.execution.output(self.output).is_closed()
    }

    /// Whether everything was told and nothing more will come.
    pub(crate) fn is_over(&self) -> bool {
        self.has_ended()
            && self.held_back == 0
            && self.raw >= self.execution.output(self.output).len()
    }

    /// Whether what the command wrote before its end is there.
    pub(crate) fn is_settled(&self) -> bool {
        self.execution.output(self.output).is_settled()
    }

    /// Waits for that.
    pub(crate) async fn settled(&self) {
        self.execution.output(self.output).settled().await;
    }

    /// Nothing more is waited for: the output is closed, or the execution was
    /// completed although a child that outlived it may still write. An execution may
    /// be completed before all that the command wrote was taken from its pipes, but
    /// its streams do not end before that (inferred: they would be of no use).
    fn has_ended(&self) -> bool {
        let is_completed = self.execution.status().exit_status().is_some();
        !self.can_grow() || (is_completed && self.is_settled())
    }

    fn advance(&mut self, text: String, used: usize) -> Option<Chunk> {
        let (raw_start, decoded_start) = (self.raw, self.decoded);
        self.raw += used as u64;
        self.decoded += text.len() as u64;
        let passed_over = usize::try_from(self.wanted.saturating_sub(decoded_start))
            .unwrap_or(usize::MAX)
            .min(text.len());
        let kept = floor_char_boundary(&text, passed_over);
        if kept == text.len() {
            return None;
        }
        let offset = match (self.settings.stream_unit, self.settings.stream_offset) {
            (OffsetUnit::Raw, ChunkOffset::Start) => raw_start,
            (OffsetUnit::Raw, ChunkOffset::End) => self.raw,
            (OffsetUnit::Decoded, ChunkOffset::Start) => decoded_start + kept as u64,
            (OffsetUnit::Decoded, ChunkOffset::End) => self.decoded,
        };
        let text = if kept == 0 {
            text
        } else {
            text.get(kept..).unwrap_or_default().to_owned()
        };
        Some(Chunk { text, offset })
    }
}

fn floor_char_boundary(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// The text of `bytes` and how many of them it took. A character that is only
/// begun at the end is left, unless nothing follows.
fn decode(bytes: &[u8], is_end: bool) -> (String, usize) {
    let mut text = String::with_capacity(bytes.len());
    let mut used = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        used += chunk.valid().len();
        let invalid = chunk.invalid();
        let is_begun = used + invalid.len() == bytes.len()
            && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        if invalid.is_empty() || (is_begun && !is_end) {
            break;
        }
        text.push(char::REPLACEMENT_CHARACTER);
        used += invalid.len();
    }
    (text, used)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn half_a_character_waits_for_its_rest() {
        assert_eq!(decode("aé".as_bytes(), false), ("aé".to_owned(), 3));
        assert_eq!(decode(b"a\xc3", false), ("a".to_owned(), 1));
        assert_eq!(decode(b"a\xf0\x9f\x98", false), ("a".to_owned(), 1));
        assert_eq!(decode(b"a\xc3", true), ("a\u{fffd}".to_owned(), 2));
    }

    #[test]
    fn invalid_bytes_do_not_stall() {
        assert_eq!(
            decode(b"\xff\xfea", false),
            ("\u{fffd}\u{fffd}a".to_owned(), 3)
        );
        assert_eq!(decode(b"\xff", false), ("\u{fffd}".to_owned(), 1));
        assert_eq!(decode(b"\xc3(", false), ("\u{fffd}(".to_owned(), 2));
    }
}
