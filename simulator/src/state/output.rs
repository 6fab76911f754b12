//! The text of an output, as views show it.

use crate::guest::Spool;

/// One piece of the search backwards for line ends.
const BLOCK_BYTES: usize = 64 * 1024;

/// The end of an output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Invalid UTF-8 is U+FFFD (inferred).
    pub(crate) text: String,
    /// Something before it was left out.
    pub(crate) is_truncated: bool,
}

/// The last `lines` lines of an output, at most `max_bytes` of it. A final
/// newline belongs to its line and is kept.
pub(crate) fn tail(spool: &Spool, lines: usize, max_bytes: Option<usize>) -> std::io::Result<Tail> {
    let end = spool.len();
    let mut start = start_of_last_lines(end, lines, |from, count| spool.read_at(from, count))?;
    if let Some(max_bytes) = max_bytes {
        start = start.max(end.saturating_sub(u64::try_from(max_bytes).unwrap_or(u64::MAX)));
    }
    let count = usize::try_from(end - start).unwrap_or(usize::MAX);
    let bytes = spool.read_at(start, count)?;
    Ok(Tail {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        is_truncated: start > 0,
    })
}

/// Where the last `lines` lines of `end` bytes begin, read block by block from
/// the end.
fn start_of_last_lines<B: AsRef<[u8]>>(
    end: u64,
    lines: usize,
    read: impl Fn(u64, usize) -> std::io::Result<B>,
) -> std::io::Result<u64> {
    if lines == 0 {
        return Ok(end);
    }
    let mut newlines_left = lines;
    let mut block_end = end;
    while block_end > 0 {
        let block_start = block_end.saturating_sub(BLOCK_BYTES as u64);
        let count = usize::try_from(block_end - block_start).unwrap_or(BLOCK_BYTES);
        let block = read(block_start, count)?;
        for (index, byte) in block.as_ref().iter().enumerate().rev() {
            let after = block_start + index as u64 + 1;
            // The newline at the very end closes the last line; it starts none.
            if *byte == b'\n' && after < end {
                newlines_left -= 1;
                if newlines_left == 0 {
                    return Ok(after);
                }
            }
        }
        block_end = block_start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::start_of_last_lines;

    fn last(text: &[u8], lines: usize) -> &[u8] {
        let read = |from: u64, count: usize| {
            let from = usize::try_from(from).unwrap();
            Ok(text[from..from + count].to_vec())
        };
        let start = start_of_last_lines(text.len() as u64, lines, read).unwrap();
        &text[usize::try_from(start).unwrap()..]
    }

    #[test]
    fn the_last_lines_keep_their_final_newline() {
        assert_eq!(last(b"1\n2\n3\n", 2), b"2\n3\n");
        assert_eq!(last(b"1\n2\n3", 2), b"2\n3");
        assert_eq!(last(b"1\n2\n", 2), b"1\n2\n");
        assert_eq!(last(b"\n\n\n", 2), b"\n\n");
        assert_eq!(last(b"\n", 1), b"\n");
        assert_eq!(last(b"", 2), b"");
        assert_eq!(last(b"x", 0), b"");
    }

    #[test]
    fn lines_are_found_across_blocks() {
        let mut text = b"first\n".to_vec();
        text.extend(vec![b'a'; 200_000]);
        text.extend(b"\nlast\n");
        assert_eq!(last(&text, 1), b"last\n");
        assert_eq!(last(&text, 2).len(), 200_006);
        assert_eq!(last(&text, 3), text);
    }
}
