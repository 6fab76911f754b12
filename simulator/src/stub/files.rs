//! Files: `/runloop-stub/N` holds N bytes, an upload is checked and forgotten.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::command::leading_number;

static DIRECTORY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("/runloop-stub/"));

/// How many bytes the file of the stub holds that a request's body names.
pub(super) fn size_in_path(body: &[u8]) -> Option<u64> {
    let at = DIRECTORY.find(body)? + DIRECTORY.needle().len();
    leading_number(body.get(at..)?).map(|(size, _)| size)
}

/// The same for a download, which may also be of a stream that a record left
/// in a directory `….oOUTeERR` (see `record.rs`).
pub(super) fn size_of_download(body: &[u8]) -> Option<u64> {
    size_in_path(body).or_else(|| {
        let text = std::str::from_utf8(body).ok()?;
        let (directory, name) = text.split_once("/tmp/beachside-")?.1.split_once('/')?;
        let (stdout, stderr) = directory.split_once(".o")?.1.split_once('e')?;
        let size = if name.starts_with("stdout") {
            stdout
        } else {
            stderr
        };
        size.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_its_file_holds() {
        assert_eq!(
            size_of_download(br#"{"path":"/runloop-stub/64"}"#),
            Some(64)
        );
        let left = br#"{"path":"/tmp/beachside-0123.o70000e12/stderr"}"#;
        assert_eq!(size_of_download(left), Some(12));
        assert_eq!(size_of_download(br#"{"path":"/etc/passwd"}"#), None);
    }
}
