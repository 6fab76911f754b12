//! The order of requests, waits and faults of `exec`, on a scripted transport with paused time.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{ExecRecord, ExecRequest};
use crate::adapter::testing::{connect, devbox};
use crate::adapter::{Call, Connection};
use crate::error::{Code, Error, Killed, PartialOutput, Result};
use crate::message::{Body, Head, Request, Response};
use crate::shell::Program;
use crate::transport::scripted::{Scripted, Step};

const EXECUTE: &str = "Post /v1/devboxes/dbx_1/execute";
const UPLOAD: &str = "Post /v1/devboxes/dbx_1/upload_file";
const DOWNLOAD: &str = "Post /v1/devboxes/dbx_1/download_file";
const LOOK: &str = "Get /v1/devboxes/dbx_1";
const WAIT: &str = "Post /v1/devboxes/dbx_1/executions/e1/wait_for_status";
const KILL: &str = "Post /v1/devboxes/dbx_1/executions/e1/kill";

/// `true` on `dbx_1`, with what `extra` says in the contract's words.
fn request(extra: Value) -> ExecRequest {
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

fn body(request: &Request) -> Value {
    match &request.body {
        Body::Json(text) => serde_json::from_slice(text).unwrap(),
        _ => Value::Null,
    }
}

/// The nonce of the script in a request.
fn nonce(request: &Request) -> String {
    let command = body(request)["command"].as_str().unwrap().to_owned();
    let at = command.find("_bs_n=").unwrap() + "_bs_n=".len();
    command[at..at + 32].to_owned()
}

/// An answer to a start whose execution `e1` is in this status, with this record if it has ended.
fn execution(status: &'static str, record: &str) -> Step {
    let record = record.to_owned();
    Step::asked(move |request| view(status, &record, &nonce(request)))
}

fn view(status: &str, record: &str, nonce: &str) -> Step {
    let stdout = match record {
        "" => String::new(),
        fields => format!("motd\nbeachside:NONCE:{fields}:end:NONCE\n").replace("NONCE", nonce),
    };
    let view =
        json!({ "execution_id": "e1", "status": status, "exit_status": 0, "stdout": stdout });
    Step::json(200, &view.to_string())
}

fn inline(bytes: &str) -> String {
    format!("{0}:{0}:inline:{1}", bytes.len(), STANDARD.encode(bytes))
}

fn ran(code: u8, stdout: &str, stderr: &str) -> String {
    format!("ran:{code}:{}:{}:", inline(stdout), inline(stderr))
}

fn ended(code: u8, stdout: &str) -> Step {
    execution("completed", &ran(code, stdout, ""))
}

fn cleaned() -> Step {
    execution("completed", "cleaned")
}

fn partial(stdout: &str, stderr: &str) -> Step {
    let record = format!("partial:{}:{}", inline(stdout), inline(stderr));
    execution("completed", &record)
}

fn missing() -> Step {
    Step::json(404, r#"{"message":"no such execution"}"#)
}

fn bytes(content: &'static [u8]) -> Step {
    Step::Answer(Response {
        head: Head {
            status: 200,
            attempts: 1,
            ..Head::default()
        },
        body: Bytes::from_static(content),
    })
}

async fn run(request: ExecRequest, steps: Vec<Step>) -> (Result<ExecRecord>, Arc<Scripted>) {
    let (connection, script) = connect(steps).await;
    (connection.exec(&request, &Call::default()).await, script)
}

async fn fail(request: ExecRequest, steps: Vec<Step>) -> (Error, Arc<Scripted>) {
    let (result, script) = run(request, steps).await;
    (result.unwrap_err(), script)
}

fn output(error: &Error) -> Option<(&[u8], &[u8])> {
    let PartialOutput { stdout, stderr } = error.outcome().partial.as_ref()?;
    Some((stdout, stderr))
}

/// The path of a request about the execution of the id that was sent with the first start.
fn by_command_id(script: &Scripted, action: &str) -> String {
    let id = script.json(0)["command_id"].as_str().unwrap().to_owned();
    format!("/v1/devboxes/dbx_1/executions/{id}{action}")
}

#[tokio::test(start_paused = true)]
async fn r18_a_short_command_with_little_output_is_one_request() {
    let record = ran(3, "out", "err");
    let (result, script) = run(request(json!({})), vec![execution("completed", &record)]).await;
    let result = result.unwrap();
    assert_eq!(
        (result.exit_code, &result.stdout[..], &result.stderr[..]),
        (3, &b"out"[..], &b"err"[..])
    );
    assert_eq!((result.stdout_bytes, result.stdout_truncated), (3, false));
    assert_eq!(script.lines(), [EXECUTE]);
    let sent = script.json(0);
    assert_eq!(sent["optimistic_timeout"], 10);
    let id = uuid::Uuid::parse_str(sent["command_id"].as_str().unwrap()).unwrap();
    assert_eq!(id.get_version_num(), 7);
}

#[tokio::test(start_paused = true)]
async fn f2_a_longer_command_is_waited_for_by_polls_that_are_asked_again() {
    let steps = [
        execution("running", "").after(Duration::from_secs(10)),
        Step::json(408, "").after(Duration::from_secs(25)),
        Step::reset(),
        Step::json(503, ""),
        // A service that answers with another status than was asked for.
        Step::json(200, r#"{"status":"migrating"}"#),
        Step::Hang,
    ];
    let (connection, script) = connect(steps).await;
    let request = request(json!({ "timeoutSeconds": 3600 }));
    let call = Call::default();
    let running = connection.exec(&request, &call);
    let waited = tokio::time::timeout(Duration::from_secs(60), running).await;
    assert!(waited.is_err(), "it is still waited for");
    assert_eq!(script.lines(), [EXECUTE, WAIT, WAIT, WAIT, WAIT, WAIT]);
    let asked = json!({ "statuses": ["completed"], "timeout_seconds": 25 });
    assert_eq!(script.json(1), asked);
}

#[tokio::test(start_paused = true)]
async fn f2_the_result_of_a_poll_is_the_result() {
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let (keep, take) = (seen.clone(), seen);
    let steps = vec![
        Step::asked(move |request| {
            *keep.lock().unwrap() = nonce(request);
            view("running", "", "")
        }),
        Step::asked(move |_| view("completed", &ran(9, "late", ""), &take.lock().unwrap())),
    ];
    let (result, script) = run(request(json!({})), steps).await;
    assert_eq!(result.unwrap().exit_code, 9);
    assert_eq!(script.lines(), [EXECUTE, WAIT]);
}

#[tokio::test(start_paused = true)]
async fn r31_a_408_is_observed_by_the_id_that_was_sent_and_never_sent_again() {
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let (keep, take) = (seen.clone(), seen);
    let steps = vec![
        Step::asked(move |request| {
            *keep.lock().unwrap() = nonce(request);
            Step::json(408, "")
        }),
        Step::asked(move |_| view("completed", &ran(0, "ok", ""), &take.lock().unwrap())),
    ];
    let (result, script) = run(request(json!({})), steps).await;
    assert_eq!(result.unwrap().stdout, "ok");
    assert_eq!(
        script.seen()[1].path,
        by_command_id(&script, "/wait_for_status")
    );
    assert_eq!(script.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn r31_r32_a_lost_answer_is_unknown_and_nothing_is_run_again() {
    for lost in [
        Step::reset(),
        Step::json(502, "<html>"),
        Step::json(500, ""),
        Step::json(200, "<html>"),
    ] {
        let (error, script) = fail(request(json!({})), vec![lost, missing(), cleaned()]).await;
        assert_eq!(error.code(), Code::OutcomeUnknown);
        assert_eq!(error.outcome().submitted, Some(true));
        assert_eq!(
            error.outcome().process_id.as_deref(),
            script.json(0)["command_id"].as_str()
        );
        assert_eq!(error.outcome().leftovers, [""; 0]);
        assert_eq!(script.lines().len(), 3);
        let tidying = script.json(2)["command"].as_str().unwrap().to_owned();
        assert!(!tidying.contains("'true'"), "only the clean-up follows");
    }
}

#[tokio::test(start_paused = true)]
async fn r31_a_lost_answer_of_a_command_that_has_ended_tells_what_is_seen() {
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let (keep, take) = (seen.clone(), seen);
    let steps = vec![
        Step::asked(move |request| {
            *keep.lock().unwrap() = nonce(request);
            Step::json(502, "")
        }),
        Step::asked(move |_| view("completed", &ran(4, "done", "e"), &take.lock().unwrap())),
    ];
    let (error, script) = fail(request(json!({})), steps).await;
    assert_eq!(error.code(), Code::OutcomeUnknown);
    assert_eq!(error.outcome().exit_code, Some(4));
    assert_eq!(output(&error), Some((&b"done"[..], &b"e"[..])));
    assert_eq!(
        script.seen().len(),
        2,
        "its wrapper has left nothing to clean"
    );
    assert_eq!(
        script.seen()[1].path,
        by_command_id(&script, "?last_n=1000")
    );
}

#[tokio::test(start_paused = true)]
async fn r31_no_connection_is_a_definite_failure() {
    let (error, script) = fail(request(json!({})), vec![Step::refused()]).await;
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(error.outcome().submitted, Some(false));
    assert_eq!(script.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn i5_a_sandbox_that_does_not_run_says_so() {
    let refused = Step::json(400, r#"{"message":"not running"}"#);
    let (error, script) = fail(request(json!({})), vec![refused, devbox("suspended")]).await;
    assert_eq!(
        (error.code(), error.operation()),
        (Code::NotRunning, "exec")
    );
    assert_eq!(script.lines(), [EXECUTE, LOOK]);
}

#[tokio::test(start_paused = true)]
async fn r17_past_its_deadline_a_command_is_killed_and_its_output_read_out() {
    let steps = vec![
        execution("running", "").after(Duration::from_secs(1)),
        Step::json(408, "").after(Duration::from_millis(500)),
        Step::json(
            200,
            r#"{"execution_id":"e1","status":"completed","exit_status":137}"#,
        ),
        partial("so far", "e"),
    ];
    let started = Instant::now();
    let (error, script) = fail(request(json!({ "timeoutSeconds": 1.5 })), steps).await;
    assert!(started.elapsed() < Duration::from_millis(3500));
    assert_eq!(error.code(), Code::OutcomeUnknown);
    assert_eq!(error.outcome().killed, Some(Killed::Yes));
    assert_eq!(error.outcome().process_id.as_deref(), Some("e1"));
    assert_eq!(output(&error), Some((&b"so far"[..], &b"e"[..])));
    assert!(!error.outcome().output_unavailable);
    assert_eq!(script.lines(), [EXECUTE, WAIT, KILL, EXECUTE]);
    assert_eq!(script.json(2), json!({ "kill_process_group": true }));
}

#[tokio::test(start_paused = true)]
async fn r17_a_kill_that_is_accepted_is_confirmed_by_a_poll() {
    let steps = vec![
        execution("running", ""),
        Step::Hang,
        Step::json(200, r#"{"execution_id":"e1","status":"running"}"#),
        Step::json(
            200,
            r#"{"execution_id":"e1","status":"completed","exit_status":137}"#,
        ),
        partial("", ""),
    ];
    let (error, script) = fail(request(json!({ "timeoutSeconds": 2 })), steps).await;
    assert_eq!(error.outcome().killed, Some(Killed::Yes));
    assert_eq!(script.lines(), [EXECUTE, WAIT, KILL, WAIT, EXECUTE]);
}

#[tokio::test(start_paused = true)]
async fn r17_a_service_that_falls_silent_does_not_hold_the_call() {
    let steps = vec![
        execution("running", ""),
        Step::Hang,
        Step::Hang,
        Step::Hang,
        Step::Hang,
    ];
    let started = Instant::now();
    let (error, _) = fail(request(json!({ "timeoutSeconds": 2 })), steps).await;
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(error.code(), Code::OutcomeUnknown);
    assert_eq!(error.outcome().killed, Some(Killed::Unknown));
    assert!(error.outcome().output_unavailable);
    assert_eq!(error.outcome().leftovers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn r17_before_the_id_is_known_the_kill_goes_to_the_id_that_was_sent() {
    let steps = vec![
        Step::Hang,
        Step::json(200, r#"{"status":"completed","exit_status":137}"#),
        partial("p", ""),
    ];
    let (error, script) = fail(request(json!({ "timeoutSeconds": 0.3 })), steps).await;
    assert_eq!(error.outcome().killed, Some(Killed::Yes));
    assert_eq!(script.seen()[1].path, by_command_id(&script, "/kill"));
    assert_eq!(script.json(0)["optimistic_timeout"], 1);
}

#[tokio::test(start_paused = true)]
async fn r17_where_that_id_is_not_known_the_kill_goes_to_the_one_that_comes() {
    let steps = vec![
        execution("running", "").after(Duration::from_secs(1)),
        missing(),
        Step::json(200, r#"{"status":"completed","exit_status":137}"#),
        partial("p", ""),
    ];
    let (error, script) = fail(request(json!({ "timeoutSeconds": 0.5 })), steps).await;
    assert_eq!(error.outcome().killed, Some(Killed::Yes));
    assert_eq!(error.outcome().process_id.as_deref(), Some("e1"));
    assert_eq!(script.seen()[1].path, by_command_id(&script, "/kill"));
    assert_eq!(script.lines()[2..], [KILL, EXECUTE]);
}

#[tokio::test(start_paused = true)]
async fn r17_a_command_that_had_ended_gives_its_ordinary_result() {
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let (keep, take) = (seen.clone(), seen);
    let steps = vec![
        Step::asked(move |request| {
            *keep.lock().unwrap() = nonce(request);
            view("running", "", "")
        }),
        Step::Hang,
        Step::asked(move |_| view("completed", &ran(6, "just", ""), &take.lock().unwrap())),
    ];
    let (result, _) = run(request(json!({ "timeoutSeconds": 2 })), steps).await;
    let result = result.unwrap();
    assert_eq!((result.exit_code, &result.stdout[..]), (6, &b"just"[..]));
}

#[tokio::test(start_paused = true)]
async fn f3_a_wrapper_that_outlived_the_kill_reports_a_killed_command() {
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let (keep, take) = (seen.clone(), seen);
    let steps = vec![
        Step::asked(move |request| {
            *keep.lock().unwrap() = nonce(request);
            view("running", "", "")
        }),
        Step::Hang,
        Step::asked(move |_| view("completed", &ran(143, "some", ""), &take.lock().unwrap())),
    ];
    let (error, script) = fail(request(json!({ "timeoutSeconds": 2 })), steps).await;
    assert_eq!(error.outcome().killed, Some(Killed::Yes));
    assert_eq!(output(&error), Some((&b"some"[..], &b""[..])));
    assert_eq!(script.lines(), [EXECUTE, WAIT, KILL]);
}

async fn cancelled(
    connection: &Connection,
    request: &ExecRequest,
    after: Duration,
) -> Result<ExecRecord> {
    let call = Call::default();
    let signal = call.cancel.clone();
    let running = connection.exec(request, &call);
    let (result, ()) = tokio::join!(running, async {
        tokio::time::sleep(after).await;
        signal.cancel();
    });
    result
}

#[tokio::test(start_paused = true)]
async fn v23_a_signal_before_anything_is_sent_sends_nothing() {
    let (connection, script) = connect([]).await;
    let call = Call::default();
    call.cancel.cancel();
    let mut request = request(json!({}));
    request.stdin = Some(Bytes::from_static(b"x"));
    let error = connection.exec(&request, &call).await.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome().submitted),
        (Code::Cancelled, Some(false))
    );
    assert!(script.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn v23_f7_a_signal_kills_once_and_says_how_it_went() {
    let steps = [
        execution("running", ""),
        Step::Hang,
        Step::json(200, r#"{"status":"completed"}"#),
        partial("seen", ""),
    ];
    let (connection, script) = connect(steps).await;
    let error = cancelled(&connection, &request(json!({})), Duration::from_secs(3))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Cancelled);
    assert_eq!(error.outcome().killed, Some(Killed::Yes));
    assert_eq!(error.outcome().submitted, Some(true));
    assert_eq!(output(&error), Some((&b"seen"[..], &b""[..])));
    assert_eq!(script.lines(), [EXECUTE, WAIT, KILL, EXECUTE]);
}

#[tokio::test(start_paused = true)]
async fn v23_a_signal_during_an_upload_takes_the_upload_back() {
    let (connection, script) = connect([Step::Hang, cleaned()]).await;
    let mut request = request(json!({}));
    request.stdin = Some(Bytes::from_static(b"x"));
    let error = cancelled(&connection, &request, Duration::from_secs(1))
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.outcome().submitted),
        (Code::Cancelled, Some(false))
    );
    assert_eq!(error.outcome().leftovers, [""; 0]);
    assert_eq!(script.lines(), [UPLOAD, EXECUTE]);
}

#[tokio::test(start_paused = true)]
async fn v27_close_during_a_command_sends_nothing_more() {
    let (connection, script) = connect([execution("running", ""), Step::Hang]).await;
    let (request, call) = (request(json!({})), Call::default());
    let running = connection.exec(&request, &call);
    let (result, ()) = tokio::join!(running, async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        connection.close();
    });
    let error = result.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome().submitted),
        (Code::OutcomeUnknown, Some(true))
    );
    assert_eq!(script.lines(), [EXECUTE, WAIT]);
}

const LARGE: &str = "ran:0:40000:6:file::50000:5:file::/tmp/beachside-NONCE.abcdef";

#[tokio::test(start_paused = true)]
async fn r18_larger_results_are_downloaded_side_by_side_and_removed_once() {
    let steps = vec![
        execution("completed", LARGE),
        bytes(b"stdout").after(Duration::from_secs(1)),
        bytes(b"error").after(Duration::from_secs(1)),
        cleaned(),
    ];
    let started = Instant::now();
    let (result, script) = run(request(json!({})), steps).await;
    let result = result.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(1));
    assert_eq!(
        (&result.stdout[..], &result.stderr[..]),
        (&b"stdout"[..], &b"error"[..])
    );
    assert_eq!(
        (result.stdout_bytes, result.stdout_truncated),
        (40_000, true)
    );
    assert_eq!(script.lines(), [EXECUTE, DOWNLOAD, DOWNLOAD, EXECUTE]);
    let path = script.json(1)["path"].as_str().unwrap().to_owned();
    assert!(
        path.starts_with("/tmp/beachside-") && path.ends_with(".abcdef/stdout"),
        "{path}"
    );
}

#[tokio::test(start_paused = true)]
async fn r18_a_failed_clean_up_changes_no_result() {
    for failed in [
        Step::json(500, ""),
        Step::Hang,
        execution("completed", "cleaned:/tmp/x"),
    ] {
        let steps = vec![
            execution("completed", LARGE),
            bytes(b"stdout"),
            bytes(b"error"),
            failed,
        ];
        let (result, script) = run(request(json!({})), steps).await;
        assert_eq!(result.unwrap().exit_code, 0);
        assert_eq!(script.lines().len(), 4, "it is sent once");
    }
}

#[tokio::test(start_paused = true)]
async fn b8_output_that_cannot_be_downloaded_is_read_out() {
    let steps = vec![
        execution("completed", LARGE),
        Step::json(404, ""),
        bytes(b"error"),
        partial("stdout", "error"),
    ];
    let (result, script) = run(request(json!({})), steps).await;
    assert_eq!(result.unwrap().stdout, "stdout");
    assert_eq!(script.lines(), [EXECUTE, DOWNLOAD, DOWNLOAD, EXECUTE]);
}

#[tokio::test(start_paused = true)]
async fn b8_output_that_cannot_be_had_is_an_error_with_the_exit_code() {
    let steps = vec![
        execution("completed", &LARGE.replace("ran:0", "ran:5")),
        Step::json(404, ""),
        bytes(b"short"),
        Step::json(503, ""),
        missing(),
        Step::Hang,
    ];
    let (error, _) = fail(request(json!({})), steps).await;
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(error.outcome().exit_code, Some(5));
    assert!(error.outcome().output_unavailable);
    assert_eq!(error.outcome().partial, None);
    assert_eq!(error.outcome().leftovers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn e6_a_shell_that_ended_without_a_record_is_looked_at_again_and_read_out() {
    let steps = vec![
        execution("completed", ""),
        Step::json(200, r#"{"status":"completed","stdout":"still nothing"}"#),
        execution("completed", "nothing"),
    ];
    let (error, script) = fail(request(json!({})), steps).await;
    assert_eq!(error.code(), Code::OutcomeUnknown);
    assert!(error.message().contains("exit status 0"), "{error}");
    assert!(error.outcome().output_unavailable);
    assert_eq!(
        script.lines(),
        [
            EXECUTE,
            "Get /v1/devboxes/dbx_1/executions/e1?last_n=1000",
            EXECUTE
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn b8_a_record_that_the_answer_lacks_is_fetched_again() {
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let (keep, take) = (seen.clone(), seen);
    let steps = vec![
        Step::asked(move |request| {
            *keep.lock().unwrap() = nonce(request);
            Step::json(
                200,
                r#"{"execution_id":"e1","status":"completed","stdout":null}"#,
            )
        }),
        Step::asked(move |_| view("completed", &ran(0, "", ""), &take.lock().unwrap())),
    ];
    let (result, _) = run(request(json!({})), steps).await;
    let result = result.unwrap();
    assert_eq!((result.stdout.len(), result.stderr.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn e3_a_missing_directory_names_itself() {
    let steps = vec![execution("completed", "refused:cwd:missing")];
    let (error, script) = fail(request(json!({ "cwd": "/nope" })), steps).await;
    assert_eq!(error.code(), Code::NotFound);
    let resource = error.resource().unwrap();
    assert_eq!(
        (resource.kind, resource.id.as_str()),
        ("working directory", "/nope")
    );
    assert_eq!(script.lines(), [EXECUTE]);
}

#[tokio::test(start_paused = true)]
async fn r19_a_missing_tool_is_named() {
    let steps = vec![execution("completed", "refused:tool:base64")];
    let (error, _) = fail(request(json!({})), steps).await;
    assert_eq!(error.code(), Code::Unsupported);
    assert!(error.message().contains("no base64 on its PATH"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn e7_e8_what_no_program_can_be_given_sends_nothing() {
    let long = "x".repeat(131_072);
    for wrong in [
        json!({ "command": ["a\u{0}b"] }),
        json!({ "command": [] }),
        json!({ "command": ["x", long] }),
        json!({ "command": long }),
        json!({ "env": { "A-B": "x" } }),
        json!({ "env": { "A": "x\u{0}" } }),
        json!({ "env": { "A": long } }),
        json!({ "cwd": "a\u{0}" }),
        json!({ "timeoutSeconds": 0 }),
        json!({ "maxOutputBytes": 1_048_577 }),
    ] {
        let (error, script) = fail(request(wrong), Vec::new()).await;
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(script.seen().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn r16_input_is_uploaded_before_the_command_and_taken_back_when_it_is_refused() {
    let mut with_input = request(json!({}));
    with_input.stdin = Some(Bytes::from_static(b"input"));
    let ok = || Step::json(200, "{}");
    let (result, script) = run(with_input.clone(), vec![ok(), ended(0, "")]).await;
    assert!(result.is_ok());
    assert_eq!(script.lines(), [UPLOAD, EXECUTE]);
    let Body::Multipart { path, file } = &script.seen()[0].body else {
        panic!("an upload is a form");
    };
    assert!(path.starts_with("/tmp/beachside-stdin-"), "{path}");
    assert_eq!(file, "input");

    let refused = Step::json(400, r#"{"message":"no"}"#);
    let steps = vec![ok(), refused, devbox("running"), cleaned()];
    let (error, script) = fail(with_input.clone(), steps).await;
    assert_eq!(error.code(), Code::Rejected);
    assert_eq!(script.lines(), [UPLOAD, EXECUTE, LOOK, EXECUTE]);

    let steps = vec![Step::json(502, ""), cleaned()];
    let (error, script) = fail(with_input, steps).await;
    assert_eq!(
        (error.code(), error.outcome().submitted),
        (Code::Unavailable, Some(false))
    );
    assert_eq!(script.lines(), [UPLOAD, EXECUTE]);
}

#[tokio::test(start_paused = true)]
async fn e7_a_long_command_travels_as_a_file_beside_its_input() {
    let mut long = request(json!({ "command": ["echo", "x".repeat(125_000)] }));
    long.stdin = Some(Bytes::from_static(b"input"));
    let ok = || Step::json(200, "{}").after(Duration::from_secs(1));
    let lost = Step::asked(|_| Step::json(200, r#"{"status":"completed","stdout":""}"#));
    let steps = vec![
        ok(),
        ok(),
        lost,
        missing(),
        execution("completed", "nothing"),
    ];
    let started = Instant::now();
    let (error, script) = fail(long, steps).await;
    assert_eq!(started.elapsed(), Duration::from_secs(1), "both at once");
    assert_eq!(error.code(), Code::OutcomeUnknown);
    assert_eq!(script.lines()[..3], [UPLOAD, UPLOAD, EXECUTE]);
    assert!(script.json(2)["command"].as_str().unwrap().len() < 1_000);
}

#[tokio::test(start_paused = true)]
async fn v17_an_environment_value_that_the_service_repeats_is_hidden() {
    let steps = vec![
        Step::json(400, r#"{"message":"bad TOKEN=s3cr3t-value"}"#),
        devbox("running"),
    ];
    let request = request(json!({ "env": { "TOKEN": "s3cr3t-value" } }));
    let (error, _) = fail(request, steps).await;
    assert!(error.message().contains("TOKEN=[redacted]"), "{error}");
}
