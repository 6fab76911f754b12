//! Answers that do not come, and commands that run once all the same.

use beachside_runloop::error::Code;
use serde_json::{Value, json};

use crate::harness::Guest;

/// Lets the first `execute` meet this fault.
async fn once(guest: &Guest, action: Value) {
    let matcher = json!({ "path": "/v1/devboxes/*/execute", "count": 1 });
    guest
        .fault(json!({ "match": matcher, "action": action }))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a1_r31_r32_a_command_whose_answer_is_lost_ran_once_and_is_unknown() {
    let guest = Guest::start().await;
    for (number, action) in [
        json!({ "type": "drop_reply" }),
        json!({ "type": "replace_reply", "status": 502, "body": "<html>" }),
        json!({ "type": "replace_reply", "status": 500, "body": "" }),
        json!({ "type": "halve_reply" }),
    ]
    .into_iter()
    .enumerate()
    {
        once(&guest, action).await;
        let error = guest
            .fail(&guest.text(&format!("echo x >>n{number}; echo seen; exit 6")))
            .await;
        assert_eq!(error.code(), Code::OutcomeUnknown, "{error}");
        assert_eq!(
            error.outcome().exit_code,
            Some(6),
            "what can be seen of it is told"
        );
        assert_eq!(error.outcome().partial.as_ref().unwrap().stdout, "seen\n");
        assert_eq!(guest.shell(&format!("wc -l <n{number}")).await.trim(), "1");
        guest.assert_clean("beachside").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r31_a_408_is_followed_to_the_result() {
    let guest = Guest::start_set(
        json!({ "optimistic_expiry": "request_timeout", "optimistic_max_seconds": 0.2 }),
    )
    .await;
    let record = guest
        .exec(&guest.text("echo x >>n; sleep 0.6; echo slow; exit 3"))
        .await;
    assert_eq!((record.exit_code, &record.stdout[..]), (3, &b"slow\n"[..]));
    assert_eq!(guest.shell("wc -l <n").await.trim(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn b8_an_output_that_cannot_be_downloaded_is_read_another_way() {
    let guest = Guest::start().await;
    let matcher = json!({ "path": "/v1/devboxes/*/download_file" });
    let action = json!({ "type": "refuse", "status": 404, "body": "gone" });
    guest
        .fault(json!({ "match": matcher, "action": action }))
        .await;
    let record = guest
        .exec(&guest.text("head -c 500000 /dev/urandom | tee copy; printf e >&2"))
        .await;
    let sum = guest.shell("cksum <copy").await;
    assert_eq!(
        (record.stdout.len(), &record.stderr[..]),
        (500_000, &b"e"[..])
    );
    let mut check = guest.text("cksum");
    check.stdin = Some(record.stdout);
    assert_eq!(guest.exec(&check).await.stdout, sum);
    guest.assert_clean("beachside").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c1_polls_that_fail_do_not_lose_the_result() {
    let guest = Guest::start_set(json!({ "optimistic_max_seconds": 0.1 })).await;
    for (path, action) in [
        ("wait_for_status", json!({ "type": "drop_reply" })),
        (
            "wait_for_status",
            json!({ "type": "refuse", "status": 503, "body": "" }),
        ),
        (
            "wait_for_status",
            json!({ "type": "replace_reply", "status": 200, "body": "<html>" }),
        ),
    ] {
        let matcher = json!({ "path": format!("/v1/devboxes/*/executions/*/{path}"), "count": 1 });
        guest
            .fault(json!({ "match": matcher, "action": action }))
            .await;
        assert_eq!(guest.shell("sleep 0.3; echo kept").await, "kept\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i5_a_suspended_sandbox_takes_no_command_and_says_so() {
    for status in [400, 404, 409] {
        let guest = Guest::start_set(json!({ "not_running_status": status })).await;
        let call = beachside_runloop::adapter::Call::default();
        guest
            .connection
            .suspend_sandbox(&guest.sandbox_id, &call)
            .await
            .unwrap();
        let error = guest.fail(&guest.text("true")).await;
        assert_eq!(error.code(), Code::NotRunning, "{status} {error}");
        let error = guest.read("x").await.unwrap_err();
        assert_eq!(error.code(), Code::NotRunning, "{status} {error}");
        let error = guest.write("x", vec![0; 100_000]).await.unwrap_err();
        assert_eq!(error.code(), Code::NotRunning, "{status} {error}");
    }
}
