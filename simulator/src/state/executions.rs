//! Executions: commands on a Devbox and what is shown of them.
//!
//! An execution is `queued` behind others of its named shell, `running`, then
//! `completed` with an exit status, whatever ended it. `follow.rs` reads its
//! outputs as they grow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::choices::EmptyOutput;
use super::ids;
use super::output::tail;
use super::settings::Settings;
use super::view::{maybe, with_optional};
use crate::error::{ApiError, ApiResult};
use crate::guest::{Guest, GuestError, KillScope, Process, ProcessState, Spawn, Spool, Stdin};

/// How long a killed command's outputs may still drain before it is completed
/// although a child holds them open.
const DRAIN_AFTER_KILL: Duration = Duration::from_millis(100);

/// What the shell of a killed command ends with.
const KILLED: i32 = 128 + 9;

/// The three statuses; any end is `completed` with an exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecutionStatus {
    Queued,
    Running,
    Completed(i32),
}

impl ExecutionStatus {
    /// The names that a wait may ask for.
    pub(crate) const NAMES: [&str; 3] = ["queued", "running", "completed"];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed(_) => "completed",
        }
    }

    pub(crate) fn exit_status(self) -> Option<i32> {
        match self {
            Self::Completed(code) => Some(code),
            Self::Queued | Self::Running => None,
        }
    }
}

/// What to run and how.
#[derive(Debug, Default)]
pub(crate) struct Command {
    pub(crate) script: String,
    /// The key that makes repeats find the first.
    pub(crate) command_id: Option<String>,
    pub(crate) shell_name: Option<String>,
    pub(crate) attach_stdin: bool,
}

/// One of the two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Stdout,
    Stderr,
}

/// One command.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) id: String,
    pub(crate) devbox_id: String,
    pub(crate) command: String,
    pub(crate) shell_name: Option<String>,
    has_stdin: bool,
    process: Process,
    status: watch::Sender<ExecutionStatus>,
    killed: CancellationToken,
}

impl Execution {
    pub(crate) fn status(&self) -> ExecutionStatus {
        *self.status.borrow()
    }

    /// A receiver that sees every change of status.
    pub(crate) fn watch(&self) -> watch::Receiver<ExecutionStatus> {
        self.status.subscribe()
    }

    pub(crate) fn output(&self, output: Output) -> &Spool {
        match output {
            Output::Stdout => self.process.stdout(),
            Output::Stderr => self.process.stderr(),
        }
    }

    /// SIGKILL to the shell, or to everything in its process group. What has
    /// ended is left alone.
    pub(crate) async fn kill(&self, scope: KillScope) -> ApiResult<()> {
        self.killed.cancel();
        self.process.kill(scope).await.map_err(guest_failed)?;
        Ok(())
    }

    /// Writes to a stdin that was attached at the start.
    pub(crate) async fn send_stdin(&self, text: &str) -> ApiResult<()> {
        self.require_stdin()?;
        self.process
            .write_stdin(text.as_bytes())
            .await
            .map_err(|error| {
                ApiError::bad_request(format!("stdin of execution {} is closed: {error}", self.id))
            })
    }

    pub(crate) async fn close_stdin(&self) -> ApiResult<()> {
        self.require_stdin()?;
        self.process.close_stdin().await;
        Ok(())
    }

    pub(crate) async fn interrupt(&self) -> ApiResult<()> {
        self.require_stdin()?;
        self.process.interrupt().await.map_err(guest_failed)?;
        Ok(())
    }

    fn require_stdin(&self) -> ApiResult<()> {
        if self.has_stdin {
            return Ok(());
        }
        Err(ApiError::bad_request(format!(
            "execution {} was not started with attach_stdin",
            self.id
        )))
    }

    /// Moves the status along with the process, to its end.
    async fn follow_process(self: Arc<Self>, settings: Arc<Settings>) {
        self.process.started().await;
        // A command that never ran goes from queued to completed at once.
        if self.process.state() == ProcessState::Running {
            self.status.send_replace(ExecutionStatus::Running);
        }
        let over = async {
            if settings.completion_waits_for_output {
                self.process.finished().await
            } else {
                self.process.exited().await
            }
        };
        let killed = async {
            self.killed.cancelled().await;
            let code = self.process.exited().await;
            tokio::time::timeout(DRAIN_AFTER_KILL, self.process.finished())
                .await
                .unwrap_or(code)
        };
        let code = tokio::select! {
            code = over => code,
            code = killed => code,
        };
        let code = if code == KILLED && self.killed.is_cancelled() {
            settings.kill_exit_status
        } else {
            code
        };
        self.status.send_replace(ExecutionStatus::Completed(code));
    }

    /// The DevboxAsyncExecutionDetailView. Outputs and exit status stay unset
    /// until the execution is completed (certain).
    pub(crate) fn view(&self, lines: usize, settings: &Settings) -> ApiResult<Value> {
        let status = self.status();
        let required = json!({
            "devbox_id": self.devbox_id,
            "execution_id": self.id,
            "status": status.as_str(),
        });
        let shell_name = maybe(self.shell_name.as_ref());
        let Some(code) = status.exit_status() else {
            return Ok(with_optional(required, [("shell_name", shell_name)]));
        };
        let stdout = self.tail(Output::Stdout, lines, settings)?;
        let stderr = self.tail(Output::Stderr, lines, settings)?;
        let text = |text: String| match settings.empty_output {
            EmptyOutput::Omitted if text.is_empty() => None,
            EmptyOutput::Null if text.is_empty() => Some(Value::Null),
            _ => Some(Value::String(text)),
        };
        Ok(with_optional(
            required,
            [
                ("shell_name", shell_name),
                ("exit_status", Some(json!(code))),
                ("stdout", text(stdout.text)),
                ("stderr", text(stderr.text)),
                ("stdout_truncated", Some(json!(stdout.is_truncated))),
                ("stderr_truncated", Some(json!(stderr.is_truncated))),
            ],
        ))
    }

