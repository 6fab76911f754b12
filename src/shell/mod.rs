//! What runs inside a Devbox: shell scripts that carry a call into the guest, and the records that
//! carry its result back.
//!
//! Runloop runs one shell string and answers with text. This room turns a command, a file read or a
//! file write into such a string and reads the one record that it prints, so that arguments stay
//! separate and bytes stay exact. Everything here is a pure function from values to text or from
//! text to values; nothing knows of HTTP, of Runloop's routes or of clocks.
//!
//! Start at [`wrap`] and [`read_result`]; `frame` holds the grammar of a record, `prelude`
//! what makes a script independent of the shell's start-up files. The scripts are written for POSIX
//! sh and run by dash, bash and busybox ash in `tests/shell`.
//!
//! A script is never a security boundary inside the guest: whoever runs as the same user there can
//! read its text from `/proc` and imitate it. It holds against everything a program does to its own
//! standard streams, environment, exit code and children.

mod command;
mod delivery;
mod files;
mod frame;
mod launch;
mod leftovers;
mod live;
mod nonce;
mod prelude;
mod quote;
mod result;
mod words;
mod wrap;

pub use command::{Command, Program};
pub use delivery::{MAX_COMMAND_BYTES, ScriptUpload, Wrapped};
pub use files::{
    FileContent, FileFault, FileSource, READ_INLINE_LIMIT_BYTES, WRITE_INLINE_LIMIT_BYTES, Written,
    probe_file, read_probe, read_written, write_file,
};
pub use frame::{Captured, Content, RecordError};
pub use leftovers::{CleanUp, Partial, clean_up, read_clean_up, read_out, read_partial};
pub use live::{START_FAILURE_EXIT_CODE, read_start_failure, wrap_live};
pub use nonce::Nonce;
pub use quote::quote;
pub use result::{ExecResult, Refusal, WorkingDirectoryFault, read_result};
pub use words::{MAX_PATH_BYTES, MAX_STRING_BYTES, Unrepresentable, Word, check_environment_name};
pub use wrap::wrap;
