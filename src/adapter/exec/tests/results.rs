//! Commands that end, and what it takes to bring their results.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::Instant;

use super::*;

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
async fn r18_a_failed_clean_up_is_done_again_and_changes_no_result() {
    let failed = || Step::json(500, "");
    for tidying in [
        vec![failed(), cleaned()],
        vec![failed(), failed(), failed()],
        // It could not remove this, and would not the next time.
        vec![execution("completed", "cleaned:/tmp/x")],
        // The time is over then.
        vec![Step::Hang],
    ] {
        let sent = tidying.len();
        let mut steps = vec![
            execution("completed", LARGE),
            bytes(b"stdout"),
            bytes(b"error"),
        ];
        steps.extend(tidying);
        let (result, script) = run(request(json!({})), steps).await;
        assert_eq!(result.unwrap().exit_code, 0);
        let removing = &script.lines()[3..];
        assert_eq!(removing, vec![EXECUTE; sent]);
    }
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
