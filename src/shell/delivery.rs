//! How a script gets into the guest: as the command string itself, or as an uploaded file that a
//! short command string reads.

use std::fmt;

use super::nonce::Nonce;
use super::prelude::Script;

/// The longest script that travels as the command string, in bytes.
///
/// The service takes a string of about 131,000 bytes (measured by its official client), which is
/// the kernel's limit for one argument. How many bytes of it the service uses itself is unknown,
/// so that a tenth stays free.
pub const MAX_COMMAND_BYTES: usize = 120_000;

/// One call into the guest.
///
/// `Debug` shows sizes only: the text holds arguments and environment values.
#[derive(Clone, PartialEq, Eq)]
pub struct Wrapped {
    /// What to execute.
    pub command: String,
    /// What to upload before, when the script is too long for [`command`](Self::command).
    pub upload: Option<ScriptUpload>,
}

/// A script that travels as a file. It removes the file before it does anything else.
#[derive(Clone, PartialEq, Eq)]
pub struct ScriptUpload {
    /// The absolute guest path, [`Nonce::script_path`].
    pub path: String,
    /// The file's content.
    pub content: String,
}

impl Wrapped {
    pub(super) fn deliver(script: &Script, nonce: &Nonce) -> Self {
        let inline = script.text("");
        if inline.len() <= MAX_COMMAND_BYTES {
            return Self {
                command: inline,
                upload: None,
            };
        }
        let path = nonce.script_path();
        let content = script.text(&format!("rm -f {path}\n"));
        // Read by the same shell that would run the command string, so that the length of a
        // script changes nothing but its way.
        let command = format!(
            "\\unalias -a 2>/dev/null\n\
             if \\test -r {path}\n\
             then \\. {path}\n\
             else {say}\n\
             fi\n",
            say = script.missing_upload(),
        );
        Self {
            command,
            upload: Some(ScriptUpload { path, content }),
        }
    }
}

impl fmt::Debug for Wrapped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Wrapped")
            .field("command_bytes", &self.command.len())
            .field("upload", &self.upload)
            .finish()
    }
}

impl fmt::Debug for ScriptUpload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ScriptUpload")
            .field("path", &self.path)
            .field("content_bytes", &self.content.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_COMMAND_BYTES;
    use crate::shell::{Command, Nonce, Program, wrap};

    #[test]
    fn r14_a_script_of_the_longest_command_travels_as_one_and_a_longer_one_as_a_file() {
        let nonce = Nonce::from_random([4; 16]);
        let wrapped = |length| {
            let command = Command::new(Program::ShellText("x".repeat(length)));
            wrap(&command, &nonce).unwrap()
        };
        let around = wrapped(1).command.len() - 1;
        let longest = wrapped(MAX_COMMAND_BYTES - around);
        assert_eq!(longest.command.len(), MAX_COMMAND_BYTES);
        assert!(longest.upload.is_none());

        let longer = wrapped(MAX_COMMAND_BYTES - around + 1);
        let upload = longer.upload.unwrap();
        assert_eq!(upload.path, nonce.script_path());
        assert!(upload.content.contains(&"x".repeat(1000)));
        assert!(longer.command.contains(&upload.path) && longer.command.len() < 4096);
    }
}