    /// The DevboxExecutionDetailView of `execute_sync`: whole outputs.
    pub(crate) fn sync_view(&self, settings: &Settings) -> ApiResult<Value> {
        let required = json!({
            "devbox_id": self.devbox_id,
            "exit_status": self.status().exit_status(),
            "stdout": self.tail(Output::Stdout, usize::MAX, settings)?.text,
            "stderr": self.tail(Output::Stderr, usize::MAX, settings)?.text,
        });
        Ok(with_optional(
            required,
            [("shell_name", maybe(self.shell_name.as_ref()))],
        ))
    }

    fn tail(
        &self,
        output: Output,
        lines: usize,
        settings: &Settings,
    ) -> ApiResult<super::output::Tail> {
        tail(self.output(output), lines, settings.view_max_bytes)
            .map_err(|error| ApiError::internal(format!("the output was lost: {error}")))
    }
}

/// The executions of one box.
#[derive(Debug, Default)]
pub(crate) struct Executions {
    book: Mutex<Book>,
    /// Held over a start with a `command_id`: repeats of it must not race.
    starting: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Book {
    by_id: HashMap<String, Arc<Execution>>,
    by_command_id: HashMap<String, Arc<Execution>>,
    /// In the order of their start, for people who look.
    in_order: Vec<Arc<Execution>>,
}

impl Executions {
    pub(crate) fn get(&self, id: &str) -> ApiResult<Arc<Execution>> {
        self.lock()
            .by_id
            .get(id)
            .cloned()
            .ok_or_else(|| ApiError::not_found("execution", id))
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Execution>> {
        self.lock().in_order.clone()
    }

    /// Whether any has not completed.
    pub(crate) fn any_is_live(&self) -> bool {
        self.lock()
            .in_order
            .iter()
            .any(|execution| execution.status().exit_status().is_none())
    }

    /// Forgets all, as after a suspend.
    pub(crate) fn clear(&self) {
        *self.lock() = Book::default();
    }

    /// Starts a command, or finds the one that the same `command_id` started;
    /// whether it was started now.
    pub(crate) async fn start(
        &self,
        guest: &Guest,
        devbox_id: &str,
        command: Command,
        settings: &Arc<Settings>,
    ) -> ApiResult<(Arc<Execution>, bool)> {
        let _one_at_a_time = match &command.command_id {
            Some(_) if settings.dedupe_command_ids => Some(self.starting.lock().await),
            _ => None,
        };
        let id = {
            let book = self.lock();
            if let Some(known) = command
                .command_id
                .as_ref()
                .filter(|_| settings.dedupe_command_ids)
                .and_then(|command_id| book.by_command_id.get(command_id))
            {
                return Ok((Arc::clone(known), false));
            }
            command
                .command_id
                .clone()
                .filter(|id| settings.execution_id_is_command_id && !book.by_id.contains_key(id))
                .unwrap_or_else(ids::execution)
        };
        let execution = Arc::new(Execution {
            id,
            devbox_id: devbox_id.to_owned(),
            process: spawn(guest, &command, settings.login_shell).await?,
            command: command.script,
            shell_name: command.shell_name,
            has_stdin: command.attach_stdin,
            status: watch::Sender::new(ExecutionStatus::Queued),
            killed: CancellationToken::new(),
        });
        if execution.process.state() != ProcessState::Queued {
            execution.status.send_replace(ExecutionStatus::Running);
        }
        let followed = Arc::clone(&execution);
        tokio::spawn(followed.follow_process(Arc::clone(settings)));
        let mut book = self.lock();
        if let Some(command_id) = command.command_id {
            book.by_command_id
                .insert(command_id, Arc::clone(&execution));
        }
        book.by_id
            .insert(execution.id.clone(), Arc::clone(&execution));
        book.in_order.push(Arc::clone(&execution));
        Ok((execution, true))
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn spawn(guest: &Guest, command: &Command, login: bool) -> ApiResult<Process> {
    let spawned = match &command.shell_name {
        Some(name) => guest.shell(name).spawn(command.script.as_str()),
        None => {
            let stdin = if command.attach_stdin {
                Stdin::Pipe
            } else {
                Stdin::Null
            };
            guest
                .spawn(Spawn {
                    script: command.script.clone(),
                    stdin,
                    login,
                })
                .await
        }
    };
    spawned.map_err(guest_failed)
}

/// What the box's own failure is to a client.
pub(crate) fn guest_failed(error: GuestError) -> ApiError {
    match error {
        GuestError::NotRunning => ApiError::bad_request("the devbox is not running"),
        GuestError::InvalidInput(message) => ApiError::bad_request(message),
        error => ApiError::internal(error.to_string()),
    }
}
