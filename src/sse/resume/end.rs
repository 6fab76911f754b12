//! Offsets that mark the end of their chunk.
//!
//! The cursor is the next unread byte. A service that starts earlier than asked
//! is cut by the count of units, and what is cut is held against the window.

use super::super::chunk::Chunk;
use super::super::span::{Span, cuts_before_last};
use super::{Doubt, Resume};

/// How much of the last chunk is kept to check what is sent again. Enough to
/// notice a difference; where to cut follows from the offsets.
pub(super) const KEEP_BYTES: usize = 16 * 1024;

/// How many places are tried against the window before giving up.
const MAX_TRIED: usize = 64;

impl Resume {
    pub(super) fn accept_end(&mut self, end: u64, chunk: Chunk, start: usize, out: &mut String) {
        let text = out.get(start..).unwrap_or_default();
        let halves = chunk.halves.count();
        let follows = self.aligned || self.untracked || self.cursor == 0;
        match end.checked_sub(self.cursor) {
            Some(units) if halves == 0 && self.lag == 0 && units == text.len() as u64 => {
                self.deliver_end(end, chunk, start, out);
            }
            Some(units) => {
                let span = Span::of(text, halves);
                // A chunk that follows on the one before it on the same connection
                // and has fewer units than it can have in bytes is new all the same.
                let is_new = match units {
                    0 => follows && span.min <= self.lag || self.completes_half(chunk),
                    _ => follows || units >= span.min,
                };
                if is_new {
                    if !self.untracked {
                        self.advance_check(units, span);
                    }
                    self.deliver_end(end, chunk, start, out);
                } else if units > 0 {
                    self.cut_and_deliver(end, units, chunk, start, out);
                } else {
                    self.drop_old(0, start, out);
                }
            }
            None => self.drop_old(self.cursor - end, start, out),
        }
    }

    /// The second half of a character, all of which may count as its first half.
    fn completes_half(&self, chunk: Chunk) -> bool {
        self.carry.is_some() && chunk.halves.head.is_some()
    }

    /// All of the chunk was delivered before; it ends `back` units before the cursor.
    fn drop_old(&mut self, back: u64, start: usize, out: &mut String) {
        if !self
            .window
            .ends_like(out.get(start..).unwrap_or_default(), back, out)
        {
            self.note(Doubt::Mismatch);
        }
        self.aligned = false;
        out.truncate(start);
    }

    /// The first `text.len() - units` of the chunk were delivered before.
    fn cut_and_deliver(
        &mut self,
        end: u64,
        units: u64,
        mut chunk: Chunk,
        start: usize,
        out: &mut String,
    ) {
        let text = out.get(start..).unwrap_or_default();
        let places = cuts_before_last(text, units);
        let mut fitting = places.iter().copied().take(MAX_TRIED).filter(|place| {
            self.window
                .ends_like(text.get(..*place).unwrap_or_default(), 0, out)
        });
        let place = match (fitting.next(), fitting.next()) {
            (Some(place), None) if places.len() <= MAX_TRIED && chunk.halves.tail.is_none() => {
                place
            }
            (Some(place), _) => {
                self.note(Doubt::Ambiguous);
                place
            }
            // Nothing of it is known to be old.
            (None, _) => {
                self.note(Doubt::Mismatch);
                0
            }
        };
        out.drain(start..start + place);
        if place > 0 {
            chunk.halves.head = None;
            if self.carry.is_some() {
                self.note(Doubt::Ambiguous);
            }
        }
        self.deliver_end(end, chunk, start, out);
    }

    fn deliver_end(&mut self, end: u64, chunk: Chunk, start: usize, out: &mut String) {
        self.aligned = true;
        self.untracked = false;
        self.cursor = self.cursor.max(end);
        let range = self.deliver(chunk, start, out);
        self.window
            .set(range, chunk.halves.head, chunk.halves.count());
    }
}
