//! The log of a box: what ran on it and how it ended.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;

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

/// Which lines are asked for.
#[derive(Debug, Default)]
pub(crate) struct LogFilter {
    pub(crate) execution_id: Option<String>,
    pub(crate) shell_name: Option<String>,
}

impl LogFilter {
    fn fits(&self, line: &Line) -> bool {
        let is =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        is(&self.execution_id, &line.command_id) && is(&self.shell_name, &line.shell_name)
    }
}

/// All lines of one box, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: Mutex<Vec<Line>>,
    length: watch::Sender<usize>,
}

impl Log {
    pub(crate) fn write(&self, line: Line) {
        let mut lines = self.lock();
        lines.push(line);
        self.length.send_replace(lines.len());
    }

    /// The lines up to a time.
    pub(crate) fn view(&self, until_ms: i64, filter: &LogFilter) -> Vec<Value> {
        let lines = self.lock();
        let told = lines
            .iter()
            .filter(|line| line.time_ms <= until_ms && filter.fits(line));
        told.map(Line::view).collect()
    }

    /// The lines from a position on, and the position behind the last.
    pub(crate) fn view_from(&self, position: usize, filter: &LogFilter) -> (Vec<Value>, usize) {
        let lines = self.lock();
        let rest = lines.get(position..).unwrap_or_default();
        let told = rest.iter().filter(|line| filter.fits(line));
        (told.map(Line::view).collect(), lines.len())
    }

    /// Waits for a line behind a position.
    pub(crate) async fn grown_past(&self, position: usize) {
        let mut length = self.length.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        drop(length.wait_for(|length| *length > position).await);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
