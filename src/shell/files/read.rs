//! Reading a file: a look at what the path is, and its content where that is small.

use std::fmt;

use super::fault::{FileFault, define_why};
use super::path::FilePath;
use crate::shell::delivery::Wrapped;
use crate::shell::frame::{Record, RecordError};
use crate::shell::nonce::Nonce;
use crate::shell::prelude::Script;
use crate::shell::quote::push_quoted;
use crate::shell::words::Unrepresentable;

/// The longest file whose content comes back with the look at it: 64 KiB.
pub const READ_INLINE_LIMIT_BYTES: u64 = 64 * 1024;

/// A regular file that can be read. `Debug` shows sizes only.
#[derive(Clone, PartialEq, Eq)]
pub enum FileContent {
    /// All of it, read at one moment.
    Inline(Vec<u8>),
    /// More than [`READ_INLINE_LIMIT_BYTES`], to be downloaded.
    Large {
        /// The absolute path, so that nobody takes a `~` in it for a home directory.
        path: String,
        /// Its length when it was looked at, in bytes.
        bytes: u64,
    },
}

impl fmt::Debug for FileContent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(bytes) => write!(formatter, "Inline({} bytes)", bytes.len()),
            Self::Large { bytes, .. } => write!(formatter, "Large({bytes} bytes)"),
        }
    }
}

/// A script that tells what `path` is and prints the content of a small regular file.
///
/// A FIFO or a device is recognised without being opened. Relative paths are taken from the home
/// directory, literally. Changes nothing, so that it may run again.
///
/// # Errors
///
/// [`Unrepresentable`] for a path that no guest can have.
pub fn probe_file(path: &str, nonce: &Nonce) -> Result<Wrapped, Unrepresentable> {
    let path = FilePath::new(path)?;
    let mut script = Script::with_record(nonce);
    script.define_refuse("");
    define_why(&mut script);
    script.require_tools("base64 head wc tr");
    if path.is_relative() {
        script.go_home();
    }
    script.push("_bs_x=");
    push_quoted(script.body_mut(), &path.whole());
    // What cannot be seen is opened for its error alone: that never waits, as a FIFO would.
    script.push(
        "\n\
         test ! -d \"$_bs_x\" || _bs_refuse file:directory\n\
         test -e \"$_bs_x\" || _bs_why \"$( { true <\"$_bs_x\"; } 2>&1 )\"\n\
         test -f \"$_bs_x\" || _bs_refuse file:not-regular\n\
         test -r \"$_bs_x\" || _bs_refuse file:permission\n\
         _bs_o=$(wc -c 2>/dev/null <\"$_bs_x\") || _bs_refuse file:not-regular\n",
    );
    script.push(&format!(
        "if test \"$_bs_o\" -le {limit}\n\
         then _bs_say \"file:$_bs_o:inline:$(head -c {one_more} <\"$_bs_x\" | base64 | tr -d '\\n')\"\n\
         else _bs_say \"file:$_bs_o:large:$(pwd | base64 | tr -d '\\n')\"\n\
         fi\n",
        limit = READ_INLINE_LIMIT_BYTES,
        one_more = READ_INLINE_LIMIT_BYTES + 1,
    ));
    Ok(Wrapped::deliver(&script, nonce))
}

/// Reads the record of [`probe_file`] for the same `path`.
///
/// # Errors
///
/// [`RecordError`] when there is no whole, consistent record.
pub fn read_probe(
    text: &str,
    path: &str,
    nonce: &Nonce,
) -> Result<Result<FileContent, FileFault>, RecordError> {
    let record = Record::find(text, nonce)?;
    let mut fields = record.fields();
    match fields.text("kind")? {
        "file" => {}
        "refused" => {
            return FileFault::read(fields).map(|fault| match fault {
                // dash has the same words for both.
                FileFault::ParentNotDirectory => Err(FileFault::Missing),
                fault => Err(fault),
            });
        }
        _ => return Err(RecordError::Malformed("kind")),
    }
    let bytes: u64 = fields.number("size")?;
    let form = fields.text("form")?;
    let content = fields.bytes("content")?;
    fields.end()?;
    match form {
        // A file that grew past the limit between the count and the read is cut.
        "inline" if content.len() as u64 > READ_INLINE_LIMIT_BYTES => {
            Err(RecordError::Malformed("content"))
        }
        "inline" => Ok(Ok(FileContent::Inline(content))),
        "large" => {
            let path = absolute(path, content)?;
            Ok(Ok(FileContent::Large { path, bytes }))
        }
        _ => Err(RecordError::Malformed("form")),
    }
}

/// `path` from the directory that `pwd` printed.
fn absolute(path: &str, mut directory: Vec<u8>) -> Result<String, RecordError> {
    if path.starts_with('/') {
        return Ok(path.to_owned());
    }
    if directory.last() == Some(&b'\n') {
        directory.pop();
    }
    let directory =
        String::from_utf8(directory).map_err(|_| RecordError::Malformed("directory"))?;
    Ok(format!("{}/{path}", directory.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::{FileContent, absolute, read_probe};
    use crate::shell::{FileFault, Nonce, RecordError};

    fn read(fields: &str) -> Result<Result<FileContent, FileFault>, RecordError> {
        let nonce = Nonce::from_random([4; 16]);
        let text = format!("beachside:{nonce}:{fields}:end:{nonce}");
        read_probe(&text, "x", &nonce)
    }

    #[test]
    fn h2_an_empty_file_is_no_bytes() {
        assert_eq!(
            read("file:0:inline:"),
            Ok(Ok(FileContent::Inline(Vec::new())))
        );
    }

    #[test]
    fn h1_a_large_file_is_named_by_its_absolute_path() {
        let path = "/home/user/x".to_owned();
        let large = FileContent::Large {
            path,
            bytes: 99_999,
        };
        assert_eq!(read("file:99999:large:L2hvbWUvdXNlcgo="), Ok(Ok(large)));
        assert_eq!(absolute("x", b"/\n".to_vec()), Ok("/x".to_owned()));
        assert_eq!(
            absolute("~", b"/odd\n\n".to_vec()),
            Ok("/odd\n/~".to_owned())
        );
        assert!(absolute("x", b"/\xff\n".to_vec()).is_err());
    }

    #[test]
    fn h8_a_fault_is_its_own_value() {
        assert_eq!(
            read("refused:file:not-regular"),
            Ok(Err(FileFault::NotRegular))
        );
        assert_eq!(
            read("refused:tool:wc"),
            Ok(Err(FileFault::MissingTool("wc".into())))
        );
        assert!(read("refused:file:strange").is_err());
        assert!(read("ran:0").is_err());
    }

    #[test]
    fn v17_debug_shows_no_content() {
        let shown = format!("{:?}", read("file:6:inline:c2VjcmV0"));
        assert!(
            shown.contains("6 bytes") && !shown.contains("secret"),
            "{shown}"
        );
    }
}
