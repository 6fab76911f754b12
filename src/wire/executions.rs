//! `/v1/devboxes/{id}/execute` and `/v1/devboxes/{id}/executions`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::OutputText;

/// An execution, as far as the adapter looks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Execution {
    /// Opaque. Probably equal to the `command_id` of its start (inferred).
    pub execution_id: Option<String>,
    /// `queued`, `running` or `completed`; unknown words occur. There is none
    /// for a failed or killed one.
    pub status: Option<String>,
    /// The shell's exit code, once completed.
    pub exit_status: Option<i64>,
    /// The last lines, once completed; absent or empty where there are none.
    pub stdout: Option<OutputText>,
    /// The last lines, once completed; absent or empty where there are none.
    pub stderr: Option<OutputText>,
}

/// Body of `POST …/execute`. `Debug` shows no command.
#[derive(Clone, Serialize)]
pub struct Execute<'a> {
    /// Text for the service's shell.
    pub command: &'a str,
    /// A UUIDv7 that names this start.
    pub command_id: &'a str,
    /// How long the answer waits for the end, in seconds, at most 25. Past it
    /// the command goes on.
    pub optimistic_timeout: u32,
}

impl fmt::Debug for Execute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execute")
            .field("command_bytes", &self.command.len())
            .field("command_id", &self.command_id)
            .field("optimistic_timeout", &self.optimistic_timeout)
            .finish()
    }
}

/// Body of `POST …/kill`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Kill {
    /// Without it only the service's own shell is killed and its children live on.
    pub kill_process_group: bool,
}
