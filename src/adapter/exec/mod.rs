//! Runs a command to its end and brings its exact result.
//!
//! One request where the command ends soon and writes little. Everything else
//! is added only where it is needed: uploads before, polls while it runs,
//! downloads and a clean-up after, a kill and a read-out where it is stopped.
//! The command itself is started once and never again. Start reading at
//! [`Connection::exec`].

mod collect;
mod records;
pub(super) mod refusal;
mod stop;
#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use self::collect::{Output, collect};
pub use self::records::{ExecRecord, ExecRequest};
use self::stop::{Stopped, stop};
use super::execution::{End, Execution, Flight, Stop};
use super::guest_script::{ReadOut, TIDY_LIMIT, inline, may_be_left};
use super::transfer::Upload;
use super::{Call, Connection};
use crate::error::{Code, Error, Killed, PartialOutput, Result};
use crate::shell::{Captured, ExecResult, Nonce, RecordError, Refusal, read_result, wrap};
use crate::wire::executions as wire;

/// Name for `error.operation`.
const OPERATION: &str = "exec";

/// How long after a deadline or a signal the call ends at the latest. Past it
/// looking after the guest goes on without the caller.
const STOP_LIMIT: Duration = Duration::from_millis(1900);

/// Exit codes of a command that was killed from outside: by SIGKILL, or by SIGTERM.
const KILL_CODES: [u8; 2] = [128 + 9, 128 + 15];

impl Connection {
    /// Runs a command and waits for its end. A non-zero exit is a result.
    ///
    /// # Errors
    /// - `INVALID_ARGUMENT`: a string no program can be given; nothing was sent.
    /// - `NOT_FOUND` of the working directory or the sandbox, `NOT_RUNNING`,
    ///   `UNSUPPORTED` for an image without a needed tool: it was not started.
    /// - `OUTCOME_UNKNOWN`: past its deadline, within two seconds, after one
    ///   kill of its process group; a lost answer to the start; a shell that
    ///   ended without a result. `outcome` has what is known: `killed`, the
    ///   partial output or that it is unavailable, what may be left in the guest.
    /// - `CANCELLED`: as past the deadline, `submitted: false` where nothing was sent.
    /// - `UNAVAILABLE` with `exit_code`: it ended and its output could not be fetched.
    pub async fn exec(&self, request: &ExecRequest, call: &Call) -> Result<ExecRecord> {
        let started = Instant::now();
        let output = self.exec_output(request, call).await;
        let output = output.map_err(|error| error.during(OPERATION))?;
        let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
        Ok(output.record(milliseconds))
    }

    async fn exec_output(&self, request: &ExecRequest, call: &Call) -> Result<Output> {
        if let Some(error) = self.stopped(call, OPERATION) {
            return Err(error.with_outcome(|outcome| outcome.submitted = Some(false)));
        }
        let timeout = request.timeout()?;
        let command = request.command()?;
        let nonce = Nonce::from_random(*Uuid::new_v4().as_bytes());
        let mut script =
            wrap(&command, &nonce).map_err(|reason| refusal::unrepresentable(&reason))?;
        let mut uploads: Vec<Upload> = Upload::script(&mut script).into_iter().collect();
        uploads.extend(request.stdin.clone().map(|content| Upload {
            path: nonce.stdin_path(),
            content,
            counter: None,
        }));
        let hide: Vec<&str> = request.env.values().map(String::as_str).collect();
        let contents: Vec<&[u8]> = request.stdin.iter().map(|stdin| &stdin[..]).collect();
        let exec = Exec {
            execution: Execution::new(self, &request.sandbox_id, OPERATION, &hide)
                .carrying(&contents),
            nonce,
            working_directory: request.cwd.as_deref(),
            max_output_bytes: command.max_output_bytes,
            has_uploads: !uploads.is_empty(),
        };
        exec.run(uploads, &script.command, timeout, call).await
    }
}

/// What a wrapper reports.
type Report = std::result::Result<std::result::Result<ExecResult, Refusal>, RecordError>;

/// One call of `exec`.
struct Exec<'a> {
    execution: Execution<'a>,
    nonce: Nonce,
    working_directory: Option<&'a str>,
    max_output_bytes: u64,
    has_uploads: bool,
}

