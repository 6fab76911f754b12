//! Which text of a reopened stream is new: every byte once, or a doubt.
//!
//! Owns one stream's position across its connections. Knows nothing of HTTP
//! and of when to reopen. Start reading at [`Resume::accept`].
//!
//! What is known of the service: a request's `offset` is the byte from which
//! output is wanted, and each chunk carries an offset. Unknown is whether that
//! is where the chunk starts or where it ends, and whether replaced bytes count
//! as the process wrote them or as they were sent. So:
//!
//! - The offset to reopen at, the *cursor*, is always a value that the service
//!   sent, never one computed from text.
//! - The first chunk with text tells the reading: opened at 0, a start is 0 and
//!   an end is not.
//! - Where offsets are ends ([`end`]), the cursor is the next unread byte and
//!   nothing is fetched again. Where they are starts ([`start`]), the last
//!   chunk is fetched again and cut, text against text. So one reopening
//!   fetches at most one chunk a second time.
//! - Within one connection chunks follow on each other: offsets are checked
//!   for gaps, but no text is ever cut by them. An offset that runs ahead of
//!   the text by up to three bytes may be a character that the service keeps
//!   until it is whole; it becomes a gap when no text makes up for it.
//! - What cannot be settled is delivered, and noted as a [`Doubt`].

mod end;
mod mode;
mod start;
mod window;

use std::ops::Range;

use super::chunk::Chunk;
use super::json_text::join;
use super::span::Span;
pub use mode::OffsetMode;
use mode::{ModeTeller, Told};
use window::Window;

/// The most by which an offset may run ahead of the text: a character of four
/// bytes that lacks its last one.
const MAX_LAG: u64 = 3;

/// Why delivered output cannot be called complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// The offsets skip bytes for which no text came.
    #[error("the offsets of the stream leave a gap")]
    Gap,
    /// A part that was sent again is not what was sent the first time.
    #[error("a part of the stream that was sent again differs from the first time")]
    Mismatch,
    /// A part was sent again and replaced characters hide where it ends.
    #[error("a part of the stream was sent again, and where it ends cannot be told")]
    Ambiguous,
    /// The connection was lost behind text that came without an offset.
    #[error("the connection was lost behind text without an offset")]
    Untracked,
}

/// The position of one output stream.
#[derive(Debug, Default)]
pub(super) struct Resume {
    mode: Option<OffsetMode>,
    teller: ModeTeller,
    /// The last offset that the service sent, at first the caller's.
    cursor: u64,
    /// Units by which the cursor is ahead of the text.
    lag: u64,
    /// Text came after the cursor that had no offset.
    untracked: bool,
    /// Whether it is known how this connection's text meets the text before.
    aligned: bool,
    /// How far this connection has sent the window again, while it does.
    replay: Option<Replay>,
    /// The last chunk: all of it with start offsets, its end with end offsets.
    window: Window,
    /// The high half of a surrogate pair that waits for the next chunk.
    carry: Option<u16>,
    doubt: Option<Doubt>,
}

/// The part of the window that a connection sent again.
#[derive(Debug, Clone, Copy)]
struct Replay {
    at: usize,
    /// Nothing of it came yet, not even half a character.
    is_fresh: bool,
}

impl Replay {
    fn from(at: usize) -> Self {
        Self {
            at,
            is_fresh: at == 0,
        }
    }
}

impl Resume {
    pub(super) fn new(offset: u64, hint: Option<OffsetMode>) -> Self {
        Self {
            cursor: offset,
            teller: ModeTeller::new(hint),
            ..Self::default()
        }
    }

    pub(super) fn mode(&self) -> Option<OffsetMode> {
        self.mode
    }

    pub(super) fn doubt(&self) -> Option<Doubt> {
        self.doubt
    }

