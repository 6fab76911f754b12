//! Starts a command whose output is streamed.
//!
//! Sent once, with an id of our own and the shortest wait whose meaning is
//! known. The answer brings the service's id. Where that is the id we sent
//! (inferred, unknown on the real service), a look finds the execution before
//! the answer comes, and finds it where the answer is lost. The first answer
//! with another id ends such looks for its connection.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use uuid::Uuid;

use super::exit::{Exit, ended};
use super::records::{CommandInput, StartRequest};
use super::{Process, Target, view};
use crate::adapter::exec::refusal::{refused, unrepresentable};
use crate::adapter::transfer::Upload;
use crate::adapter::{Call, Connection};
use crate::api::answer::parse;
use crate::api::executions;
use crate::error::{Code, Error, Result};
use crate::shell::{
    Command, Nonce, Program, START_FAILURE_EXIT_CODE, read_start_failure, wrap_live,
};
use crate::wire::executions::Execution;

const OPERATION: &str = "process_start";

/// The wait that is asked for: 0 may mean the default of 25.
const OPTIMISTIC_SECONDS: u32 = 1;

/// When to look for the execution before its start is answered.
const LOOKS: [Duration; 3] = [
    Duration::from_millis(30),
    Duration::from_millis(120),
    Duration::from_millis(350),
];

/// What the answers of a connection showed of the service's ids.
#[derive(Debug, Default)]
pub(in crate::adapter) struct SeenIds {
    /// The last one was not the id that was sent.
    differ: AtomicBool,
}

impl SeenIds {
    pub(super) fn note(&self, id: &str, sent: &str) {
        self.differ.store(id != sent, Ordering::Relaxed);
    }

    fn differ(&self) -> bool {
        self.differ.load(Ordering::Relaxed)
    }
}

impl Connection {
    /// Starts a command without a deadline, its input empty, and resolves as
    /// soon as the service's id of it is known.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what no Linux program can be given;
    /// `NOT_FOUND` of the sandbox or the working directory; `OUTCOME_UNKNOWN`
    /// where the answer is lost and the execution is not found by our id.
    /// `outcome.submitted` says whether the start was sent.
    pub async fn start_process(&self, request: &StartRequest, call: &Call) -> Result<Process> {
        let nonce = Nonce::from_random(*Uuid::new_v4().as_bytes());
        let mut wrapped = wrap_live(&command(request), &nonce).map_err(|reason| {
            let error = unrepresentable(&reason).during(OPERATION);
            error.with_outcome(|outcome| outcome.submitted = Some(false))
        })?;
        let values: Vec<&str> = request.env.values().map(String::as_str).collect();
        let uploads = Upload::script(&mut wrapped).into_iter().collect();
        self.upload_before(OPERATION, &request.sandbox_id, uploads, &values, call)
            .await?;
        let command_id = Uuid::now_v7().to_string();
        let mut target = Target {
            sandbox_id: request.sandbox_id.clone(),
            id: command_id.clone(),
            nonce: Some(nonce),
            cwd: request.cwd.clone(),
            mode: OnceLock::new(),
        };
        let start = executions::execute(
            &request.sandbox_id,
            &wrapped.command,
            &command_id,
            OPTIMISTIC_SECONDS,
        )?;
        let contents = [wrapped.command.as_bytes()];
        let context = self
            .context(OPERATION, &start)
            .about("sandbox", &request.sandbox_id)
            .hiding(&values)
            .carrying(&contents);
        let answer = self.submit(start.clone(), &context, call);
        tokio::pin!(answer);
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer,
            found = self.look(&target, call) => match found {
                Some(view) => return self.started(target, &view),
                None => answer.await,
            },
        };
        let view: Execution = match answer.and_then(|answer| parse(&answer, &context)) {
            Ok(view) => view,
            Err(error) if error.code() == Code::OutcomeUnknown => {
                match view(self, &target, OPERATION, call).await {
                    Ok(view) => return self.started(target, &view),
                    Err(_) => return Err(error),
                }
            }
            Err(error) => {
                let error = self.explain_refusal(error, &request.sandbox_id, call).await;
                return Err(error);
            }
        };
        if let Some(id) = view.execution_id.clone().filter(|id| !id.is_empty()) {
            self.seen_ids().note(&id, &command_id);
            target.id = id;
        }
        self.started(target, &view)
    }

    /// Looks for the execution under the id that was sent; `None` says nothing.
    async fn look(&self, target: &Target, call: &Call) -> Option<Execution> {
        for pause in LOOKS {
            tokio::time::sleep(pause).await;
            // Told by another start in the meantime, or long ago.
            if self.seen_ids().differ() {
                return None;
            }
            match view(self, target, OPERATION, call).await {
                Ok(view) if view.status.is_some() => return Some(view),
                _ => {}
            }
        }
        None
    }

    fn started(&self, target: Target, view: &Execution) -> Result<Process> {
        let known = ended(view, &target)
            .map_err(|error| {
                error.during(OPERATION).with_outcome(|outcome| {
                    outcome.submitted = Some(true);
                    outcome.process_id = Some(target.id.clone());
                })
            })?
            .map_or(Exit::Unknown, Exit::Ended);
        Ok(Process::new(self.clone(), target, [0, 0], known))
    }
}

fn command(request: &StartRequest) -> Command {
    let mut command = Command::new(match &request.command {
        CommandInput::Shell(text) => Program::ShellText(text.clone()),
        CommandInput::Arguments(words) => Program::Arguments(words.clone()),
    });
    command.working_directory.clone_from(&request.cwd);
    command.environment = request
        .env
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    command
}

/// The error of a command that the wrapper could not start.
pub(super) fn check_start_failure(view: &Execution, code: i32, target: &Target) -> Result<()> {
    let Some(nonce) = &target.nonce else {
        return Ok(());
    };
    if code != i32::from(START_FAILURE_EXIT_CODE) {
        return Ok(());
    }
    let stderr = view.stderr.as_ref().map_or("", |text| text.0.as_str());
    match read_start_failure(START_FAILURE_EXIT_CODE, stderr, nonce) {
        Ok(None) => Ok(()),
        Ok(Some(refusal)) => {
            let error = refused(&refusal, target.cwd.as_deref(), nonce);
            Err(error.during(OPERATION))
        }
        Err(_) => Err(Error::protocol(
            "the command was not started, and the reason could not be read",
        )
        .during(OPERATION)),
    }
}
