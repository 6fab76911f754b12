//! The order of requests, waits and faults of `exec`, on a scripted transport with paused time.

mod faults;
mod results;
mod stopping;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{ExecRecord, ExecRequest};
use crate::adapter::testing::{connect, devbox};
use crate::adapter::{Call, Connection};
use crate::error::{Code, Error, Killed, PartialOutput, Result};
use crate::message::{Body, Head, Request, Response};
use crate::shell::Program;
use crate::transport::scripted::{Scripted, Step};

pub(super) const EXECUTE: &str = "Post /v1/devboxes/dbx_1/execute";
pub(super) const UPLOAD: &str = "Post /v1/devboxes/dbx_1/upload_file";
pub(super) const DOWNLOAD: &str = "Post /v1/devboxes/dbx_1/download_file";
pub(super) const LOOK: &str = "Get /v1/devboxes/dbx_1";
pub(super) const WAIT: &str = "Post /v1/devboxes/dbx_1/executions/e1/wait_for_status";
pub(super) const KILL: &str = "Post /v1/devboxes/dbx_1/executions/e1/kill";

/// `true` on `dbx_1`, with what `extra` says in the contract's words.
pub(super) fn request(extra: Value) -> ExecRequest {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let command = match extra.get("command") {
        None => Program::Arguments(vec!["true".into()]),
        Some(Value::Array(words)) => Program::Arguments(words.iter().map(text).collect()),
        Some(shell_text) => Program::ShellText(text(shell_text)),
    };
    let mut request = ExecRequest::new("dbx_1", command);
    request.cwd = extra.get("cwd").map(text);
    request.timeout_seconds = extra.get("timeoutSeconds").and_then(Value::as_f64);
    request.max_output_bytes = extra.get("maxOutputBytes").and_then(Value::as_u64);
    for (name, value) in extra
        .get("env")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        request.env.insert(name.clone(), text(value));
    }
    request
}

pub(super) fn body(request: &Request) -> Value {
    match &request.body {
        Body::Json(text) => serde_json::from_slice(text).unwrap(),
        _ => Value::Null,
    }
}

/// The nonce of the script in a request.
pub(super) fn nonce(request: &Request) -> String {
    let command = body(request)["command"].as_str().unwrap().to_owned();
    let at = command.find("_bs_n=").unwrap() + "_bs_n=".len();
    command[at..at + 32].to_owned()
}

/// An answer to a start whose execution `e1` is in this status, with this record if it has ended.
pub(super) fn execution(status: &'static str, record: &str) -> Step {
    let record = record.to_owned();
    Step::asked(move |request| view(status, &record, &nonce(request)))
}

pub(super) fn view(status: &str, record: &str, nonce: &str) -> Step {
    let stdout = match record {
        "" => String::new(),
        fields => format!("motd\nbeachside:NONCE:{fields}:end:NONCE\n").replace("NONCE", nonce),
    };
    let view =
        json!({ "execution_id": "e1", "status": status, "exit_status": 0, "stdout": stdout });
    Step::json(200, &view.to_string())
}

pub(super) fn inline(bytes: &str) -> String {
    format!("{0}:{0}:inline:{1}", bytes.len(), STANDARD.encode(bytes))
}

pub(super) fn ran(code: u8, stdout: &str, stderr: &str) -> String {
    format!("ran:{code}:{}:{}:", inline(stdout), inline(stderr))
}

pub(super) fn ended(code: u8, stdout: &str) -> Step {
    execution("completed", &ran(code, stdout, ""))
}

pub(super) fn cleaned() -> Step {
    execution("completed", "cleaned")
}

pub(super) fn partial(stdout: &str, stderr: &str) -> Step {
    let record = format!("partial:{}:{}", inline(stdout), inline(stderr));
    execution("completed", &record)
}

pub(super) fn missing() -> Step {
    Step::json(404, r#"{"message":"no such execution"}"#)
}

pub(super) fn bytes(content: &'static [u8]) -> Step {
    Step::Answer(Response {
        head: Head {
            status: 200,
            attempts: 1,
            ..Head::default()
        },
        body: Bytes::from_static(content),
    })
}

pub(super) async fn run(
    request: ExecRequest,
    steps: Vec<Step>,
) -> (Result<ExecRecord>, Arc<Scripted>) {
    let (connection, script) = connect(steps).await;
    (connection.exec(&request, &Call::default()).await, script)
}

pub(super) async fn fail(request: ExecRequest, steps: Vec<Step>) -> (Error, Arc<Scripted>) {
    let (result, script) = run(request, steps).await;
    (result.unwrap_err(), script)
}

pub(super) fn output(error: &Error) -> Option<(&[u8], &[u8])> {
    let PartialOutput { stdout, stderr } = error.outcome().partial.as_ref()?;
    Some((stdout, stderr))
}

/// The path of a request about the execution of the id that was sent with the first start.
pub(super) fn by_command_id(script: &Scripted, action: &str) -> String {
    let id = script.json(0)["command_id"].as_str().unwrap().to_owned();
    format!("/v1/devboxes/dbx_1/executions/{id}{action}")
}

pub(super) const LARGE: &str = "ran:0:40000:6:file::50000:5:file::/tmp/beachside-NONCE.abcdef";
