//! How many of the service's offset units a piece of text may stand for.
//!
//! Offsets count bytes, but it is not known whether those of the process's
//! output or those of the text sent for it: a byte that is not UTF-8 is sent as
//! U+FFFD, which is three bytes of text for one to three of output. Half of a
//! surrogate pair may count as anything up to the whole character.

use memchr::memmem;

const REPLACEMENT: &str = "\u{FFFD}";
/// Bytes of U+FFFD in text, and the most that it stands for.
const REPLACED_MAX: u64 = 3;
const HALF_MAX: u64 = 4;

/// An inclusive range of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Span {
    /// The range of `text` with `halves` halves of pairs beside it.
    pub(super) fn of(text: &str, halves: usize) -> Self {
        let replaced = memmem::find_iter(text.as_bytes(), REPLACEMENT).count() as u64;
        let bytes = text.len() as u64;
        Self {
            min: bytes - replaced * (REPLACED_MAX - 1),
            max: bytes + halves as u64 * HALF_MAX,
        }
    }

    pub(super) fn contains(self, units: u64) -> bool {
        (self.min..=self.max).contains(&units)
    }

    /// The one number of units, where there is just one.
    pub(super) fn exact(self) -> Option<u64> {
        (self.min == self.max).then_some(self.min)
    }
}

/// Whether a text has characters that stand for an unknown number of bytes.
pub(super) fn has_replaced(text: &str) -> bool {
    memmem::find(text.as_bytes(), REPLACEMENT.as_bytes()).is_some()
}

/// The places in `text` behind which exactly `units` may be left, longest
/// remainder first: one where nothing is replaced, none where `units` end
/// inside a character.
pub(super) fn cuts_before_last(text: &str, units: u64) -> Vec<usize> {
    let mut found = places(text.len(), text.char_indices().rev(), units);
    found.reverse();
    found
}

/// The places in `text` before which exactly `units` may lie, nearest first.
pub(super) fn cuts_after_first(text: &str, units: u64) -> Vec<usize> {
    let steps = text
        .char_indices()
        .map(|(at, character)| (at + character.len_utf8(), character));
    places(0, steps, units)
}

fn places(from: usize, steps: impl Iterator<Item = (usize, char)>, units: u64) -> Vec<usize> {
    let mut passed = Span { min: 0, max: 0 };
    let mut found = Vec::new();
    if units == 0 {
        found.push(from);
    }
    for (place, character) in steps {
        let bytes = character.len_utf8() as u64;
        passed.min += if character == char::REPLACEMENT_CHARACTER {
            1
        } else {
            bytes
        };
        passed.max += bytes;
        if passed.min > units {
            break;
        }
        if passed.contains(units) {
            found.push(place);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replaced_characters_and_halves_make_a_range() {
        assert_eq!(Span::of("aé😀", 0).exact(), Some(7));
        assert_eq!(Span::of("a\u{FFFD}\u{FFFD}", 0), Span { min: 3, max: 7 });
        assert_eq!(Span::of("a", 1), Span { min: 1, max: 5 });
    }

    #[test]
    fn a_cut_in_plain_text_is_one_place_and_none_inside_a_character() {
        assert_eq!(cuts_before_last("aéb", 1), [3]);
        assert_eq!(cuts_before_last("aéb", 2), [0usize; 0]);
        assert_eq!(cuts_before_last("aéb", 3), [1]);
        assert_eq!(cuts_before_last("aéb", 0), [4]);
        assert_eq!(cuts_before_last("aéb", 9), [0usize; 0]);
        assert_eq!(cuts_after_first("aéb", 3), [3]);
        assert_eq!(cuts_after_first("aéb", 0), [0]);
    }

    #[test]
    fn a_cut_among_replaced_characters_has_several_places() {
        let text = "x\u{FFFD}\u{FFFD}\u{FFFD}";
        assert_eq!(cuts_before_last(text, 3), [1, 4, 7]);
        assert_eq!(cuts_after_first(text, 3), [4, 7]);
        assert_eq!(cuts_before_last(text, 10), [0]);
    }
}
