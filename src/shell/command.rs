//! A command to run in a guest, as the caller means it.

use std::fmt;

use super::words::{Unrepresentable, Word, check_path, check_string, check_variable};

/// What to run.
#[derive(Clone, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments, passed on byte for byte. The program is looked up in the
    /// command's own `PATH`, and is never a function or builtin of a shell.
    Arguments(Vec<String>),
    /// Text for the guest's `sh -c`.
    ShellText(String),
}

/// A command with its surroundings, before it is made into a script.
///
/// `Debug` shows sizes only: arguments, values and paths may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// What to run.
    pub program: Program,
    /// Where to run it: absolute, or relative to the user's home directory; taken literally, `~`
    /// too. `None` is the home directory.
    pub working_directory: Option<String>,
    /// Variables added to the guest's own environment. Of two of one name the later wins.
    pub environment: Vec<(String, String)>,
    /// The length of the standard input that the caller uploads to
    /// [`Nonce::stdin_path`](super::Nonce::stdin_path) first, in bytes. `None` gives the command
    /// `/dev/null`.
    pub stdin_bytes: Option<u64>,
    /// How much of each stream comes back, counted from its start, in bytes.
    pub max_output_bytes: u64,
    /// How much of both streams together may stand in the record itself, in bytes; what does not
    /// fit stays in the guest for a download.
    pub inline_limit_bytes: u64,
}

impl Command {
    /// The documented limit of a result that comes back in one round trip, for both streams
    /// together: 32 KiB.
    pub const DEFAULT_INLINE_LIMIT_BYTES: u64 = 32 * 1024;
    /// The documented limit of a stream: 1 MiB.
    pub const DEFAULT_MAX_OUTPUT_BYTES: u64 = 1024 * 1024;

    /// `program` in the home directory, without additions to the environment, without input, with
    /// the documented limits.
    #[must_use]
    pub fn new(program: Program) -> Self {
        Self {
            program,
            working_directory: None,
            environment: Vec::new(),
            stdin_bytes: None,
            max_output_bytes: Self::DEFAULT_MAX_OUTPUT_BYTES,
            inline_limit_bytes: Self::DEFAULT_INLINE_LIMIT_BYTES,
        }
    }

    /// Tells whether a Linux guest can be given this command at all.
    ///
    /// # Errors
    ///
    /// The first string that cannot be passed on, by name.
    pub fn check(&self) -> Result<(), Unrepresentable> {
        match &self.program {
            Program::Arguments(words) => {
                if words.is_empty() {
                    return Err(Unrepresentable::Missing(Word::Argument(0)));
                }
                for (position, word) in words.iter().enumerate() {
                    check_string(Word::Argument(position), word)?;
                }
            }
            Program::ShellText(text) => check_string(Word::ShellText, text)?,
        }
        for (name, value) in &self.environment {
            check_variable(name, value)?;
        }
        match &self.working_directory {
            Some(path) => check_path(Word::WorkingDirectory, path),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(words) => write!(formatter, "Arguments({} words)", words.len()),
            Self::ShellText(text) => write!(formatter, "ShellText({} bytes)", text.len()),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Command")
            .field("program", &self.program)
            .field(
                "working_directory",
                &self.working_directory.as_ref().map(String::len),
            )
            .field("environment", &self.environment.len())
            .field("stdin_bytes", &self.stdin_bytes)
            .field("max_output_bytes", &self.max_output_bytes)
            .field("inline_limit_bytes", &self.inline_limit_bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Program};

    #[test]
    fn v17_debug_shows_no_argument_no_value_and_no_path() {
        let mut command = Command::new(Program::Arguments(vec!["login".into(), "hunter2".into()]));
        command
            .environment
            .push(("TOKEN".into(), "swordfish".into()));
        command.working_directory = Some("/srv/private".into());
        let shown = format!("{command:?}");
        for hidden in ["hunter2", "swordfish", "private"] {
            assert!(!shown.contains(hidden), "{shown}");
        }
    }

    #[test]
    fn r18_a_command_has_the_documented_limits() {
        let command = Command::new(Program::ShellText("true".into()));
        assert_eq!(command.max_output_bytes, 1_048_576);
        assert_eq!(command.inline_limit_bytes, 32_768);
    }

    #[test]
    fn e8_a_command_without_a_program_is_refused() {
        assert!(
            Command::new(Program::Arguments(Vec::new()))
                .check()
                .is_err()
        );
        assert!(
            Command::new(Program::Arguments(vec![String::new()]))
                .check()
                .is_ok()
        );
        assert!(
            Command::new(Program::ShellText(String::new()))
                .check()
                .is_ok()
        );
    }

    #[test]
    fn e8_an_empty_working_directory_is_refused() {
        let mut command = Command::new(Program::ShellText("pwd".into()));
        command.working_directory = Some(String::new());
        assert_eq!(
            command.check().unwrap_err().to_string(),
            "the working directory is missing"
        );
    }
}
