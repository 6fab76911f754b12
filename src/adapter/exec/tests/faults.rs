//! Answers that are lost, refused or incomplete.

use serde_json::json;

use super::*;

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
        // It may begin after the clean-up.
        assert_eq!(error.outcome().leftovers.len(), 1);
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
async fn v17_an_environment_value_that_the_service_repeats_is_hidden() {
    let steps = vec![
        Step::json(400, r#"{"message":"bad TOKEN=s3cr3t-value"}"#),
        devbox("running"),
    ];
    let request = request(json!({ "env": { "TOKEN": "s3cr3t-value" } }));
    let (error, _) = fail(request, steps).await;
    assert!(error.message().contains("TOKEN=[redacted]"), "{error}");
}
