//! Executions: start, read, wait, kill.

use std::time::Duration;

use super::path::{path, query};
use super::{json, json_of};
use crate::error::Result;
use crate::message::Request;
use crate::wire::devboxes::WaitForStatus;
use crate::wire::executions::{Execute, Kill};

/// One of the two streams of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How long a stream may be silent beyond the ordinary limit. The service ends
/// an idle one itself, after 25 to 30 s (inferred).
const STREAM_SILENCE: Duration = Duration::from_secs(60);

/// Longest hold of a start and of a wait (certain: the published specification).
pub const MAX_HOLD_SECONDS: u32 = 25;

/// `POST /v1/devboxes/{id}/execute`: starts a command and answers when it has
/// ended, or after the optimistic wait, whichever comes first.
///
/// The optimistic wait is at least 1 s, because what 0 means is unknown.
/// `command_id` is the service's key against a repeated start; it is sent once
/// all the same. 408 says nothing of the command.
///
/// # Errors
/// `INTERNAL` when the body cannot be written.
pub fn execute(
    devbox_id: &str,
    command: &str,
    command_id: &str,
    optimistic_seconds: u32,
) -> Result<Request> {
    let optimistic_timeout = optimistic_seconds.clamp(1, MAX_HOLD_SECONDS);
    let execute = Execute {
        command,
        command_id,
        optimistic_timeout,
    };
    // A tenth of a wrapped command are quotes and line ends, which are escaped.
    let body = json_of(&execute, command.len() / 8 * 9 + 128)?;
    let hold = Duration::from_secs(optimistic_timeout.into());
    Ok(Request::mutation(path(["devboxes", devbox_id, "execute"]), body).held(hold))
}

/// `GET /v1/devboxes/{id}/executions/{id}`, with up to so many lines of each
/// stream; the service's default is 100.
#[must_use]
pub fn get(devbox_id: &str, execution_id: &str, last_lines: u32) -> Request {
    let mut path = path(["devboxes", devbox_id, "executions", execution_id]);
    query(&mut path, "last_n", &last_lines.to_string());
    Request::get(path)
}

/// `POST …/executions/{id}/wait_for_status`: 200 with the view once completed,
/// 408 when the hold is over.
///
/// # Errors
/// `INTERNAL` when the body cannot be written.
pub fn wait_for_end(devbox_id: &str, execution_id: &str, hold_seconds: u32) -> Result<Request> {
    let timeout_seconds = hold_seconds.clamp(1, MAX_HOLD_SECONDS);
    let body = json(&WaitForStatus {
        statuses: &["completed"],
        timeout_seconds,
    })?;
    let hold = Duration::from_secs(timeout_seconds.into());
    let path = path([
        "devboxes",
        devbox_id,
        "executions",
        execution_id,
        "wait_for_status",
    ]);
    Ok(Request::long_poll(path, body, hold))
}

/// `POST …/executions/{id}/kill` of the whole process group. 200 for an
/// execution that has ended (certain: the official tests clean up that way).
///
/// # Errors
/// `INTERNAL` when the body cannot be written.
pub fn kill_group(devbox_id: &str, execution_id: &str) -> Result<Request> {
    let body = json(&Kill {
        kill_process_group: true,
    })?;
    let path = path(["devboxes", devbox_id, "executions", execution_id, "kill"]);
    Ok(Request::mutation(path, body))
}

/// `GET …/executions/{id}/stream_stdout_updates?offset=N` or its twin: the
/// output from byte N on, then what follows, to the end of the execution.
/// Can be opened again after the end (certain: the official client does it).
#[must_use]
pub fn stream(devbox_id: &str, execution_id: &str, output: Output, offset: u64) -> Request {
    let route = match output {
        Output::Stdout => "stream_stdout_updates",
        Output::Stderr => "stream_stderr_updates",
    };
    let mut path = path(["devboxes", devbox_id, "executions", execution_id, route]);
    query(&mut path, "offset", &offset.to_string());
    Request::stream(path, STREAM_SILENCE)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::message::{Body, Kind};

    fn body(request: &Request) -> Value {
        match &request.body {
            Body::Json(text) => serde_json::from_slice(text).unwrap(),
            _ => Value::Null,
        }
    }

    #[test]
    fn r29_a_start_is_a_mutation_that_the_server_may_hold() {
        let request = execute("dbx_1", "true", "id-1", 10).unwrap();
        assert_eq!(request.path, "/v1/devboxes/dbx_1/execute");
        assert_eq!(request.kind, Kind::Mutation);
        assert_eq!(request.hold, Duration::from_secs(10));
        assert_eq!(
            body(&request),
            json!({ "command": "true", "command_id": "id-1", "optimistic_timeout": 10 })
        );
    }

    #[test]
    fn holds_stay_between_one_second_and_what_the_service_allows() {
        for (asked, sent) in [(0, 1), (1, 1), (25, 25), (600, 25)] {
            let start = execute("d", "true", "c", asked).unwrap();
            assert_eq!(body(&start)["optimistic_timeout"], sent);
            let wait = wait_for_end("d", "e", asked).unwrap();
            assert_eq!(body(&wait)["timeout_seconds"], sent);
        }
    }

    #[test]
    fn r21_a_stream_is_opened_at_an_offset() {
        let request = stream("dbx_1", "exec/1", Output::Stderr, 42);
        assert_eq!(
            request.path,
            "/v1/devboxes/dbx_1/executions/exec%2F1/stream_stderr_updates?offset=42"
        );
        assert_eq!(request.kind, Kind::Stream);
    }

    #[test]
    fn r17_a_kill_is_of_the_whole_group() {
        let request = kill_group("dbx_1", "exec/1").unwrap();
        assert_eq!(request.path, "/v1/devboxes/dbx_1/executions/exec%2F1/kill");
        assert_eq!(body(&request), json!({ "kill_process_group": true }));
        assert_eq!(request.kind, Kind::Mutation);
    }
}
