//! A file's own faults, as errors.

use super::MAX_FILE_BYTES;
use crate::adapter::exec::refusal::missing_tool;
use crate::error::{Code, Error};
use crate::shell::FileFault;

/// The error of a file that could not be read or written.
pub(super) fn fault(fault: &FileFault, path: &str) -> Error {
    let (reason, sentence) = match fault {
        FileFault::Missing => return Error::not_found("file", path),
        FileFault::MissingTool(tool) => return missing_tool("files", tool),
        FileFault::UploadLost | FileFault::ScriptMissing => {
            let message = format!(
                "what was uploaded for {path:?} is not whole in the Devbox; the file is as it was"
            );
            return Error::protocol(message).with_resource("file", path);
        }
        FileFault::IsDirectory => ("is_directory", "is a directory"),
        FileFault::NotRegular => ("not_regular", "is no regular file"),
        FileFault::ParentNotDirectory => ("not_directory", "has a parent that is no directory"),
        FileFault::Permission => ("permission", "may not be read or replaced by this user"),
        FileFault::Owner => (
            "permission",
            "belongs to another user or group, which this user cannot give the new file to",
        ),
        FileFault::NameTooLong => ("name_too_long", "has a name that is too long for its disk"),
        FileFault::NoSpace => ("no_space", "does not fit: the disk or its quota is full"),
        FileFault::Other => ("io_error", "could not be read or written by the Devbox"),
    };
    Error::new(Code::FileError, format!("{path:?} {sentence}"))
        .with_reason(reason)
        .with_resource("file", path)
}

/// The error of a file that is too long to be read.
pub(super) fn too_large(path: &str, bytes: u64) -> Error {
    let message = format!("{path:?} is {bytes} bytes long; at most {MAX_FILE_BYTES} are read");
    Error::new(Code::FileError, message)
        .with_reason("too_large")
        .with_resource("file", path)
}
