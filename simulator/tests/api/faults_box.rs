//! Boxes that show what is not, and successes without effect.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Client;

/// A box that plays a script from its creation on.
async fn scripted(client: &Client, script: Value) -> String {
    let mut action = script;
    action["type"] = json!("devbox_script");
    client
        .fault(json!({ "match": { "method": "POST", "path": "/v1/devboxes", "count": 1 }, "action": action }))
        .await;
    let created = client.post("/v1/devboxes", json!({})).await.json(200);
    created["id"].as_str().unwrap().to_owned()
}

async fn status(client: &Client, devbox: &str) -> String {
    let view = client
        .get(&format!("/v1/devboxes/{devbox}"))
        .await
        .json(200);
    view["status"].as_str().unwrap().to_owned()
}

/// Waits for the true status.
async fn truly(client: &Client, devbox: &str, wanted: &str) {
    loop {
        let boxes = client.get("/_simulator/devboxes").await.json(200);
        let found = boxes["devboxes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["id"] == devbox);
        if found.unwrap()["true_status"] == wanted {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a4_a_box_is_stuck_until_it_is_shut_down() {
    let client = Client::start();
    let devbox = scripted(&client, json!({ "steps": [{ "status": "provisioning" }] })).await;
    truly(&client, &devbox, "running").await;
    assert_eq!(status(&client, &devbox).await, "provisioning");
    let wait = json!({ "statuses": ["running", "failure"], "timeout_seconds": 0.2 });
    client
        .post(&format!("/v1/devboxes/{devbox}/wait_for_status"), wait)
        .await
        .json(408);
    let body = json!({ "command": "true", "command_id": "c" });
    client
        .post(&format!("/v1/devboxes/{devbox}/execute"), body)
        .await
        .json(400);
    let ended = client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await
        .json(200);
    assert_eq!(ended["status"], "shutdown");
}

#[tokio::test]
async fn i5_a_box_flickers_and_shows_a_status_that_nobody_knows() {
    let client = Client::start();
    let devbox = scripted(
        &client,
        json!({ "when": "running", "steps": [
            { "status": "shutdown", "views": 1, "shutdown_reason": "idle" },
            { "status": "migrating", "views": 2 },
        ] }),
    )
    .await;
    truly(&client, &devbox, "running").await;
    let first = client
        .get(&format!("/v1/devboxes/{devbox}"))
        .await
        .json(200);
    assert_eq!(
        (&first["status"], &first["shutdown_reason"]),
        (&json!("shutdown"), &json!("idle"))
    );
    let seen = [
        status(&client, &devbox).await,
        status(&client, &devbox).await,
        status(&client, &devbox).await,
    ];
    assert_eq!(seen, ["migrating", "migrating", "running"]);
}

#[tokio::test]
async fn i5_a_step_that_ends_by_time_wakes_the_long_poll() {
    let client = Client::start();
    let script = json!({ "steps": [{ "status": "queued", "milliseconds": 400 }] });
    let devbox = scripted(&client, script).await;
    let begin = Instant::now();
    client.wait(&devbox, &["running"]).await;
    let held = begin.elapsed();
    assert!(
        held >= Duration::from_millis(350) && held < Duration::from_secs(5),
        "{held:?}"
    );
}

#[tokio::test]
async fn a_box_fails_with_a_reason() {
    let client = Client::start();
    let script = json!({ "steps": [{ "status": "failure", "failure_reason": "out_of_memory" }] });
    let devbox = scripted(&client, script).await;
    let view = client.wait(&devbox, &["running", "failure"]).await;
    assert_eq!(view["failure_reason"], "out_of_memory");
}

#[tokio::test]
async fn i5_a_suspend_seems_to_fail_or_to_last_for_ever() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let script = json!({ "when": "suspending", "steps": [
        { "status": "suspending", "views": 2 },
        { "status": "running" },
    ] });
    client
        .post(&format!("/_simulator/devboxes/{devbox}/script"), script)
        .await
        .json(200);
    let suspended = client
        .post(&format!("/v1/devboxes/{devbox}/suspend"), json!({}))
        .await
        .json(200);
    assert_eq!(suspended["status"], "suspending");
    assert_eq!(status(&client, &devbox).await, "suspending");
    assert_eq!(status(&client, &devbox).await, "running");
    client
        .post(
            "/_simulator/devboxes/dbx_none/script",
            json!({ "steps": [] }),
        )
        .await
        .json(404);
}

#[tokio::test]
async fn a_sticky_script_outlives_the_box() {
    let client = Client::start();
    let script = json!({ "when": "shutdown", "sticky": true, "steps": [{ "status": "running", "views": 2 }] });
    let devbox = scripted(&client, script).await;
    let claimed = client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await
        .json(200);
    assert_eq!(claimed["status"], "running");
    assert_eq!(status(&client, &devbox).await, "running");
    assert_eq!(status(&client, &devbox).await, "shutdown");
}

#[tokio::test]
async fn i1_a_success_has_no_effect() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({ "name": "kept" })).await;
    let policy = client
        .post("/v1/network-policies", json!({ "name": "p" }))
        .await
        .json(200);
    let policy = policy["id"].as_str().unwrap();
    let snapshot = client
        .post(&format!("/v1/devboxes/{devbox}/snapshot_disk"), json!({}))
        .await
        .json(200);
    let snapshot = snapshot["id"].as_str().unwrap();
    let execution = client
        .spawn(&devbox, json!({ "command": "sleep 1000" }))
        .await;
    client
        .fault(
            json!({ "id": "n", "match": { "method": "POST" }, "action": { "type": "no_effect" } }),
        )
        .await;
    client
        .fault(json!({
            "match": { "path": "/v1/devboxes/*/shutdown" },
            "action": { "type": "edit_reply", "set": { "/status": "shutdown" } },
        }))
        .await;
    let claimed = client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await
        .json(200);
    assert_eq!(claimed["status"], "shutdown");
    for (path, body) in [
        (
            format!("/v1/devboxes/{devbox}"),
            json!({ "name": "changed" }),
        ),
        (format!("/v1/devboxes/{devbox}/suspend"), json!({})),
        (format!("/v1/devboxes/{devbox}/keep_alive"), json!({})),
        (format!("/v1/devboxes/{devbox}/enable_tunnel"), json!({})),
        (format!("/v1/network-policies/{policy}/delete"), json!({})),
        (
            format!("/v1/devboxes/disk_snapshots/{snapshot}/delete"),
            json!({}),
        ),
        (
            format!("{execution}/kill"),
            json!({ "kill_process_group": true }),
        ),
        (
            format!("/v1/devboxes/{devbox}/write_file_contents"),
            json!({ "file_path": "f", "contents": "c" }),
        ),
    ] {
        client.post(&path, body).await.json(200);
    }
    client.delete("/_simulator/faults").await.json(200);
    let view = client
        .get(&format!("/v1/devboxes/{devbox}"))
        .await
        .json(200);
    assert_eq!(view["status"], "running");
    assert_eq!(view["name"], "kept");
    assert!(view.get("tunnel").is_none());
    client
        .get(&format!("/v1/network-policies/{policy}"))
        .await
        .json(200);
    let path = format!("/v1/devboxes/disk_snapshots/{snapshot}/status");
    assert_eq!(client.get(&path).await.json(200)["status"], "complete");
    assert_eq!(client.get(&execution).await.json(200)["status"], "running");
    assert_eq!(client.run(&devbox, "test -e f").await["exit_status"], 1);
}
