//! The log of a box: what ran on it and how it ended.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::executions::Execution;
use super::view::{maybe, with_optional};

/// Where a line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    SetupCommands,
    Entrypoint,
    Exec,
    Files,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::SetupCommands => "setup_commands",
            Self::Entrypoint => "entrypoint",
            Self::Exec => "exec",
            Self::Files => "files",
        }
    }
}

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) source: Source,
    pub(crate) time_ms: i64,
    pub(crate) message: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) command_id: Option<String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) shell_name: Option<String>,
}

impl Line {
    pub(crate) fn message(source: Source, message: impl Into<String>, time_ms: i64) -> Self {
        Self {
            source,
            time_ms,
            message: Some(message.into()),
            command: None,
            command_id: None,
            exit_code: None,
            shell_name: None,
        }
    }

    /// That an execution began, or (with an exit code) ended.
    pub(crate) fn execution(execution: &Execution, exit_code: Option<i32>, time_ms: i64) -> Self {
        Self {
            source: Source::Exec,
            time_ms,
            message: None,
            command: Some(execution.command.clone()),
            command_id: Some(execution.id.clone()),
            exit_code,
            shell_name: execution.shell_name.clone(),
        }
    }

    fn view(&self) -> Value {
        let failed = self.exit_code.is_some_and(|code| code != 0);
        let required = json!({
            "level": if failed { "error" } else { "info" },
            "source": self.source.as_str(),
            "timestamp_ms": self.time_ms,
        });
        with_optional(
            required,
            [
                ("message", maybe(self.message.as_ref())),
                ("cmd", maybe(self.command.as_ref())),
                ("cmd_id", maybe(self.command_id.as_ref())),
                ("exit_code", maybe(self.exit_code)),
                ("shell_name", maybe(self.shell_name.as_ref())),
            ],
        )
    }
}

/// All lines of one box, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<Vec<Line>>);

impl Log {
    pub(crate) fn write(&self, line: Line) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }

    /// The lines up to a time, of one execution or one shell if asked.
    pub(crate) fn view(
        &self,
        until_ms: i64,
        execution_id: Option<&str>,
        shell_name: Option<&str>,
    ) -> Vec<Value> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines
            .iter()
            .filter(|line| {
                line.time_ms <= until_ms
                    && execution_id.is_none_or(|id| line.command_id.as_deref() == Some(id))
                    && shell_name.is_none_or(|name| line.shell_name.as_deref() == Some(name))
            })
            .map(Line::view)
            .collect()
    }
}
