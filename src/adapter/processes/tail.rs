//! The end of a stream, as the service's view of the ended execution shows it.
//!
//! A connection that is closed in order with nothing new may be the end of the
//! stream, or may have been cut before anything came. The view of a completed
//! execution holds the last lines of its output, so it tells which: text that
//! does not end as the view does is not whole. Only the end is compared, so
//! equal lines before it can hide a cut.

use std::fmt;
use std::sync::Arc;

use crate::wire::text::OutputText;

/// How much of the end is compared.
const MAX_BYTES: usize = 1024;

/// The end of one stream. `Debug` shows its length only.
#[derive(Clone)]
pub(super) struct Tail(Arc<str>);

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tail({} bytes)", self.0.len())
    }
}

impl Tail {
    /// `None` where the view shows nothing, or nothing that can be compared:
    /// bytes that are not UTF-8 may be replaced differently in a view.
    pub(super) fn of(view: Option<&OutputText>) -> Option<Self> {
        let text = last_bytes(&view?.0);
        let text = text.rsplit(char::REPLACEMENT_CHARACTER).next()?;
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// Whether what was received can be all, judged by its end.
    pub(super) fn ends(&self, received: &Received) -> bool {
        if received.end.len() >= self.0.len() {
            return received.end.ends_with(&*self.0);
        }
        !received.is_from_start && self.0.ends_with(&received.end)
    }
}

/// The end of what was received.
pub(super) struct Received {
    end: String,
    is_from_start: bool,
}

impl Received {
    /// Nothing yet. `is_from_start`: the stream was opened at 0.
    pub(super) fn new(is_from_start: bool) -> Self {
        Self {
            end: String::new(),
            is_from_start,
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        let text = last_bytes(text);
        if self.end.len() + text.len() > 4 * MAX_BYTES {
            self.end = last_bytes(&self.end).to_owned();
        }
        self.end.push_str(text);
    }
}

fn last_bytes(text: &str) -> &str {
    let mut from = text.len().saturating_sub(MAX_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_whole(view: &str, received: &[&str], is_from_start: bool) -> Option<bool> {
        let mut all = Received::new(is_from_start);
        received.iter().for_each(|text| all.push(text));
        Some(Tail::of(Some(&OutputText(view.into())))?.ends(&all))
    }

    #[test]
    fn b1_text_is_whole_when_it_ends_as_the_view_does() {
        assert_eq!(is_whole("b\nc\n", &["a\nb", "\nc\n"], true), Some(true));
        assert_eq!(is_whole("b\nc\n", &["a\nb\n"], true), Some(false));
        assert_eq!(is_whole("c\n", &[], true), Some(false));
        let long = "é".repeat(5000);
        assert_eq!(
            is_whole(&long, &[&long[..2000], &long[2000..]], true),
            Some(true)
        );
        assert_eq!(is_whole(&(long.clone() + "x"), &[&long], true), Some(false));
    }

    #[test]
    fn b1_a_reader_from_further_on_needs_only_what_it_has() {
        assert_eq!(is_whole("b\nc\n", &["c\n"], false), Some(true));
        assert_eq!(is_whole("b\nc\n", &[], false), Some(true));
        assert_eq!(is_whole("b\nc\n", &["b\n"], false), Some(false));
    }

    #[test]
    fn b1_a_view_without_output_or_with_replaced_bytes_at_its_end_tells_nothing() {
        assert!(Tail::of(None).is_none());
        assert_eq!(is_whole("", &[], true), None);
        assert_eq!(is_whole("ab\u{FFFD}", &["x"], true), None);
        assert_eq!(
            is_whole("a\u{FFFD}\u{FFFD}b", &["a\u{FFFD}b"], true),
            Some(true)
        );
    }

    #[test]
    fn v17_debug_shows_no_output() {
        let tail = Tail::of(Some(&OutputText("s3cr3t".into())));
        assert_eq!(format!("{tail:?}"), "Some(Tail(6 bytes))");
    }
}