impl Exec<'_> {
    async fn run(
        &self,
        uploads: Vec<Upload>,
        command: &str,
        timeout: Duration,
        call: &Call,
    ) -> Result<Output> {
        let (connection, sandbox_id) = (self.execution.connection, self.execution.sandbox_id);
        if let Err(error) = connection
            .upload_before(OPERATION, sandbox_id, uploads, self.execution.hide, call)
            .await
        {
            return Err(self.withdraw(error).await);
        }
        let deadline = Instant::now() + timeout;
        match self.execution.follow(command, deadline, call).await {
            End::Completed(view) => self.finish(view, call).await,
            End::Stopped(reason, flight) => self.cut_off(reason, timeout, flight, call).await,
            End::Failed(error) => Err(self.withdraw(error).await),
        }
    }

    /// The error of a command that was not started or whose outcome is unknown,
    /// with what is known; removes what is left in the guest.
    async fn withdraw(&self, error: Error) -> Error {
        let is_unknown = error.code() == Code::OutcomeUnknown;
        if self.execution.connection.closed().is_cancelled() {
            let has_left = is_unknown || self.has_uploads;
            return if has_left {
                may_be_left(error, &self.nonce)
            } else {
                error
            };
        }
        if is_unknown {
            return self.look_after(error).await;
        }
        if !self.has_uploads {
            return error;
        }
        let left = self.clean_up(Instant::now() + STOP_LIMIT).await;
        error.with_outcome(|outcome| {
            outcome.leftovers.extend(left);
            outcome.leftovers.sort();
            outcome.leftovers.dedup();
        })
    }

    /// Looks once for an execution whose answer was lost: the outcome stays
    /// unknown, but what can be seen of it is told. A command that runs is left
    /// alone; cleaning up takes nothing from its wrapper.
    async fn look_after(&self, error: Error) -> Error {
        let id = &self.execution.command_id;
        let error = error.with_outcome(|outcome| {
            outcome.submitted = Some(true);
            outcome.process_id.get_or_insert_with(|| id.clone());
        });
        let until = Instant::now() + STOP_LIMIT;
        let call = Call::default();
        let look = self.execution.read_again(id, &call);
        let view = timeout_at(until, look).await;
        match view.map(|view| view.map(|view| self.read(&view))) {
            Ok(Ok(Ok(Ok(result)))) => {
                let exit_code = result.exit_code.into();
                let error = error.with_outcome(|outcome| outcome.exit_code = Some(exit_code));
                self.with_result(error, result, until + STOP_LIMIT).await
            }
            Ok(Ok(Ok(Err(refusal)))) => self.refused(&refusal).await,
            _ => {
                let left = self.clean_up(until + STOP_LIMIT).await;
                let error = error.with_outcome(|outcome| outcome.leftovers.extend(left));
                may_be_left(error, &self.nonce)
            }
        }
    }

    /// The result of an execution that the service reports as ended.
    async fn finish(&self, view: wire::Execution, call: &Call) -> Result<Output> {
        let status = view.exit_status;
        let mut record = self.read(&view);
        if record.is_err() {
            let id = self.id(&view);
            record = match self.execution.read_again(&id, call).await {
                Ok(again) => self.read(&again),
                Err(error) if matches!(error.code(), Code::Cancelled | Code::Closed) => {
                    let error = error.with_outcome(|outcome| outcome.submitted = Some(true));
                    return Err(may_be_left(error, &self.nonce));
                }
                Err(_) => record,
            };
        }
        match record {
            Ok(Ok(result)) => collect(self, result, call).await,
            Ok(Err(refusal)) => Err(self.refused(&refusal).await),
            Err(reason) => Err(self.lost_record(reason, status).await),
        }
    }

    fn read(&self, view: &wire::Execution) -> Report {
        let text = view.stdout.as_ref().map_or("", |text| text.0.as_str());
        read_result(text, &self.nonce)
    }

    fn id(&self, view: &wire::Execution) -> String {
        let id = view.execution_id.clone().filter(|id| !id.is_empty());
        id.unwrap_or_else(|| self.execution.command_id.clone())
    }

    async fn refused(&self, refusal: &Refusal) -> Error {
        let error = refusal::refused(refusal, self.working_directory, &self.nonce);
        let left = match refusal {
            Refusal::ScriptMissing if self.has_uploads => {
                self.clean_up(Instant::now() + TIDY_LIMIT).await
            }
            _ => Vec::new(),
        };
        error.with_outcome(|outcome| outcome.leftovers.extend(left))
    }

    /// The shell ended and its output holds no result: a start-up file ended
    /// it, or the command killed its own wrapper.
    async fn lost_record(&self, reason: RecordError, status: Option<i64>) -> Error {
        let shown = status.map_or("no exit status".into(), |code| {
            format!("exit status {code}")
        });
        let message = format!(
            "the Devbox's shell ended with {shown} and {reason}; the image's start-up files may \
             end the shell, or the command may have killed its whole process group"
        );
        let error = Error::new(Code::OutcomeUnknown, message)
            .with_outcome(|outcome| outcome.submitted = Some(true));
        self.with_partial(error, Instant::now() + TIDY_LIMIT).await
    }

    /// Kills a command past its deadline, or whose caller went away, and says what is known.
    async fn cut_off(
        &self,
        reason: Stop,
        timeout: Duration,
        flight: Flight,
        call: &Call,
    ) -> Result<Output> {
        let until = Instant::now() + STOP_LIMIT;
        let Stopped { killed, id, end } = stop(&self.execution, flight).await;
        let error = self.stopped(reason, timeout, killed, id);
        match end.as_ref().map(|view| self.read(view)) {
            // It had ended before the kill came.
            Some(Ok(Ok(result))) if !KILL_CODES.contains(&result.exit_code) => {
                if reason == Stop::Deadline {
                    return collect(self, result, call).await;
                }
                let error = error.with_outcome(|outcome| {
                    outcome.killed = Some(Killed::No);
                    outcome.exit_code = Some(result.exit_code.into());
                });
                Err(self.with_result(error, result, until).await)
            }
            Some(Ok(Ok(result))) => Err(self.with_result(error, result, until).await),
            Some(Ok(Err(refusal))) => Err(self.refused(&refusal).await),
            Some(Err(_)) => Err(self.with_partial(error, until).await),
            // Its end was not seen: it may run on, or begin later.
            None => {
                let error = self.with_partial(error, until).await;
                Err(may_be_left(error, &self.nonce))
            }
        }
    }

    fn stopped(&self, reason: Stop, timeout: Duration, killed: Killed, id: String) -> Error {
        let fate = match killed {
            Killed::Yes => "its process group was killed",
            Killed::No => "killing its process group was refused",
            Killed::Unknown => "whether its process group was killed is not known",
        };
        let error = match reason {
            Stop::Deadline => {
                let seconds = timeout.as_secs_f64();
                let message = format!("the command did not end within {seconds} s; {fate}");
                Error::new(Code::OutcomeUnknown, message)
            }
            Stop::Cancelled => {
                let message = format!("the caller's signal stopped the call; {fate}");
                Error::new(Code::Cancelled, message)
            }
        };
        error.with_outcome(|outcome| {
            outcome.submitted = Some(true);
            outcome.killed = Some(killed);
            outcome.process_id = Some(id);
        })
    }

    /// Adds the output of a record to an error: what came in it, else what can be read out.
    async fn with_result(&self, error: Error, result: ExecResult, until: Instant) -> Error {
        if result.left_directory.is_some() {
            return self.with_partial(error, until).await;
        }
        with_output(error, result.stdout, result.stderr)
    }

    /// Adds the output so far to an error, and removes what is left in the guest.
    async fn with_partial(&self, error: Error, until: Instant) -> Error {
        let (connection, sandbox_id) = (self.execution.connection, self.execution.sandbox_id);
        let max_bytes = self.max_output_bytes;
        let read_out = connection
            .read_out(OPERATION, sandbox_id, &self.nonce, max_bytes, until)
            .await;
        match read_out {
            ReadOut::Output(stdout, stderr) => with_output(error, stdout, stderr),
            ReadOut::Nothing => error.with_outcome(|outcome| outcome.output_unavailable = true),
            ReadOut::Failed => {
                let error = error.with_outcome(|outcome| outcome.output_unavailable = true);
                may_be_left(error, &self.nonce)
            }
        }
    }

    async fn clean_up(&self, until: Instant) -> Vec<String> {
        let (connection, sandbox_id) = (self.execution.connection, self.execution.sandbox_id);
        connection
            .clean_up(OPERATION, sandbox_id, &self.nonce, until)
            .await
    }
}

fn with_output(error: Error, stdout: Captured, stderr: Captured) -> Error {
    let partial = match (inline(stdout), inline(stderr)) {
        (Some(stdout), Some(stderr)) => Some(PartialOutput {
            stdout: stdout.into(),
            stderr: stderr.into(),
        }),
        _ => None,
    };
    error.with_outcome(|outcome| {
        outcome.output_unavailable = partial.is_none();
        outcome.partial = partial;
    })
}
