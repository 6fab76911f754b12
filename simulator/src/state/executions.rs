//! Executions: commands on a Devbox and what is shown of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::ids;
use super::machine::{Guest, Process};
use super::output::last_lines;
use super::settings::Settings;
use super::view::with_optional;
use crate::error::{ApiError, ApiResult};

/// The three statuses; any end is `completed` with an exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecutionStatus {
    Running,
    Completed(i32),
}

impl ExecutionStatus {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed(_) => "completed",
        }
    }
}

/// One command.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) id: String,
    devbox_id: String,
    process: Process,
    status: watch::Receiver<ExecutionStatus>,
}

impl Execution {
    pub(crate) fn status(&self) -> ExecutionStatus {
        *self.status.borrow()
    }

    /// A receiver that sees every change of status.
    pub(crate) fn watch(&self) -> watch::Receiver<ExecutionStatus> {
        self.status.clone()
    }

    /// SIGKILL to the shell, or to everything in its process group.
    pub(crate) fn kill(&self, whole_group: bool) {
        if self.status() == ExecutionStatus::Running {
            self.process.kill(whole_group);
        }
    }

    /// The DevboxAsyncExecutionDetailView: output only once completed.
    pub(crate) fn view(&self, last_n: usize) -> Value {
        let status = self.status();
        let required = json!({
            "devbox_id": self.devbox_id,
            "execution_id": self.id,
            "status": status.as_str(),
        });
        let ExecutionStatus::Completed(code) = status else {
            return required;
        };
        {
            let (stdout, stdout_truncated) = last_lines(&self.process.stdout.to_vec(), last_n);
            let (stderr, stderr_truncated) = last_lines(&self.process.stderr.to_vec(), last_n);
            with_optional(
                required,
                [
                    ("exit_status", Some(json!(code))),
                    ("stdout", Some(json!(stdout))),
                    ("stderr", Some(json!(stderr))),
                    ("stdout_truncated", Some(json!(stdout_truncated))),
                    ("stderr_truncated", Some(json!(stderr_truncated))),
                ],
            )
        }
    }
}

/// The executions of one box.
#[derive(Debug, Default)]
pub(crate) struct Executions(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    by_id: HashMap<String, Arc<Execution>>,
    by_command_id: HashMap<String, String>,
}

impl Executions {
    pub(crate) fn get(&self, id: &str) -> ApiResult<Arc<Execution>> {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.by_id
            .get(id)
            .cloned()
            .ok_or_else(|| ApiError::not_found("execution", id))
    }

    /// Starts a command, or finds the one that the same `command_id` started.
    pub(crate) fn start(
        &self,
        guest: &Guest,
        devbox_id: &str,
        command: &str,
        command_id: Option<&str>,
        settings: &Settings,
    ) -> ApiResult<Arc<Execution>> {
        // Held over the spawn: two requests with one command_id must not race.
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = command_id.filter(|_| settings.dedupe_command_ids);
        if let Some(id) = known.and_then(|id| book.by_command_id.get(id)) {
            return book
                .by_id
                .get(id)
                .cloned()
                .ok_or_else(|| ApiError::not_found("execution", id));
        }
        let id = command_id
            .filter(|id| settings.execution_id_is_command_id && !book.by_id.contains_key(*id))
            .map_or_else(ids::execution, str::to_owned);
        let process = guest.spawn(command).map_err(|error| {
            ApiError::internal(format!("the command could not be started: {error}"))
        })?;
        let (sender, status) = watch::channel(ExecutionStatus::Running);
        let execution = Arc::new(Execution {
            id: id.clone(),
            devbox_id: devbox_id.to_owned(),
            process,
            status,
        });
        let followed = Arc::clone(&execution);
        tokio::spawn(async move {
            let code = followed.process.exited().await;
            sender.send_replace(ExecutionStatus::Completed(code));
        });
        if let Some(command_id) = command_id {
            book.by_command_id.insert(command_id.to_owned(), id.clone());
        }
        book.by_id.insert(id, Arc::clone(&execution));
        Ok(execution)
    }
}
