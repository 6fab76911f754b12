//! What the verbs of a process take and give.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::api::executions::Output;

/// A command to start. `Debug` shows no command, path or environment.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartRequest {
    /// The sandbox to start it in.
    pub sandbox_id: String,
    /// What to run.
    pub command: CommandInput,
    /// Absolute, or relative to the user's home directory.
    pub cwd: Option<String>,
    /// Added to the environment of the sandbox.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl fmt::Debug for StartRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartRequest")
            .field("sandbox_id", &self.sandbox_id)
            .finish_non_exhaustive()
    }
}

/// A command as the caller gives it.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub enum CommandInput {
    /// Text for a shell.
    Shell(String),
    /// A program and its arguments.
    Arguments(Vec<String>),
}

/// A process to reopen.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenProcessRequest {
    /// The sandbox in which it was started.
    pub sandbox_id: String,
    /// Its id.
    pub process_id: String,
    /// Where to start reading, in bytes as the service counts them.
    #[serde(default)]
    pub stdout_offset: u64,
    /// Where to start reading, in bytes as the service counts them.
    #[serde(default)]
    pub stderr_offset: u64,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessExit {
    /// 128 + n after signal n.
    pub exit_code: i32,
    /// Whether what was read of its output is all that it wrote.
    pub output: Completeness,
}

/// Whether the streams that were read were received whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Completeness {
    /// Every stream that was read came to its end with nothing missing.
    Complete,
    /// One did not within 10 s of the exit, failed, or has a gap.
    Incomplete,
}

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessStatus {
    /// `running` or `exited`.
    pub state: &'static str,
    /// Once exited.
    pub exit_code: Option<i32>,
}

/// Which streams a reader gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both, in the order of arrival.
    Both,
}

impl Which {
    pub(super) fn outputs(self) -> &'static [Output] {
        match self {
            Self::Stdout => &[Output::Stdout],
            Self::Stderr => &[Output::Stderr],
            Self::Both => &[Output::Stdout, Output::Stderr],
        }
    }
}

/// A piece of output; never ends inside a character. `Debug` shows its length only.
#[derive(Clone, PartialEq, Eq)]
pub struct OutputPiece {
    /// Where it was written.
    pub output: Output,
    /// What was written.
    pub text: String,
}

impl fmt::Debug for OutputPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputPiece")
            .field("output", &self.output)
            .field("text_bytes", &self.text.len())
            .finish()
    }
}
