//! One execution of the service: started once, then followed to its end by reading.
//!
//! Knows nothing of what the command is; `exec` and the guest's own scripts
//! build on it. Start reading at [`Execution::follow`].

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::exchange::Reply;
use super::poll::Pace;
use super::{Call, Connection};
use crate::api::answer::{accept, parse, unanswered};
use crate::api::{Context, executions};
use crate::error::{Code, Error, Result};
use crate::message::{Request, Response};
use crate::wire::executions as wire;

/// How long the answer to a start may wait for the end of the command.
///
/// Shorter than the 25 s that the service allows: the id of the execution
/// comes only with that answer, and an answer that is lost leaves the outcome
/// unknown, while the polls that follow are read again.
const OPTIMISTIC_WAIT: Duration = Duration::from_secs(10);

/// An execution that is to be started, or is.
pub(super) struct Execution<'a> {
    pub(super) connection: &'a Connection,
    pub(super) sandbox_id: &'a str,
    pub(super) operation: &'static str,
    /// The service's key against a repeated start, and probably the execution's id (inferred).
    pub(super) command_id: String,
    /// Values that must not stand in a message.
    pub(super) hide: &'a [&'a str],
    /// What it carries besides the command; no message may quote it.
    pub(super) contents: &'a [&'a [u8]],
}

/// How following an execution ended.
pub(super) enum End {
    /// The service reports its end.
    Completed(wire::Execution),
    /// The wait was stopped; the execution may go on.
    Stopped(Stop, Flight),
    /// It was not started, or its end cannot be observed.
    Failed(Error),
}

/// What stopped a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Cancelled,
    Deadline,
}

/// What is known of an execution whose wait was stopped.
pub(super) struct Flight {
    /// The execution's id, once an answer told it.
    pub(super) id: Option<String>,
    /// The answer to the start, where it is still to come.
    pub(super) reply: Option<Reply>,
}