    /// Takes the chunk whose text is `out[start..]`, and leaves there what is new of it.
    pub(super) fn accept(&mut self, chunk: Chunk, start: usize, out: &mut String) {
        let is_empty = out.len() == start && chunk.halves.count() == 0;
        match (chunk.offset, is_empty) {
            (Some(offset), false) => {
                if self.mode.is_none() {
                    let text = out.get(start..).unwrap_or_default();
                    self.tell_mode(offset, text, chunk.halves.count());
                }
                match self.mode {
                    Some(OffsetMode::End) => self.accept_end(offset, chunk, start, out),
                    Some(OffsetMode::Start) => self.accept_start(offset, chunk, start, out),
                    None => out.truncate(start),
                }
            }
            // Without an offset it can only be what follows on this connection.
            (None, false) => {
                self.untracked = true;
                self.deliver(chunk, start, out);
            }
            // Alive, and where: only the end of what was read can be checked.
            (Some(offset), true) => self.accept_empty(offset),
            (None, true) => {}
        }
    }

    /// Call when no more text is added to the string that `accept` was given.
    pub(super) fn remember(&mut self, out: &str) {
        let keep_bytes = match self.mode {
            Some(OffsetMode::End) => end::KEEP_BYTES,
            _ => usize::MAX,
        };
        self.window.remember(out, keep_bytes);
    }

    /// The offset at which to open a new connection in place of the last one.
    pub(super) fn reopen(&mut self) -> u64 {
        if self.lag > 0 {
            self.lag = 0;
            self.note(Doubt::Gap);
        }
        if self.untracked {
            self.untracked = false;
            self.note(Doubt::Untracked);
        }
        self.aligned = false;
        self.replay = None;
        self.teller.reopen();
        self.cursor
    }

    /// Ends the stream: a half that waited for its partner is replaced.
    pub(super) fn finish(&mut self, out: &mut String) {
        if self.carry.take().is_some() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
        if self.lag > 0 {
            self.note(Doubt::Gap);
        }
    }

    /// The offset from which another reader gets what follows the text
    /// delivered so far; where that cannot be told, it gets the last chunk again.
    pub(super) fn position(&self) -> u64 {
        match self.mode {
            Some(OffsetMode::Start) => {
                self.cursor + self.window.span("").exact().unwrap_or_default()
            }
            _ => self.cursor,
        }
    }

    fn note(&mut self, doubt: Doubt) {
        self.doubt.get_or_insert(doubt);
    }

    /// Sets the mode, unless the chunk is old in either reading of its offset.
    fn tell_mode(&mut self, offset: u64, text: &str, halves: usize) {
        match self
            .teller
            .tell(self.cursor, offset, text, Span::of(text, halves))
        {
            Told::Mode(mode) => self.mode = Some(mode),
            Told::Probably(mode) => {
                self.mode = Some(mode);
                self.note(Doubt::Ambiguous);
            }
            Told::Old => {}
        }
    }

    fn accept_empty(&mut self, offset: u64) {
        if self.mode == Some(OffsetMode::End) && self.aligned && offset > self.cursor {
            self.advance_check(offset - self.cursor, Span { min: 0, max: 0 });
            self.cursor = offset;
        }
    }

    /// Holds `units` of the service against the text that came for them.
    fn advance_check(&mut self, units: u64, text: Span) {
        let units = units + self.lag;
        self.lag = 0;
        if units > text.max {
            let ahead = units - text.max;
            if ahead <= MAX_LAG {
                self.lag = ahead;
            } else {
                self.note(Doubt::Gap);
            }
        }
    }

    /// Leaves `out[start..]` as the next text, joined with what waited before it.
    fn deliver(&mut self, chunk: Chunk, start: usize, out: &mut String) -> Range<usize> {
        let joined = match (self.carry.take(), chunk.halves.head) {
            (Some(high), Some(low)) => Some(join(high, low)),
            (None, None) => None,
            _ => Some(char::REPLACEMENT_CHARACTER),
        };
        if let Some(character) = joined {
            out.insert(start, character);
        }
        self.carry = chunk.halves.tail;
        start + joined.map_or(0, char::len_utf8)..out.len()
    }
}
