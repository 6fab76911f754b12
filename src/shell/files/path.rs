//! A path of a file in the guest, cut into its directory and its name.

use crate::shell::prelude::anchored;
use crate::shell::words::{Unrepresentable, Word, check_path};

/// The longest name of one file or directory, in bytes (`NAME_MAX` of every common file system).
const MAX_NAME_BYTES: usize = 255;

/// A path that can be carried into a guest.
pub(super) struct FilePath<'a> {
    path: &'a str,
}

impl<'a> FilePath<'a> {
    pub(super) fn new(path: &'a str) -> Result<Self, Unrepresentable> {
        check_path(Word::FilePath, path)?;
        match path.split('/').map(str::len).max() {
            Some(bytes) if bytes > MAX_NAME_BYTES => Err(Unrepresentable::TooLong {
                word: Word::FileName,
                bytes,
                limit_bytes: MAX_NAME_BYTES,
            }),
            _ => Ok(Self { path }),
        }
    }

    /// Whether it is taken from the home directory.
    pub(super) fn is_relative(&self) -> bool {
        !self.path.starts_with('/')
    }

    /// The whole path, never an option.
    pub(super) fn whole(&self) -> String {
        anchored(self.path)
    }

    /// The directory, never an option, and the name in it. The name is empty for a path that ends
    /// in a slash, which only a directory can have.
    pub(super) fn split(&self) -> (String, &'a str) {
        match self.path.rsplit_once('/') {
            None => (".".to_owned(), self.path),
            Some(("", name)) => ("/".to_owned(), name),
            Some((directory, name)) => (anchored(directory), name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FilePath;

    fn split(path: &str) -> (String, &str) {
        FilePath::new(path).unwrap().split()
    }

    #[test]
    fn h7_a_path_is_cut_at_its_last_slash() {
        assert_eq!(split("/tmp/a b"), ("/tmp".to_owned(), "a b"));
        assert_eq!(split("/top"), ("/".to_owned(), "top"));
        assert_eq!(split("x.txt"), (".".to_owned(), "x.txt"));
        assert_eq!(split("-d/-rf"), ("./-d".to_owned(), "-rf"));
        assert_eq!(split("/tmp/"), ("/tmp".to_owned(), ""));
        assert_eq!(split("~/x"), ("./~".to_owned(), "x"));
    }

    #[test]
    fn h7_a_name_may_hold_255_bytes_and_no_more() {
        let longest = "é".repeat(127) + "x";
        assert!(FilePath::new(&format!("/tmp/{longest}/{longest}")).is_ok());
        let refusal = FilePath::new(&format!("/tmp/{longest}x")).err().unwrap();
        assert_eq!(
            refusal.to_string(),
            "a name in the path is 256 bytes long; a Linux guest takes at most 255"
        );
        assert!(FilePath::new(&"a/".repeat(2_048)).is_err());
        assert!(FilePath::new("").is_err());
        assert!(FilePath::new("a\0b").is_err());
    }
}
