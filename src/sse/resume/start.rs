//! Offsets that mark the start of their chunk.
//!
//! The cursor is the start of the last chunk, so that chunk is sent again after
//! a reopening, perhaps in other pieces. It is cut as text: what is sent again
//! must begin with the window.

use super::super::chunk::Chunk;
use super::super::json_text::join;
use super::super::span::{Span, cuts_after_first};
use super::{Doubt, Replay, Resume};

/// How many places are tried against the window before giving up.
const MAX_TRIED: usize = 64;

impl Resume {
    pub(super) fn accept_start(
        &mut self,
        begin: u64,
        mut chunk: Chunk,
        start: usize,
        out: &mut String,
    ) {
        if self.aligned && self.replay.is_none() && !self.untracked {
            match begin.checked_sub(self.cursor) {
                Some(units) if self.lag == 0 && self.window.is_plainly(units) => {}
                Some(units) if units > 0 => self.advance_check(units, self.window.span(out)),
                // An offset that stands still: the same chunk again, or no offset at all.
                Some(_) if self.window.text(out) != out.get(start..).unwrap_or_default() => {
                    self.note(Doubt::Mismatch);
                }
                // Sent again within one connection.
                _ => self.aligned = false,
            }
        }
        if !self.aligned && !self.align(begin, &mut chunk, start, out) {
            out.truncate(start);
            return;
        }
        match self.replay {
            Some(replay) => self.pass_replay(replay, begin, chunk, start, out),
            None => {
                self.cursor = self.cursor.max(begin);
                let range = self.deliver(chunk, start, out);
                self.window
                    .set(range, chunk.halves.head, chunk.halves.count());
            }
        }
        self.untracked = false;
    }

    /// Finds out how the connection's first chunk meets the text before it, and
    /// removes what lies before the window. False where that is all of it.
    fn align(&mut self, begin: u64, chunk: &mut Chunk, start: usize, out: &mut String) -> bool {
        let exists = self.window.exists();
        if let Some(ahead) = begin.checked_sub(self.cursor) {
            let known = self.window.span(out);
            if !exists || (ahead > 0 && ahead >= known.min) {
                // The next chunk, where the service takes the offset asked for
                // as one that was read already.
                self.advance_check(ahead, known);
            } else {
                self.carry = None;
                let place = self.place_in_window(ahead, start, out);
                self.replay = place.map(Replay::from);
            }
        } else {
            let old = self.cursor - begin;
            let text = out.get(start..).unwrap_or_default();
            if Span::of(text, chunk.halves.count()).max <= old {
                return false;
            }
            if let Some(place) = self.place_in_chunk(old, start, out) {
                if place > 0 {
                    chunk.halves.head = None;
                }
                out.drain(start..start + place);
                if exists {
                    self.carry = None;
                    self.replay = Some(Replay::from(0));
                }
            } else {
                // All of it is delivered, and the window is where it starts.
                self.cursor = begin;
            }
        }
        self.aligned = true;
        true
    }

    /// Where in the window a chunk lies that starts `ahead` units inside it.
    fn place_in_window(&mut self, ahead: u64, start: usize, out: &str) -> Option<usize> {
        if ahead == 0 {
            return Some(0);
        }
        let text = out.get(start..).unwrap_or_default();
        let known = self.window.text(out);
        let places = cuts_after_first(known, ahead);
        let place = only(&places, |place| {
            agree(known.get(place..).unwrap_or_default(), text)
        });
        place.map_err(|doubt| self.note(doubt)).ok()
    }

    /// Behind which part of a chunk, `old` units of it, the window starts.
    fn place_in_chunk(&mut self, old: u64, start: usize, out: &str) -> Option<usize> {
        let text = out.get(start..).unwrap_or_default();
        let known = self.window.text(out);
        let places = cuts_after_first(text, old);
        let place = only(&places, |place| {
            agree(text.get(place..).unwrap_or_default(), known)
        });
        // It may as well end before the window.
        let place = place.and_then(|place| {
            if Span::of(text, 0).min <= old {
                Err(Doubt::Ambiguous)
            } else {
                Ok(place)
            }
        });
        place.map_err(|doubt| self.note(doubt)).ok()
    }

    /// A chunk on a connection that is sending the window again. Leaves what
    /// lies behind the window.
    fn pass_replay(
        &mut self,
        Replay { at, is_fresh }: Replay,
        begin: u64,
        mut chunk: Chunk,
        start: usize,
        out: &mut String,
    ) {
        let head = chunk.halves.head.take();
        let joined = match (self.carry.take(), head) {
            (Some(high), Some(low)) => Some(join(high, low)),
            (None, Some(_)) if !is_fresh => Some(char::REPLACEMENT_CHARACTER),
            (Some(_), None) => Some(char::REPLACEMENT_CHARACTER),
            (None, head) => {
                if is_fresh && head != self.window.head {
                    self.note(Doubt::Mismatch);
                }
                None
            }
        };
        if let Some(character) = joined {
            out.insert(start, character);
        }
        let text = out.get(start..).unwrap_or_default();
        let known = self.window.text(out).get(at..).unwrap_or_default();
        let passed = common(text, known);
        // Past the first difference nothing is known to be old.
        let differs = passed < text.len().min(known.len());
        let is_over = differs || passed == known.len();
        if differs {
            self.doubt.get_or_insert(Doubt::Mismatch);
        }
        if is_over && (passed < text.len() || chunk.halves.tail.is_some()) {
            // What this chunk adds makes it the last one.
            let text = text.to_owned();
            let halves = chunk.halves.count() + usize::from(head.is_some());
            if joined.is_none() && begin >= self.cursor {
                self.cursor = begin;
                self.window.set_text(&text, head, halves);
            } else {
                let added = text.get(passed..).unwrap_or_default();
                self.window.append(added, halves, out);
            }
            self.replay = None;
            out.drain(start..start + passed);
            self.deliver(chunk, start, out);
            return;
        }
        self.carry = chunk.halves.tail;
        self.replay = (!is_over).then_some(Replay {
            at: at + passed,
            is_fresh: false,
        });
        if at > 0 && joined.is_none() && begin > self.cursor {
            // The replay is this far: the next one need not start earlier.
            self.cursor = begin;
            self.window.advance(at);
            self.replay = self.replay.map(|replay| Replay {
                at: passed,
                ..replay
            });
        }
        out.truncate(start);
    }
}

/// Whether the shorter text is how the longer one begins.
fn agree(one: &str, other: &str) -> bool {
    common(one, other) == one.len().min(other.len())
}

/// Bytes of the characters with which both texts begin.
fn common(one: &str, other: &str) -> usize {
    let pairs = one.as_bytes().iter().zip(other.as_bytes());
    let mut bytes = pairs.take_while(|(a, b)| a == b).count();
    while !one.is_char_boundary(bytes) {
        bytes -= 1;
    }
    bytes
}

/// The one place that fits.
fn only(places: &[usize], fits: impl Fn(usize) -> bool) -> Result<usize, Doubt> {
    let mut fitting = places
        .iter()
        .copied()
        .take(MAX_TRIED)
        .filter(|place| fits(*place));
    match (fitting.next(), fitting.next()) {
        (Some(place), None) if places.len() <= MAX_TRIED => Ok(place),
        (Some(_), _) => Err(Doubt::Ambiguous),
        (None, _) => Err(Doubt::Mismatch),
    }
}
