//! A wrapper that did not start its command, as an error.

use crate::error::{Code, Error};
use crate::shell::{Nonce, Refusal, Unrepresentable, Word, WorkingDirectoryFault};

/// The error of a call that no guest can be given. Nothing was sent.
pub(in crate::adapter) fn unrepresentable(reason: &Unrepresentable) -> Error {
    let message = reason.to_string();
    match reason {
        Unrepresentable::TooLong {
            word: Word::FilePath | Word::FileName,
            ..
        } => Error::new(Code::FileError, message).with_reason("name_too_long"),
        _ => Error::invalid_argument(message),
    }
}

/// The error of a command that its wrapper refused to start.
pub(in crate::adapter) fn refused(
    refusal: &Refusal,
    working_directory: Option<&str>,
    nonce: &Nonce,
) -> Error {
    match refusal {
        Refusal::MissingTool(tool) => missing_tool("exec", tool),
        Refusal::WorkingDirectory(fault) => {
            directory(*fault, working_directory.unwrap_or("the home directory"))
        }
        Refusal::StdinMissing | Refusal::StdinIncomplete => Error::protocol(
            "standard input was uploaded and is not whole in the Devbox; the command was not started",
        ),
        Refusal::StdinKept => Error::protocol(
            "standard input was uploaded as another user's file, which the command's user \
             cannot remove; the command was not started",
        )
        .with_outcome(|outcome| outcome.leftovers.push(nonce.stdin_path())),
        Refusal::ScriptMissing => {
            Error::protocol("the command was uploaded and is not in the Devbox; it was not started")
        }
        Refusal::NoTemporaryDirectory => Error::new(
            Code::FileError,
            "the command was not started: no directory could be made under /tmp of the Devbox, \
             which may be full or read-only",
        )
        .with_reason("no_space")
        .with_resource("file", "/tmp"),
    }
}

/// The error of an image that lacks a tool.
pub(in crate::adapter) fn missing_tool(feature: &'static str, tool: &str) -> Error {
    let reason = format!(
        "the image has no {tool} on its PATH; commands need sh, mktemp, base64, head, wc, tr, env \
         and rm, files also chmod, mkdir, mv and stat"
    );
    Error::unsupported(feature, reason)
}

fn directory(fault: WorkingDirectoryFault, path: &str) -> Error {
    let (code, sentence, reason) = match fault {
        WorkingDirectoryFault::Missing => (Code::NotFound, "does not exist", None),
        WorkingDirectoryFault::NotDirectory => (Code::NotFound, "is not a directory", None),
        WorkingDirectoryFault::Permission => {
            (Code::FileError, "may not be entered", Some("permission"))
        }
    };
    let message = format!("working directory {path:?} {sentence}; the command was not started");
    let error = Error::new(code, message).with_resource("working directory", path);
    match reason {
        Some(reason) => error.with_reason(reason),
        None => error,
    }
}
