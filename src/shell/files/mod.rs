//! Scripts that read and write files in the guest.
//!
//! They need a little more of an image than a command does, because a shell alone can neither
//! rename a file nor keep its mode: mkdir, mv, chmod and stat to write, readlink and chown where a
//! link is met or an owner must be kept. A tool that is missing is named, as everywhere.

mod fault;
mod path;
mod read;
mod write;

pub use fault::FileFault;
pub use read::{FileContent, READ_INLINE_LIMIT_BYTES, probe_file, read_probe};
pub use write::{FileSource, WRITE_INLINE_LIMIT_BYTES, Written, read_written, write_file};
