//! Why something in this room failed.

use std::io;

/// Why a machine or a Devbox could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// The Devbox is suspended or destroyed, or its machine has ended.
    #[error("the Devbox is not running")]
    NotRunning,
    /// A name, script or variable that no process can be given, such as one with a NUL.
    #[error("{0}")]
    InvalidInput(String),
    /// The operating system refused.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl GuestError {
    pub(super) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            source: source.into(),
        }
    }
}

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Nothing has this path, or a part of it is missing or no directory.
    #[error("no such file or directory")]
    Missing,
    /// The path leads to a directory.
    #[error("is a directory")]
    IsDirectory,
    /// The path leads to a pipe, a socket or a device.
    #[error("not a regular file")]
    NotRegular,
    /// The Devbox's user may not.
    #[error("permission denied")]
    PermissionDenied,
    /// The disk is full, or the limit of its size is reached.
    #[error("no space left on device")]
    NoSpace,
    /// A part of the path is over 255 bytes, or all of it over 4,095.
    #[error("file name too long")]
    NameTooLong,
    /// The file holds more than the caller allowed, in bytes.
    #[error("the file holds {actual_bytes} bytes, over the limit of {max_bytes}")]
    TooLarge {
        /// The size found.
        actual_bytes: u64,
        /// The limit given.
        max_bytes: u64,
    },
    /// A path that is empty or holds a NUL.
    #[error("invalid path")]
    InvalidPath,
    /// The Devbox is not running.
    #[error("the Devbox is not running")]
    NotRunning,
    /// Anything else that the system said.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => Self::Missing,
            Some(libc::EISDIR) => Self::IsDirectory,
            Some(libc::ENXIO | libc::ENODEV) => Self::NotRegular,
            Some(libc::EACCES | libc::EPERM | libc::EROFS | libc::ETXTBSY) => {
                Self::PermissionDenied
            }
            Some(libc::ENOSPC | libc::EDQUOT) => Self::NoSpace,
            Some(libc::ENAMETOOLONG) => Self::NameTooLong,
            _ => Self::Io(error),
        }
    }
}

impl From<GuestError> for FileError {
    fn from(error: GuestError) -> Self {
        match error {
            GuestError::NotRunning => Self::NotRunning,
            GuestError::InvalidInput(_) => Self::InvalidPath,
            GuestError::System { source, .. } => source.into(),
        }
    }
}
