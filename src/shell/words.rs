//! Which strings a Linux guest can be given at all.
//!
//! `execve` takes NUL-terminated strings of at most 131,072 bytes each, the NUL included
//! (`MAX_ARG_STRLEN`), and a path of at most 4,096. What breaks these can be refused before
//! anything is sent; the guest's limit on the total (`ARG_MAX`) depends on its stack limit and is
//! left to the guest, which answers with exit code 126.

use std::fmt;

/// The longest argument, shell text or `NAME=value` string, in bytes.
pub const MAX_STRING_BYTES: usize = 131_071;

/// The longest path, in bytes.
pub const MAX_PATH_BYTES: usize = 4_095;

/// How much of a refused environment name a message repeats, in characters.
const SHOWN_NAME_CHARS: usize = 40;

/// Which string of a call is meant. Holds names and positions, never values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The program or an argument, counted from 0.
    Argument(usize),
    /// A command given as shell text.
    ShellText,
    /// The environment variable of this name.
    Environment(String),
    /// The working directory.
    WorkingDirectory,
    /// The path of a file to read or write.
    FilePath,
    /// One name in the path of a file.
    FileName,
}

impl fmt::Display for Word {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(0) => formatter.write_str("the program"),
            Self::Argument(position) => write!(formatter, "argument {position}"),
            Self::ShellText => formatter.write_str("the shell text"),
            Self::Environment(name) => write!(formatter, "environment variable {name:.64}"),
            Self::WorkingDirectory => formatter.write_str("the working directory"),
            Self::FilePath => formatter.write_str("the path"),
            Self::FileName => formatter.write_str("a name in the path"),
        }
    }
}

/// Why a call cannot be carried into a guest. Nothing has been sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrepresentable {
    /// A string holds a NUL, which ends every string a program receives.
    #[error("{0} holds a NUL byte, which no program can be given")]
    Nul(Word),
    /// A string is longer than the kernel passes on.
    #[error("{word} is {bytes} bytes long; a Linux guest takes at most {limit_bytes}")]
    TooLong {
        /// Which string.
        word: Word,
        /// Its length. For an environment variable the name and the `=` count too.
        bytes: usize,
        /// The longest that passes.
        limit_bytes: usize,
    },
    /// An argument vector without a program, or a path without a character.
    #[error("{0} is missing")]
    Missing(Word),
    /// An environment name that is not letters, digits and `_`, or that starts with a digit.
    #[error("{shown:?} is no name of an environment variable (letters, digits and _ only)")]
    EnvironmentName {
        /// The beginning of the name. Stops before a `=`, behind which a value may stand.
        shown: String,
    },
}

/// Accepts what POSIX calls a name: an ASCII letter or `_`, then letters, digits and `_`.
///
/// `execve` would carry more, but shells drop other names on the way to the program.
///
/// # Errors
///
/// [`Unrepresentable::EnvironmentName`] for every other name, the empty one too.
pub fn check_environment_name(name: &str) -> Result<(), Unrepresentable> {
    let mut bytes = name.bytes();
    let starts_well = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if starts_well && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Ok(());
    }
    let before_value = name.split('=').next().unwrap_or_default();
    Err(Unrepresentable::EnvironmentName {
        shown: before_value.chars().take(SHOWN_NAME_CHARS).collect(),
    })
}

pub(super) fn check_variable(name: &str, value: &str) -> Result<(), Unrepresentable> {
    check_environment_name(name)?;
    let word = || Word::Environment(name.to_owned());
    if value.contains('\0') {
        return Err(Unrepresentable::Nul(word()));
    }
    check_length(word, name.len() + 1 + value.len(), MAX_STRING_BYTES)
}

pub(super) fn check_string(word: Word, text: &str) -> Result<(), Unrepresentable> {
    if text.contains('\0') {
        return Err(Unrepresentable::Nul(word));
    }
    check_length(|| word, text.len(), MAX_STRING_BYTES)
}

pub(super) fn check_path(word: Word, path: &str) -> Result<(), Unrepresentable> {
    if path.is_empty() {
        return Err(Unrepresentable::Missing(word));
    }
    if path.contains('\0') {
        return Err(Unrepresentable::Nul(word));
    }
    check_length(|| word, path.len(), MAX_PATH_BYTES)
}

fn check_length(
    word: impl FnOnce() -> Word,
    bytes: usize,
    limit_bytes: usize,
) -> Result<(), Unrepresentable> {
    if bytes <= limit_bytes {
        return Ok(());
    }
    Err(Unrepresentable::TooLong {
        word: word(),
        bytes,
        limit_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::{MAX_STRING_BYTES, Unrepresentable, Word, check_string, check_variable};

    #[test]
    fn e5_names_that_no_shell_would_carry_are_refused() {
        for name in [
            "",
            "1X",
            "A-B",
            "A.B",
            "X=Y",
            "X;touch /tmp/p",
            "X\nY",
            "X\0",
            "é",
            " X",
            "X ",
        ] {
            assert!(check_variable(name, "v").is_err(), "{name:?}");
        }
        for name in ["X", "_", "_1", "__proto__", "PATH", "a", "constructor"] {
            assert_eq!(check_variable(name, "v"), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn e7_a_name_that_is_too_long_is_shown_by_its_beginning() {
        let refusal = check_variable(&"X".repeat(MAX_STRING_BYTES + 1), "").unwrap_err();
        assert!(refusal.to_string().len() < 200, "{refusal}");
    }

    #[test]
    fn v17_a_refused_name_is_shown_without_what_follows_its_equals_sign() {
        let refusal = check_variable("API_KEY=hunter2", "").unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "\"API_KEY\" is no name of an environment variable (letters, digits and _ only)"
        );
    }

    #[test]
    fn e7_a_string_may_hold_131071_bytes_and_no_more() {
        let longest = "x".repeat(MAX_STRING_BYTES);
        assert_eq!(check_string(Word::Argument(1), &longest), Ok(()));
        assert_eq!(check_variable("AB", longest.get(3..).unwrap()), Ok(()));
        let refusal = check_variable("AB", longest.get(2..).unwrap()).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "environment variable AB is 131072 bytes long; a Linux guest takes at most 131071"
        );
        let refusal = check_string(Word::ShellText, &format!("{longest}x")).unwrap_err();
        assert!(matches!(
            refusal,
            Unrepresentable::TooLong { bytes: 131_072, .. }
        ));
    }

    #[test]
    fn e8_a_nul_is_refused_and_never_cut_off() {
        assert_eq!(
            check_string(Word::Argument(2), "a\0b")
                .unwrap_err()
                .to_string(),
            "argument 2 holds a NUL byte, which no program can be given"
        );
        let refusal = check_variable("SECRET", "s3cr\0et").unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "environment variable SECRET holds a NUL byte, which no program can be given"
        );
    }
}
