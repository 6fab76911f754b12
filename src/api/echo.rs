//! Takes out of a text what it repeats of the content that a request carried.
//!
//! A service that refuses a request may quote it, and what it quotes may be a
//! file, standard input or a command with a password in it. Exact secrets are
//! replaced elsewhere; here any longer run of bytes that the two have in common
//! is. Pure.

use std::collections::HashSet;
use std::ops::Range;

/// Shortest run that counts as a quotation, in bytes. Shorter ones are words
/// that stand in any message.
const LEAST: usize = 12;

/// Content shorter than this is left: hiding it would hide the message.
const LEAST_CONTENT: usize = 8;

const REDACTED: &str = "[redacted]";

/// `text` without the runs of 12 bytes and more that are also in one of
/// `contents`; of shorter content, without the whole of it.
///
/// Takes time in proportion to both, and memory in proportion to `text`.
#[must_use]
pub fn without_echo(text: &str, contents: &[&[u8]]) -> String {
    let mut marked = vec![false; text.len()];
    for content in contents {
        if content.len() >= LEAST_CONTENT {
            mark(text.as_bytes(), content, &mut marked);
        }
    }
    if !marked.contains(&true) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut was_marked = false;
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        // A character of which a part was quoted is taken out whole.
        let is_marked = marked
            .get(at..end)
            .is_some_and(|bytes| bytes.contains(&true));
        match (is_marked, was_marked) {
            (true, false) => out.push_str(REDACTED),
            (true, true) => {}
            (false, _) => out.push(character),
        }
        was_marked = is_marked;
    }
    out
}

/// Marks every byte of `text` that belongs to a run in `content`.
fn mark(text: &[u8], content: &[u8], marked: &mut [bool]) {
    let least = content.len().min(LEAST);
    let windows: HashSet<&[u8]> = text.windows(least).collect();
    let mut seen = Sieve::of(&windows);
    let mut quoted: HashSet<&[u8]> = HashSet::new();
    for window in content.windows(least) {
        if seen.may_hold(window) && windows.contains(window) {
            quoted.insert(window);
            if quoted.len() == windows.len() {
                break;
            }
        }
    }
    for (at, window) in text.windows(least).enumerate() {
        if quoted.contains(window)
            && let Some(run) = marked.get_mut(Range {
                start: at,
                end: at + least,
            })
        {
            run.fill(true);
        }
    }
}

/// Tells cheaply, for nearly every window, that it is not in the set: the
/// content may be a file of 64 MiB.
struct Sieve(Vec<u64>);

impl Sieve {
    const BITS: u32 = 20;

    fn of(windows: &HashSet<&[u8]>) -> Self {
        let mut sieve = Self(vec![0; 1 << (Self::BITS - 6)]);
        for window in windows {
            let (word, bit) = Self::place(window);
            if let Some(word) = sieve.0.get_mut(word) {
                *word |= bit;
            }
        }
        sieve
    }

    fn may_hold(&mut self, window: &[u8]) -> bool {
        let (word, bit) = Self::place(window);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// From the first eight bytes, which every window has.
    fn place(window: &[u8]) -> (usize, u64) {
        let first = window.first_chunk::<8>().copied().unwrap_or_default();
        let mixed = u64::from_le_bytes(first).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let index = mixed >> (u64::BITS - Self::BITS);
        let word = usize::try_from(index >> 6).unwrap_or(0);
        (word, 1 << (index & 63))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::cases::cases;

    use super::*;

    #[test]
    fn v17_what_a_message_quotes_of_the_content_is_taken_out() {
        let content = b"line one\npassword = hunter2hunter2\nline three".as_slice();
        for (text, expected) in [
            (
                "bad line: password = hunter2hunter2!",
                "bad line: [redacted]!",
            ),
            ("no such Devbox", "no such Devbox"),
            (
                "two: hunter2hunter2 and line three\u{e9}",
                "two:[redacted] and line three\u{e9}",
            ),
            ("", ""),
        ] {
            assert_eq!(without_echo(text, &[content]), expected);
        }
    }

    #[test]
    fn v17_short_content_is_taken_out_whole_and_the_shortest_is_left() {
        assert_eq!(
            without_echo("got s3cr3t99, s3cr3t9", &[b"s3cr3t99"]),
            "got [redacted], s3cr3t9"
        );
        assert_eq!(without_echo("got ok", &[b"ok"]), "got ok");
        assert_eq!(without_echo("got ok", &[b""]), "got ok");
    }

    #[test]
    fn a_character_is_never_cut_in_two() {
        let content = "aaaaaaaaaaa\u{e9}".as_bytes();
        let half = content.get(..12).unwrap_or_default();
        assert_eq!(without_echo("aaaaaaaaaaa\u{e9}b", &[half]), "[redacted]b");
    }

    #[test]
    fn an_answer_that_quotes_a_large_file_costs_no_more_than_reading_it() {
        let content: Vec<u8> = (0..500_000_u32).flat_map(u32::to_le_bytes).collect();
        let text = "x".repeat(64 * 1024);
        let started = std::time::Instant::now();
        assert_eq!(without_echo(&text, &[&content]), text);
        // A comparison of each with each would take hours.
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn no_run_of_the_content_is_left(content in "[ab\u{e9}]{12,60}", before in "[a-d ]{0,20}", at in 0_usize..30, length in 12_usize..30) {
            let bytes = content.as_bytes();
            let quoted = bytes.get(at.min(bytes.len())..(at + length).min(bytes.len())).unwrap_or_default();
            let text = format!("{before}{}{before}", String::from_utf8_lossy(quoted));
            let shown = without_echo(&text, &[bytes]);
            let left = shown.as_bytes().windows(LEAST).any(|run| bytes.windows(LEAST).any(|known| known == run));
            prop_assert!(!left, "{shown}");
        }
    }
}
