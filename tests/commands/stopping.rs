//! Deadlines and signals, with real processes to kill.

use std::time::{Duration, Instant};

use beachside_runloop::adapter::Call;
use beachside_runloop::error::{Code, Error, Killed};
use bytes::Bytes;
use serde_json::json;

use crate::harness::Guest;

fn output(error: &Error) -> Option<(Bytes, Bytes)> {
    let partial = error.outcome().partial.clone()?;
    Some((partial.stdout, partial.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn r17_f1_f6_past_its_deadline_the_whole_group_is_gone_and_its_output_on_the_error() {
    for settings in [json!({}), json!({ "execution_id_is_command_id": false })] {
        let guest = Guest::start_set(settings).await;
        for script in [
            "printf partial; printf err >&2; sleep 31.25; echo hi",
            "printf partial; printf err >&2; sleep 31.25 | cat",
            "printf partial; printf err >&2; sh -c 'sh -c \"sleep 31.25; true\"; true'",
            "printf partial; printf err >&2; trap '' TERM HUP INT; sleep 31.25; echo hi",
        ] {
            let mut request = guest.text(script);
            request.timeout_seconds = Some(1.0);
            let began = Instant::now();
            let error = guest.fail(&request).await;
            assert!(
                began.elapsed() < Duration::from_secs(3),
                "{:?} {script}",
                began.elapsed()
            );
            assert_eq!(error.code(), Code::OutcomeUnknown, "{error}");
            assert_eq!(error.outcome().killed, Some(Killed::Yes), "{script}");
            let expected = (Bytes::from_static(b"partial"), Bytes::from_static(b"err"));
            assert_eq!(output(&error), Some(expected), "{script}");
            guest.assert_clean("31.25").await;
        }
        assert_eq!(guest.shell("echo next").await, "next\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f3_what_left_the_group_outlives_the_deadline_and_the_result() {
    let guest = Guest::start().await;
    let mut request = guest.text("(sleep 0.6; touch ~/late) & exit 0");
    request.timeout_seconds = Some(0.5);
    assert_eq!(
        guest.exec(&request).await.exit_code,
        0,
        "the command itself had ended"
    );
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(guest.shell("ls ~/late | wc -l").await.trim(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn r17_a_kill_before_the_id_is_known_reaches_the_command() {
    let guest = Guest::start().await;
    let rule = json!({ "match": { "path": "/v1/devboxes/*/execute", "count": 1 }, "action": { "type": "hold_reply" } });
    guest.fault(rule).await;
    let mut request = guest.text("printf early; sleep 31.25");
    request.timeout_seconds = Some(1.5);
    let began = Instant::now();
    let error = guest.fail(&request).await;
    assert!(began.elapsed() < Duration::from_millis(3500));
    assert_eq!(error.outcome().killed, Some(Killed::Yes));
    assert_eq!(output(&error).unwrap().0, "early");
    guest.assert_clean("31.25").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r17_a_service_that_does_not_answer_holds_the_call_two_seconds_at_most() {
    let guest = Guest::start().await;
    for path in ["/v1/devboxes/*/executions/**", "/v1/devboxes/*/execute"] {
        let after = u64::from(path.ends_with("execute"));
        let matcher = json!({ "path": path, "after": after });
        guest
            .fault(json!({ "match": matcher, "action": { "type": "hold_request" } }))
            .await;
    }
    let mut request = guest.text("sleep 31.25");
    request.timeout_seconds = Some(2.0);
    let began = Instant::now();
    let error = guest.fail(&request).await;
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(error.code(), Code::OutcomeUnknown);
    assert_eq!(error.outcome().killed, Some(Killed::Unknown));
    assert!(error.outcome().output_unavailable);
    assert_eq!(error.outcome().leftovers.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn f7_a_signal_at_any_moment_leaves_nothing_running() {
    let guest = Guest::start_set(json!({ "optimistic_max_seconds": 0.3, "latency_ms": 20 })).await;
    for milliseconds in [0, 5, 15, 30, 60, 150, 290, 310, 400, 600] {
        let mut request = guest.text("while :; do echo chatter; sleep 0.0125; done");
        request.stdin = Some(Bytes::from_static(b"input"));
        let call = Call::default();
        let signal = call.cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            signal.cancel();
        });
        let error = guest.connection.exec(&request, &call).await.unwrap_err();
        assert_eq!(error.code(), Code::Cancelled, "{milliseconds} ms: {error}");
        assert!(error.outcome().submitted.is_some());
        if error.outcome().submitted == Some(true) {
            assert!(error.outcome().killed.is_some());
        }
        guest.assert_clean("0.0125").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v23_a_signal_that_came_before_sends_nothing() {
    let guest = Guest::start().await;
    let call = Call::default();
    call.cancel.cancel();
    let error = guest
        .connection
        .exec(&guest.text("true"), &call)
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.outcome().submitted),
        (Code::Cancelled, Some(false))
    );
    assert_eq!(guest.requests().await, [""; 0]);
}
