//! One Devbox, one command, and what the journal says of it.

use crate::support::{self, Client};
use serde_json::json;

#[tokio::test]
async fn a_command_runs_on_a_devbox_and_its_output_comes_back() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({ "name": "first" })).await;
    let execution = client
        .post(
            &format!("/v1/devboxes/{devbox}/execute"),
            json!({ "command": "printf out; printf err >&2; exit 7", "command_id": "c1" }),
        )
        .await
        .json(200);
    assert_eq!(execution["status"], "completed");
    assert_eq!(execution["exit_status"], 7);
    assert_eq!(execution["stdout"], "out");
    assert_eq!(execution["stderr"], "err");
    let ended = client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await
        .json(200);
    assert_eq!(ended["status"], "shutdown");
    assert_eq!(ended["shutdown_reason"], "api_shutdown");
}

#[tokio::test]
async fn the_same_command_id_runs_once() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{devbox}/execute");
    for _ in 0..3 {
        let body = json!({ "command": "echo x >> n; cat n", "command_id": "once" });
        let execution = client.post(&path, body).await.json(200);
        assert_eq!(execution["stdout"], "x\n");
        assert_eq!(execution["execution_id"], "once");
    }
}

#[tokio::test]
async fn killing_the_shell_leaves_its_children_and_killing_the_group_does_not() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{devbox}/execute");
    for (group, survives) in [(false, true), (true, false)] {
        let id = format!("kill-{group}");
        let body = json!({
            "command": "sleep 1000 & echo $! > child; wait; echo not reached",
            "command_id": id,
            "optimistic_timeout": 0.2,
        });
        let started = client.post(&path, body).await.json(200);
        assert_eq!(started["status"], "running");
        assert!(started.get("exit_status").is_none());
        let execution = format!("/v1/devboxes/{devbox}/executions/{id}");
        client
            .post(
                &format!("{execution}/kill"),
                json!({ "kill_process_group": group }),
            )
            .await
            .json(200);
        let ended = client
            .post(
                &format!("{execution}/wait_for_status"),
                json!({ "statuses": ["completed"] }),
            )
            .await
            .json(200);
        assert_eq!(ended["exit_status"], 137);
        assert_eq!(ended["stdout"], "");
        let body =
            json!({ "command": "kill -0 $(cat child)", "command_id": format!("look-{group}") });
        let look = client.post(&path, body).await.json(200);
        assert_eq!(look["exit_status"] == 0, survives, "{look}");
        client
            .post(&format!("{execution}/kill"), json!({}))
            .await
            .json(200);
    }
}

#[tokio::test]
async fn a_long_poll_holds_and_answers_408_when_its_time_is_up() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{devbox}/wait_for_status");
    let begin = std::time::Instant::now();
    let body = json!({ "statuses": ["suspended", "failure"], "timeout_seconds": 0.3 });
    let reply = client.post(&path, body).await;
    assert_eq!(reply.status, 408);
    assert_eq!(reply.headers["x-should-retry"], "true");
    assert!(begin.elapsed().as_millis() >= 300);
    client
        .post(&path, json!({ "statuses": [] }))
        .await
        .json(400);
    client
        .post(&path, json!({ "statuses": ["nonsense"] }))
        .await
        .json(400);
    client
        .post(
            "/v1/devboxes/dbx_none/wait_for_status",
            json!({ "statuses": ["running"] }),
        )
        .await
        .json(404);
}

#[tokio::test]
async fn the_journal_shows_what_was_sent_and_never_the_key() {
    let client = Client::start();
    client
        .post("/v1/network-policies?x=%5Ba%5D", json!({ "name": "p" }))
        .await
        .json(200);
    client.get("/v1/nothing").await.json(404);
    let journal = client.get("/_simulator/journal").await.json(200);
    let entry = &journal["entries"][0];
    assert_eq!(entry["sequence"], 1);
    assert_eq!(entry["method"], "POST");
    assert_eq!(entry["path"], "/v1/network-policies");
    assert_eq!(entry["query"], json!({ "x": "[a]" }));
    assert_eq!(entry["body"], json!({ "name": "p" }));
    assert_eq!(entry["status"], 200);
    assert_eq!(entry["request_bytes"], 12);
    assert_eq!(entry["outcome"], "answered");
    assert_eq!(entry["headers"]["authorization"], "(replaced)");
    assert_eq!(journal["entries"][1]["unexpected"], true);
    assert_eq!(journal["unexpected"], json!(["GET /v1/nothing"]));
    assert!(!journal.to_string().contains(support::KEY));
    client.delete("/_simulator/journal").await.json(200);
    let journal = client.get("/_simulator/journal").await.json(200);
    assert_eq!(journal["entries"], json!([]));
}

#[tokio::test]
async fn a_key_is_asked_for_and_any_ak_key_is_good_unless_one_is_pinned() {
    let client = Client::start();
    client.get("/v1/accounts/me").await.json(200);
    assert_eq!(client.with_key("").get("/v1/accounts/me").await.status, 401);
    assert_eq!(
        client
            .with_key("sk_other")
            .get("/v1/accounts/me")
            .await
            .status,
        401
    );
    assert_eq!(
        client
            .with_key("ak_other")
            .get("/v1/accounts/me")
            .await
            .status,
        200
    );

    let pinned = Client::start_with(runloop_simulator::Options {
        api_key: Some("ak_pinned".to_owned()),
        ..Default::default()
    });
    assert_eq!(
        pinned
            .with_key("ak_other")
            .get("/v1/accounts/me")
            .await
            .status,
        401
    );
    assert_eq!(
        pinned
            .with_key("ak_pinned")
            .get("/v1/accounts/me")
            .await
            .status,
        200
    );
}

#[test]
#[should_panic(expected = "no route for: GET /v1/nothing")]
fn an_unexpected_route_panics_at_the_end_when_asked() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = Client::start_with(runloop_simulator::Options {
        panic_on_unexpected: true,
        ..Default::default()
    });
    runtime.block_on(async { client.get("/v1/nothing").await.json(404) });
}
