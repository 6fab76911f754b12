//! Quoting of one word for a POSIX shell.

/// Quotes `text` so that every POSIX shell reads it back as one word, byte for byte.
///
/// Always adds quotes, so that the word is never an alias, a reserved word, a pattern or an
/// assignment. A NUL cannot be quoted; callers rule it out with the checks in `words`.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_quoted(&mut quoted, text);
    quoted
}

/// Appends `text`, quoted as [`quote`] does, to a script.
pub(super) fn push_quoted(script: &mut String, text: &str) {
    script.push('\'');
    let mut pieces = text.split('\'');
    if let Some(first) = pieces.next() {
        script.push_str(first);
    }
    for piece in pieces {
        script.push_str("'\\''");
        script.push_str(piece);
    }
    script.push('\'');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::quote;
    use crate::cases::cases;

    /// What a POSIX shell reads: everything between single quotes as it stands, and behind a
    /// backslash outside of them the next character. `None` where it would not be one word.
    fn read_back(quoted: &str) -> Option<String> {
        let mut word = String::new();
        let mut rest = quoted.chars();
        while let Some(character) = rest.next() {
            match character {
                '\'' => loop {
                    match rest.next()? {
                        '\'' => break,
                        inside => word.push(inside),
                    }
                },
                '\\' => word.push(rest.next()?),
                _ => return None,
            }
        }
        Some(word)
    }

    proptest! {
        #![proptest_config(cases(1000))]

        #[test]
        fn r14_any_text_is_one_word_that_reads_back_as_it_was(
            text in prop_oneof![any::<String>(), "['\"$`\\\\ \n;&|x]{0,40}"],
        ) {
            prop_assert_eq!(read_back(&quote(&text)), Some(text));
        }
    }

    #[test]
    fn a_word_is_wrapped_in_single_quotes() {
        assert_eq!(quote(""), "''");
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("$(id) `id` \\ \" ! *\n"), "'$(id) `id` \\ \" ! *\n'");
    }

    #[test]
    fn a_single_quote_leaves_the_quotes_for_one_character() {
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote("'"), r"''\'''");
        assert_eq!(quote("''"), r"''\'''\'''");
    }
}
