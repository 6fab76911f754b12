//! The text of an output stream, as the API shows it.

/// The last `count` lines and whether anything was dropped. A final newline
/// belongs to its line and is kept; invalid UTF-8 becomes U+FFFD.
pub(crate) fn last_lines(bytes: &[u8], count: usize) -> (String, bool) {
    let end = bytes
        .len()
        .saturating_sub(usize::from(bytes.last() == Some(&b'\n')));
    let body = bytes.get(..end).unwrap_or_default();
    let start = if count == 0 {
        bytes.len()
    } else {
        body.iter()
            .enumerate()
            .rev()
            .filter(|(_, byte)| **byte == b'\n')
            .nth(count - 1)
            .map_or(0, |(position, _)| position + 1)
    };
    let shown = bytes.get(start..).unwrap_or_default();
    (String::from_utf8_lossy(shown).into_owned(), start > 0)
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn the_last_lines_keep_their_final_newline_and_say_what_was_dropped() {
        assert_eq!(last_lines(b"1\n2\n3\n", 2), ("2\n3\n".to_owned(), true));
        assert_eq!(last_lines(b"1\n2\n3", 2), ("2\n3".to_owned(), true));
        assert_eq!(last_lines(b"1\n2\n", 2), ("1\n2\n".to_owned(), false));
        assert_eq!(last_lines(b"\n\n\n", 2), ("\n\n".to_owned(), true));
        assert_eq!(last_lines(b"", 2), (String::new(), false));
        assert_eq!(last_lines(b"x", 0), (String::new(), true));
    }

    #[test]
    fn invalid_bytes_are_shown_as_replacement_characters() {
        assert_eq!(last_lines(b"a\xffb", 5).0, "a\u{fffd}b");
    }
}
