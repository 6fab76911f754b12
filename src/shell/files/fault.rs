//! Why a file could not be read or written.

use crate::shell::frame::{Fields, RecordError};
use crate::shell::prelude::Script;

/// Why a file could not be read or written. A file that was to be written is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// There is no such file, as far as this user can see.
    Missing,
    /// The path names a directory.
    IsDirectory,
    /// It is a FIFO, a device or a socket, or links that lead in a circle.
    NotRegular,
    /// A parent of the file is something other than a directory.
    ParentNotDirectory,
    /// This user may not read it, or may not replace it.
    Permission,
    /// The file belongs to another user or group, which this user cannot give the new one to.
    Owner,
    /// The guest's file system refuses the name for its length.
    NameTooLong,
    /// The disk or the quota is full.
    NoSpace,
    /// The uploaded content is not there, or not as long as announced.
    UploadLost,
    /// The guest reports something else, for example an input/output error.
    Other,
    /// The image lacks this tool.
    MissingTool(String),
    /// The uploaded script is not there or cannot be read.
    ScriptMissing,
}

impl FileFault {
    /// Reads what follows `refused`.
    pub(super) fn read(mut fields: Fields<'_>) -> Result<Self, RecordError> {
        let fault = match fields.text("refusal")? {
            "tool" => Self::MissingTool(fields.text("tool")?.to_owned()),
            "script" => Self::ScriptMissing,
            "file" => match fields.text("file")? {
                "missing" => Self::Missing,
                "directory" => Self::IsDirectory,
                "not-regular" => Self::NotRegular,
                "parent" => Self::ParentNotDirectory,
                "permission" => Self::Permission,
                "owner" => Self::Owner,
                "name" => Self::NameTooLong,
                "space" => Self::NoSpace,
                "upload" => Self::UploadLost,
                "other" => Self::Other,
                _ => return Err(RecordError::Malformed("file")),
            },
            _ => return Err(RecordError::Malformed("refusal")),
        };
        fields.end()?;
        Ok(fault)
    }
}

/// Defines `_bs_why`, which refuses for the reason that a tool's message gives.
///
/// Neither a shell nor its tools report an error number; the words for it end their messages and
/// are the same in all of them once the locale is `C`. What comes before may be part of a path.
pub(super) fn define_why(script: &mut Script) {
    script.push(
        "LC_ALL=C\n\
         export LC_ALL\n\
         _bs_why() {\n\
         case $1 in\n\
         *'No space left on device' | *'quota exceeded') _bs_refuse file:space ;;\n\
         *'ermission denied' | *'not permitted' | *'ead-only file system') _bs_refuse file:permission ;;\n\
         *'ot a directory' | *'ile exists') _bs_refuse file:parent ;;\n\
         *'ame too long') _bs_refuse file:name ;;\n\
         *'o such file' | *'o such file or directory' | *nonexistent | *'nonexistent directory') \
         _bs_refuse file:missing ;;\n\
         *'s a directory') _bs_refuse file:directory ;;\n\
         *'levels of symbolic links' | *'ymbolic link loop') _bs_refuse file:not-regular ;;\n\
         esac\n\
         _bs_refuse file:other\n\
         }\n",
    );
}

#[cfg(test)]
mod tests {
    use super::FileFault;
    use crate::shell::{Nonce, RecordError, Written, read_written};

    fn read(fields: &str) -> Result<Result<Written, FileFault>, RecordError> {
        let nonce = Nonce::from_random([9; 16]);
        let text = format!("beachside:{nonce}:{fields}:end:{nonce}\n");
        read_written(&text, &nonce)
    }

    #[test]
    fn every_refusal_of_a_write_is_its_own_value() {
        for (fields, fault) in [
            ("tool:mv", FileFault::MissingTool("mv".into())),
            ("script", FileFault::ScriptMissing),
            ("file:missing", FileFault::Missing),
            ("file:directory", FileFault::IsDirectory),
            ("file:not-regular", FileFault::NotRegular),
            ("file:parent", FileFault::ParentNotDirectory),
            ("file:permission", FileFault::Permission),
            ("file:owner", FileFault::Owner),
            ("file:name", FileFault::NameTooLong),
            ("file:space", FileFault::NoSpace),
            ("file:upload", FileFault::UploadLost),
            ("file:other", FileFault::Other),
        ] {
            assert_eq!(read(&format!("refused:{fields}")), Ok(Err(fault)));
        }
        for (fields, name) in [
            ("refused:file:new", "file"),
            ("refused:new", "refusal"),
            ("refused:script:more", "end"),
            ("read:", "kind"),
        ] {
            assert_eq!(read(fields), Err(RecordError::Malformed(name)), "{fields}");
        }
    }

    #[test]
    fn a_write_names_the_upload_that_is_left() {
        assert_eq!(read("wrote:"), Ok(Ok(Written { left_upload: None })));
        let left_upload = Some("/tmp/x".to_owned());
        assert_eq!(read("wrote:/tmp/x"), Ok(Ok(Written { left_upload })));
    }
}
