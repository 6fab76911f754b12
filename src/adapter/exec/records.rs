//! What `exec` takes and gives.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::shell::{Command, Program};

/// Longest deadline, in seconds.
const MAX_TIMEOUT_SECONDS: f64 = 3600.0;

/// Deadline where none is given, in seconds.
const DEFAULT_TIMEOUT_SECONDS: f64 = 600.0;

/// A command to run to its end. `Debug` shows no argument, value, path or input.
#[derive(Clone)]
pub struct ExecRequest {
    /// Where.
    pub sandbox_id: String,
    /// What.
    pub command: Program,
    /// Absolute, or relative to the home directory, which is the default.
    pub cwd: Option<String>,
    /// Added to the environment of the sandbox.
    pub env: BTreeMap<String, String>,
    /// All of standard input; empty where there is none.
    pub stdin: Option<Bytes>,
    /// More than 0, at most 3,600; 600 when omitted. Counted from the sending
    /// of the command, after any upload for it.
    pub timeout_seconds: Option<f64>,
    /// Bytes to keep of each stream, at most 1 MiB, the default.
    pub max_output_bytes: Option<u64>,
}

impl fmt::Debug for ExecRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecRequest")
            .field("sandbox_id", &self.sandbox_id)
            .field("env", &self.env.len())
            .field("stdin_bytes", &self.stdin.as_ref().map(Bytes::len))
            .field("timeout_seconds", &self.timeout_seconds)
            .field("max_output_bytes", &self.max_output_bytes)
            .finish_non_exhaustive()
    }
}

impl ExecRequest {
    /// A command in the home directory, without input, with the default limits.
    #[must_use]
    pub fn new(sandbox_id: impl Into<String>, command: Program) -> Self {
        Self {
            sandbox_id: sandbox_id.into(),
            command,
            cwd: None,
            env: BTreeMap::new(),
            stdin: None,
            timeout_seconds: None,
            max_output_bytes: None,
        }
    }

    pub(super) fn timeout(&self) -> Result<Duration> {
        let seconds = self.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        if seconds > 0.0 && seconds <= MAX_TIMEOUT_SECONDS {
            return Ok(Duration::from_secs_f64(seconds));
        }
        Err(Error::invalid_argument(
            "timeoutSeconds must be more than 0 and at most 3600",
        ))
    }

    pub(super) fn command(&self) -> Result<Command> {
        let mut command = Command::new(self.command.clone());
        command.working_directory.clone_from(&self.cwd);
        command.environment = self.env.clone().into_iter().collect();
        command.stdin_bytes = self.stdin.as_ref().map(|bytes| bytes.len() as u64);
        let max = Command::DEFAULT_MAX_OUTPUT_BYTES;
        command.max_output_bytes = self.max_output_bytes.unwrap_or(max);
        if command.max_output_bytes > max {
            let message = format!("maxOutputBytes must be at most {max}");
            return Err(Error::invalid_argument(message));
        }
        Ok(command)
    }
}

/// The result of a command that ended. `Debug` shows no output.
#[derive(Clone, PartialEq)]
pub struct ExecRecord {
    /// 0 to 255; 128 + n after signal n; 126 or 127 when the program could not be started.
    pub exit_code: u8,
    /// The kept beginning of standard output.
    pub stdout: Bytes,
    /// The kept beginning of standard error.
    pub stderr: Bytes,
    /// How much the command wrote to standard output.
    pub stdout_bytes: u64,
    /// How much the command wrote to standard error.
    pub stderr_bytes: u64,
    /// Whether `stdout` is less than that.
    pub stdout_truncated: bool,
    /// Whether `stderr` is less than that.
    pub stderr_truncated: bool,
    /// Wall-clock time of the call, in milliseconds.
    pub duration_ms: f64,
}

impl fmt::Debug for ExecRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecRecord")
            .field("exit_code", &self.exit_code)
            .field("stdout_bytes", &self.stdout_bytes)
            .field("stderr_bytes", &self.stderr_bytes)
            .field("duration_ms", &self.duration_ms)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ExecRequest {
        ExecRequest::new("dbx_1", Program::Arguments(vec!["true".into()]))
    }

    #[test]
    fn r17_a_deadline_is_more_than_0_and_at_most_an_hour() {
        assert_eq!(request().timeout().unwrap(), Duration::from_secs(600));
        let mut request = request();
        for (seconds, milliseconds) in [(0.5, 500), (3600.0, 3_600_000)] {
            request.timeout_seconds = Some(seconds);
            assert_eq!(
                request.timeout().unwrap(),
                Duration::from_millis(milliseconds)
            );
        }
        for seconds in [0.0, -1.0, 3600.1, f64::NAN, f64::INFINITY] {
            request.timeout_seconds = Some(seconds);
            assert!(request.timeout().is_err(), "{seconds}");
        }
    }

    #[test]
    fn r15_at_most_a_mebibyte_of_a_stream_is_kept() {
        let mut request = request();
        request.max_output_bytes = Some(1_048_576);
        assert_eq!(request.command().unwrap().max_output_bytes, 1_048_576);
        request.max_output_bytes = Some(1_048_577);
        assert!(request.command().is_err());
    }

    #[test]
    fn v17_debug_shows_no_argument_and_no_value() {
        let mut request = request();
        request.command = Program::ShellText("login hunter2".into());
        request.env.insert("TOKEN".into(), "swordfish".into());
        let shown = format!("{request:?}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("swordfish"),
            "{shown}"
        );
    }
}
