//! Ends a command whose wait was stopped: one kill of its process group.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::adapter::Call;
use crate::adapter::execution::{Execution, Flight, is_completed};
use crate::adapter::poll::Pace;
use crate::api::answer::parse;
use crate::api::executions;
use crate::error::Killed;
use crate::wire::executions as wire;

/// How long the kill and its confirmation may take.
const KILL_LIMIT: Duration = Duration::from_millis(1200);

/// How a command was stopped.
pub(super) struct Stopped {
    pub(super) killed: Killed,
    /// The execution's id, or what is probably its id.
    pub(super) id: String,
    /// The service's last view, where it says that the execution has ended.
    pub(super) end: Option<wire::Execution>,
}

/// What became of one kill.
enum Answer {
    /// The execution has ended.
    Ended(wire::Execution),
    /// The kill was accepted.
    Accepted,
    /// There is no execution of this id.
    Missing,
    /// It was refused.
    Refused,
    /// It may have been accepted.
    Silent,
}

/// Kills the process group of an execution, at most once under each id that it may have.
///
/// The id comes with the answer to the start. Where that is still on its way
/// the kill goes to the id that was sent, and only if the service does not know
/// that one, to the id that the answer brings.
pub(super) async fn stop(execution: &Execution<'_>, flight: Flight) -> Stopped {
    let until = Instant::now() + KILL_LIMIT;
    let Flight { id, reply } = flight;
    let sent_id = id.unwrap_or_else(|| execution.command_id.clone());
    let first = kill(execution, &sent_id, until).await;
    if let (Answer::Missing, Some(reply)) = (&first, reply) {
        let answer = timeout_at(until, reply).await;
        let Ok(Ok(Ok(response))) = answer else {
            // It may run under an id that nobody knows yet.
            return stopped(Killed::Unknown, sent_id, None);
        };
        let view = serde_json::from_slice::<wire::Execution>(&response.body).unwrap_or_default();
        if !response.head.is_success() {
            return stopped(Killed::No, sent_id, None);
        }
        let id = view.execution_id.clone().unwrap_or_default();
        if is_completed(&view) {
            return stopped(Killed::No, id, Some(view));
        }
        let second = kill(execution, &id, until).await;
        return confirm(execution, second, id, until).await;
    }
    confirm(execution, first, sent_id, until).await
}

async fn confirm(execution: &Execution<'_>, answer: Answer, id: String, until: Instant) -> Stopped {
    match answer {
        Answer::Ended(view) => stopped(Killed::Yes, id, Some(view)),
        Answer::Missing | Answer::Refused => stopped(Killed::No, id, None),
        Answer::Accepted | Answer::Silent => {
            let end = wait(execution, &id, until).await;
            let killed = if end.is_some() {
                Killed::Yes
            } else {
                Killed::Unknown
            };
            stopped(killed, id, end)
        }
    }
}

async fn kill(execution: &Execution<'_>, id: &str, until: Instant) -> Answer {
    let Ok(request) = executions::kill_group(execution.sandbox_id, id) else {
        return Answer::Refused;
    };
    let context = execution.context(&request);
    let reply = execution
        .connection
        .dispatch(request, execution.operation, &Call::default());
    let Ok(Ok(Ok(response))) = timeout_at(until, reply).await else {
        return Answer::Silent;
    };
    match response.head.status {
        200..300 => match parse::<wire::Execution>(&response, &context) {
            Ok(view) if is_completed(&view) => Answer::Ended(view),
            _ => Answer::Accepted,
        },
        404 => Answer::Missing,
        408 | 500.. => Answer::Silent,
        _ => Answer::Refused,
    }
}

/// Waits for the end that a kill should bring.
async fn wait(execution: &Execution<'_>, id: &str, until: Instant) -> Option<wire::Execution> {
    let mut pace = Pace::new();
    // Not the caller's signal: it may be what brought this about.
    let call = Call::default();
    while Instant::now() < until {
        match execution.poll(id, until, &mut pace, &call).await {
            Ok(Some(view)) => return Some(view),
            Ok(None) => {}
            Err(_) => return None,
        }
    }
    None
}

fn stopped(killed: Killed, id: String, end: Option<wire::Execution>) -> Stopped {
    Stopped { killed, id, end }
}