impl<'a> Execution<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        sandbox_id: &'a str,
        operation: &'static str,
        hide: &'a [&'a str],
    ) -> Self {
        Self {
            connection,
            sandbox_id,
            operation,
            command_id: Uuid::now_v7().to_string(),
            hide,
            contents: &[],
        }
    }

    /// What the call carries besides the command; no error may quote it.
    pub(super) fn carrying(mut self, contents: &'a [&'a [u8]]) -> Self {
        self.contents = contents;
        self
    }

    /// Starts `command`, once, and waits for its end until `deadline`.
    pub(super) async fn follow(&self, command: &str, deadline: Instant, call: &Call) -> End {
        if let Some(error) = self.connection.stopped(call, self.operation) {
            return End::Failed(error.with_outcome(|outcome| outcome.submitted = Some(false)));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = left.min(OPTIMISTIC_WAIT).as_secs();
        let wait = u32::try_from(wait).unwrap_or(u32::MAX);
        let request = match executions::execute(self.sandbox_id, command, &self.command_id, wait) {
            Ok(request) => request,
            Err(error) => return End::Failed(error.during(self.operation)),
        };
        let contents = [self.contents, &[command.as_bytes()]].concat();
        let context = self.context(&request).carrying(&contents);
        let mut reply = self.connection.dispatch(request, self.operation, call);
        let answer = tokio::select! {
            biased;
            answer = &mut reply => answer,
            () = call.cancel.cancelled() => return stopped(Stop::Cancelled, None, Some(reply)),
            () = self.connection.closed().cancelled() => return End::Failed(self.closed()),
            () = sleep_until(deadline) => return stopped(Stop::Deadline, None, Some(reply)),
        };
        match self.started(answer, &context) {
            Ok(Start::Ended(view)) => End::Completed(view),
            Ok(Start::Running(id)) => self.observe(id, deadline, call).await,
            Err(error) => End::Failed(
                self.connection
                    .explain_refusal(error, self.sandbox_id, call)
                    .await,
            ),
        }
    }

    /// What the answer to a start says.
    ///
    /// 408 is no refusal: the execution is looked for under the id that was sent.
    fn started(&self, answer: Answer, context: &Context<'_>) -> Result<Start> {
        let response = answer
            .map_err(|_| Error::internal("the task that sent a request ended early"))?
            .map_err(|failure| unanswered(&failure, context))?;
        if response.head.status == 408 {
            return Ok(Start::Running(self.command_id.clone()));
        }
        let view: wire::Execution = parse(&accept(response, context)?, context)?;
        if is_completed(&view) {
            return Ok(Start::Ended(view));
        }
        let id = view.execution_id.filter(|id| !id.is_empty());
        Ok(Start::Running(
            id.unwrap_or_else(|| self.command_id.clone()),
        ))
    }

    /// Waits for the end of a running execution.
    ///
    /// Faults are waited out until the deadline: the command runs on whether it is watched or not.
    async fn observe(&self, id: String, deadline: Instant, call: &Call) -> End {
        let mut pace = Pace::new();
        loop {
            match self.poll(&id, deadline, &mut pace, call).await {
                Ok(Some(view)) => return End::Completed(view),
                Ok(None) => {}
                Err(error) => match error.code() {
                    Code::Cancelled => return stopped(Stop::Cancelled, Some(id), None),
                    Code::Closed => return End::Failed(self.closed()),
                    Code::Unavailable | Code::RateLimited | Code::Protocol => pace = Pace::new(),
                    _ => return End::Failed(self.lost(error, call).await),
                },
            }
            if Instant::now() >= deadline {
                return stopped(Stop::Deadline, Some(id), None);
            }
        }
    }

    /// Asks once whether it has ended. `None` is "not yet".
    pub(super) async fn poll(
        &self,
        id: &str,
        deadline: Instant,
        pace: &mut Pace,
        call: &Call,
    ) -> Result<Option<wire::Execution>> {
        let left = deadline.saturating_duration_since(Instant::now());
        let hold = u32::try_from(left.as_secs()).unwrap_or(u32::MAX);
        let poll = executions::wait_for_end(self.sandbox_id, id, hold)?.by(deadline);
        let context = self.context(&poll).about("process", id);
        let Some(answer) = self.connection.poll(&poll, &context, pace, call).await? else {
            return Ok(None);
        };
        let view: wire::Execution = parse(&answer, &context)?;
        if is_completed(&view) {
            return Ok(Some(view));
        }
        let breath = pace.breathe(deadline);
        self.connection
            .until_stopped(call, self.operation, breath)
            .await?;
        Ok(None)
    }

    /// Reads the view once more, with as many lines of output as are known to be given.
    pub(super) async fn read_again(&self, id: &str, call: &Call) -> Result<wire::Execution> {
        /// Used by the official client's own tests.
        const LINES: u32 = 1000;
        let request = executions::get(self.sandbox_id, id, LINES);
        let context = self.context(&request).about("process", id);
        parse(
            &self.connection.read(&request, &context, call).await?,
            &context,
        )
    }

    pub(super) fn context(&self, request: &Request) -> Context<'a> {
        self.connection
            .context(self.operation, request)
            .about("sandbox", self.sandbox_id)
            .hiding(self.hide)
            .carrying(self.contents)
    }

    fn closed(&self) -> Error {
        let message = "the connection was closed while a command was running";
        Error::new(Code::OutcomeUnknown, message)
            .during(self.operation)
            .with_outcome(|outcome| outcome.submitted = Some(true))
    }

    /// The error of an execution that was started and that the service no longer tells about.
    async fn lost(&self, cause: Error, call: &Call) -> Error {
        let cause = self
            .connection
            .explain_refusal(cause, self.sandbox_id, call)
            .await;
        let message = format!("the command was started and its end is not known: {cause}");
        let error = Error::new(Code::OutcomeUnknown, message)
            .during(self.operation)
            .with_resource("sandbox", self.sandbox_id)
            .with_outcome(|outcome| outcome.submitted = Some(true));
        match cause.status() {
            Some(status) => error.with_answer(
                status,
                cause.request_id().map(str::to_owned),
                cause.retry_after_seconds(),
            ),
            None => error,
        }
    }
}

enum Start {
    Ended(wire::Execution),
    Running(String),
}

type Answer = std::result::Result<
    std::result::Result<Response, crate::message::Failure>,
    tokio::task::JoinError,
>;

fn stopped(stop: Stop, id: Option<String>, reply: Option<Reply>) -> End {
    End::Stopped(stop, Flight { id, reply })
}

/// Any other word, a new one too, means that it still changes.
pub(super) fn is_completed(view: &wire::Execution) -> bool {
    view.status.as_deref() == Some("completed")
}
