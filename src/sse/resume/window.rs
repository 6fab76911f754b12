//! The last chunk's text, to hold what is sent again against it.

use std::fmt;
use std::ops::Range;

use crate::sse::span::{Span, has_replaced};

/// Text of the last chunk, without halves of pairs at its edges.
///
/// During one call it lies in the caller's string, so that not every chunk is
/// copied but the last of each call.
#[derive(Default)]
pub(super) struct Window {
    text: String,
    /// The window is `text[from..]`.
    from: usize,
    in_caller: Option<Range<usize>>,
    /// The chunk began with a low half, which was delivered.
    pub(super) head: Option<u16>,
    halves: usize,
    exists: bool,
}

/// Hides the text, which is a user's.
impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window")
            .field("text_bytes", &self.text.len())
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

impl Window {
    /// The window is now this part of the caller's string.
    pub(super) fn set(&mut self, range: Range<usize>, head: Option<u16>, halves: usize) {
        self.in_caller = Some(range);
        self.head = head;
        self.halves = halves;
        self.exists = true;
    }

    /// The window is now this text, part of which is not in the caller's string.
    pub(super) fn set_text(&mut self, text: &str, head: Option<u16>, halves: usize) {
        self.text.clear();
        self.text.push_str(text);
        self.from = 0;
        self.in_caller = None;
        self.head = head;
        self.halves = halves;
        self.exists = true;
    }

    /// Adds to the window what a later chunk brought.
    pub(super) fn append(&mut self, added: &str, halves: usize, out: &str) {
        self.remember(out, usize::MAX);
        self.text.push_str(added);
        self.halves += halves;
    }

    /// Leaves out the first `bytes`, at which a replay has come to another
    /// offset. Costs the same for any length: a replay may come byte by byte.
    pub(super) fn advance(&mut self, bytes: usize) {
        match &mut self.in_caller {
            Some(range) => range.start = (range.start + bytes).min(range.end),
            None => self.from += bytes,
        }
        self.head = None;
    }

    /// Copies the window out of the caller's string, at most its last `keep_bytes`.
    pub(super) fn remember(&mut self, out: &str, keep_bytes: usize) {
        let Some(range) = self.in_caller.take() else {
            return;
        };
        let mut from = range.start.max(range.end.saturating_sub(keep_bytes));
        while !out.is_char_boundary(from) {
            from += 1;
        }
        self.from = 0;
        self.text.clear();
        self.text
            .push_str(out.get(from..range.end).unwrap_or_default());
        if self.text.capacity() > 2 * self.text.len().max(4096) {
            self.text.shrink_to(self.text.len());
        }
    }

    /// The text; `out` is the caller's string of this call.
    pub(super) fn text<'a>(&'a self, out: &'a str) -> &'a str {
        match &self.in_caller {
            Some(range) => out.get(range.clone()).unwrap_or_default(),
            None => self.text.get(self.from..).unwrap_or_default(),
        }
    }

    /// Whether a chunk was ever delivered.
    pub(super) fn exists(&self) -> bool {
        self.exists
    }

    /// The units of the chunk.
    pub(super) fn span(&self, out: &str) -> Span {
        Span::of(self.text(out), self.halves)
    }

    /// Whether the units are as many as the bytes of the text, at a glance.
    pub(super) fn is_plainly(&self, units: u64) -> bool {
        let bytes = match &self.in_caller {
            Some(range) => range.len(),
            None => self.text.len().saturating_sub(self.from),
        };
        self.halves == 0 && bytes as u64 == units
    }

    /// Whether `old`, which ends `back` units before the window's end, is what
    /// was sent before, as far as the window reaches and tells.
    pub(super) fn ends_like(&self, old: &str, back: u64, out: &str) -> bool {
        let text = self.text(out);
        let back = usize::try_from(back).unwrap_or(usize::MAX);
        let Some(known) = text
            .len()
            .checked_sub(back)
            .and_then(|end| text.as_bytes().get(..end))
        else {
            return true;
        };
        if back > 0 && (self.halves > 0 || has_replaced(text)) {
            return true;
        }
        old.as_bytes()
            .iter()
            .rev()
            .zip(known.iter().rev())
            .all(|(again, first)| again == first)
    }
}
