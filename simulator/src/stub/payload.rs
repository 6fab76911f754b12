//! The bytes that every output and every file of the stub consists of.
//!
//! One line of text over and over. Byte N depends on N alone, so a client that
//! loses, repeats or moves bytes is found out, and nothing has to be stored.
//! 61 is prime: pieces of the usual sizes begin at ever different places of it.

use std::ops::Range;
use std::sync::LazyLock;

use bytes::Bytes;

/// The line; its last byte is the only one that JSON escapes.
pub(super) const LINE: &str = "a line of output, as a build or a test prints it, 0123456789\n";

/// Its length.
pub(super) const LINE_BYTES: u64 = LINE.len() as u64;

/// As JSON writes it, the line is one byte longer.
const ESCAPED_LINE_BYTES: u64 = LINE_BYTES + 1;

/// Lines in one buffer: a quarter of a megabyte, enough that its end is met
/// rarely and little enough to stay in a processor's cache.
const LINES: usize = 4096;

static PLAIN: LazyLock<Bytes> = LazyLock::new(|| LINE.repeat(LINES).into());

static ESCAPED: LazyLock<String> = LazyLock::new(|| LINE.replace('\n', "\\n").repeat(LINES));

/// The bytes from `from` on, as many as are ready, at most `limit` and at
/// least one unless `limit` is 0.
pub(super) fn plain(from: u64, limit: u64) -> Bytes {
    PLAIN.slice(range(from % LINE_BYTES, limit, PLAIN.len()))
}

/// Appends the text from `from` up to `to` as the inside of a JSON string.
pub(super) fn push_escaped(text: &mut String, from: u64, to: u64) {
    let (mut at, end) = (escaped_offset(from), escaped_offset(to));
    while at < end {
        let range = range(at % ESCAPED_LINE_BYTES, end - at, ESCAPED.len());
        at += range.len() as u64;
        // All of it is ASCII.
        text.push_str(ESCAPED.get(range).unwrap_or_default());
    }
}

/// Checks bytes that a client sends against what they are to be.
pub(super) fn is_plain(from: u64, bytes: &[u8]) -> bool {
    let (mut at, mut rest) = (from, bytes);
    while !rest.is_empty() {
        let expected = plain(at, rest.len() as u64);
        let Some(left) = rest.strip_prefix(&expected[..]) else {
            return false;
        };
        at += expected.len() as u64;
        rest = left;
    }
    true
}

/// At most `limit` bytes of a buffer from `start` on.
fn range(start: u64, limit: u64, len: usize) -> Range<usize> {
    let start = usize::try_from(start).unwrap_or(0);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    start..start.saturating_add(limit).min(len)
}

/// Where in the escaped text the plain byte `offset` begins.
const fn escaped_offset(offset: u64) -> u64 {
    offset / LINE_BYTES * ESCAPED_LINE_BYTES + offset % LINE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(from: usize, to: usize) -> String {
        let text = LINE.repeat(to / LINE.len() + 1);
        text[from..to].to_owned()
    }

    #[test]
    fn a_piece_is_the_same_wherever_it_is_cut() {
        for (from, to) in [(0, 0), (0, 61), (59, 62), (60, 61), (7, 600_000)] {
            let mut whole = Vec::new();
            while whole.len() < to - from {
                let at = from + whole.len();
                whole.extend_from_slice(&plain(at as u64, (to - at) as u64));
            }
            assert_eq!(whole, expected(from, to).as_bytes(), "{from}..{to}");
        }
    }

    #[test]
    fn escaped_text_is_what_json_reads_back() {
        for (from, to) in [(0, 0), (0, 61), (60, 61), (59, 123), (5, 300_000)] {
            let mut text = String::from("\"");
            push_escaped(&mut text, from as u64, to as u64);
            text.push('"');
            let read: String = serde_json::from_str(&text).unwrap();
            assert_eq!(read, expected(from, to), "{from}..{to}");
        }
    }

    #[test]
    fn other_bytes_are_noticed() {
        assert!(is_plain(3, expected(3, 400_000).as_bytes()));
        assert!(!is_plain(4, expected(3, 400).as_bytes()));
        assert!(!is_plain(0, b"x"));
        assert!(is_plain(0, b""));
    }
}
