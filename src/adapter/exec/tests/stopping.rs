//! Deadlines, signals and the end of the connection.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::Instant;

use super::*;

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
async fn v23_a_signal_during_an_upload_waits_for_it_and_takes_it_back() {
    let arrives = Step::json(200, "{}").after(Duration::from_millis(1500));
    let (error, script) = stopped_upload(arrives).await;
    assert_eq!(error.outcome().leftovers, [""; 0]);
    assert_eq!(script.lines(), [UPLOAD, EXECUTE]);
}

#[tokio::test(start_paused = true)]
async fn v23_an_upload_that_may_still_arrive_is_a_leftover() {
    let started = Instant::now();
    let (error, script) = stopped_upload(Step::Hang).await;
    assert!(started.elapsed() < Duration::from_millis(2500));
    let [left] = &error.outcome().leftovers[..] else {
        panic!("{:?}", error.outcome().leftovers);
    };
    assert!(left.starts_with("/tmp/beachside-stdin-"), "{left}");
    assert_eq!(script.lines(), [UPLOAD, EXECUTE]);
}

/// A command with input, of which the signal comes a second after its upload began.
async fn stopped_upload(upload: Step) -> (Error, Arc<Scripted>) {
    let (connection, script) = connect([upload, cleaned()]).await;
    let mut request = request(json!({}));
    request.stdin = Some(Bytes::from_static(b"x"));
    let error = cancelled(&connection, &request, Duration::from_secs(1))
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.outcome().submitted),
        (Code::Cancelled, Some(false))
    );
    (error, script)
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
