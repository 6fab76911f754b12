//! Suspend, resume, shutdown, lifetimes and idle rules.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Client, events};

async fn advance(client: &Client, seconds: f64) {
    client
        .post("/_simulator/clock", json!({ "advance_seconds": seconds }))
        .await
        .json(200);
}

#[tokio::test]
async fn i4_a_suspend_keeps_the_disk_and_nothing_else() {
    let client = Client::start_set(json!({ "suspend_ms": 50, "resume_ms": 50 }));
    let launch = json!({ "launch_commands": ["echo start >> starts"] });
    let devbox = client
        .running_devbox(json!({ "launch_parameters": launch }))
        .await;
    for cycle in 1..=3 {
        let running = client
            .spawn(&devbox, json!({ "command": "sleep 1000" }))
            .await;
        client
            .run(&devbox, &format!("echo {cycle} > file{cycle}"))
            .await;
        let view = client
            .post(&format!("/v1/devboxes/{devbox}/suspend"), json!({}))
            .await
            .json(200);
        assert_eq!(view["status"], "suspending");
        client.wait(&devbox, &["suspended"]).await;
        let refused = json!({ "command": "true", "command_id": "c" });
        client
            .post(&format!("/v1/devboxes/{devbox}/execute"), refused)
            .await
            .json(400);
        let file = json!({ "file_path": "file1" });
        client
            .post(&format!("/v1/devboxes/{devbox}/read_file_contents"), file)
            .await
            .json(400);
        let view = client
            .post(&format!("/v1/devboxes/{devbox}/resume"), json!({}))
            .await
            .json(200);
        assert_eq!(view["status"], "resuming");
        client.wait(&devbox, &["running"]).await;
        client.get(&running).await.json(404);
    }
    let seen = client
        .run(&devbox, "cat file1 file2 file3 starts; pgrep -c sleep")
        .await;
    assert_eq!(seen["stdout"], "1\n2\n3\nstart\nstart\nstart\nstart\n0\n");
}

#[tokio::test]
async fn suspend_and_resume_are_refused_from_the_wrong_status() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let (suspend, resume) = (
        format!("/v1/devboxes/{devbox}/suspend"),
        format!("/v1/devboxes/{devbox}/resume"),
    );
    client.post(&resume, json!({})).await.json(400);
    client.post(&suspend, json!({})).await.json(200);
    client.wait(&devbox, &["suspended"]).await;
    client.post(&suspend, json!({})).await.json(400);
    client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await
        .json(200);
    client.post(&resume, json!({})).await.json(400);
    client
        .post("/v1/devboxes/dbx_none/suspend", json!({}))
        .await
        .json(404);
    client
        .post("/v1/devboxes/dbx_none/resume", json!({}))
        .await
        .json(404);
}

#[tokio::test]
async fn suspend_commands_run_before_the_suspend_and_have_a_deadline() {
    let client = Client::start();
    let hooks =
        json!({ "suspend_commands": ["echo bye > bye", "sleep 1000"], "suspend_deadline_ms": 300 });
    let launch = json!({ "lifecycle": { "lifecycle_hooks": hooks } });
    let devbox = client
        .running_devbox(json!({ "launch_parameters": launch }))
        .await;
    client
        .post(&format!("/v1/devboxes/{devbox}/suspend"), json!({}))
        .await
        .json(200);
    client.wait(&devbox, &["suspended"]).await;
    client
        .post(&format!("/v1/devboxes/{devbox}/resume"), json!({}))
        .await
        .json(200);
    client.wait(&devbox, &["running"]).await;
    assert_eq!(client.run(&devbox, "cat bye").await["stdout"], "bye\n");
}

#[tokio::test]
async fn a_shutdown_is_at_once_for_good_and_repeatable() {
    let client = Client::start_set(json!({ "boot_ms": 60_000 }));
    let created = client.post("/v1/devboxes", json!({})).await.json(200);
    let id = created["id"].as_str().unwrap();
    let path = format!("/v1/devboxes/{id}/shutdown");
    for _ in 0..2 {
        let view = client.post(&path, json!({})).await.json(200);
        assert_eq!(view["status"], "shutdown");
        assert_eq!(view["id"], id);
    }
    let view = client.get(&format!("/v1/devboxes/{id}")).await.json(200);
    assert_eq!(view["status"], "shutdown");
    assert_eq!(view["state_transitions"].as_array().unwrap().len(), 2);
    client
        .post("/v1/devboxes/dbx_none/shutdown", json!({}))
        .await
        .json(404);
}

#[tokio::test]
async fn a_long_poll_answers_as_soon_as_the_status_is_there() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let waiting = tokio::spawn({
        let (client, devbox) = (client.clone(), devbox.clone());
        async move { client.wait(&devbox, &["shutdown", "failure"]).await }
    });
    while client
        .get("/_simulator/journal?method=POST")
        .await
        .json(200)["entries"]
        .as_array()
        .is_some_and(|entries| entries.len() < 3)
    {
        tokio::task::yield_now().await;
    }
    let begin = Instant::now();
    client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await
        .json(200);
    assert_eq!(waiting.await.unwrap()["status"], "shutdown");
    assert!(begin.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_lifetime_ends_on_virtual_time_and_keep_alive_does_not_extend_it() {
    let client = Client::start();
    let launch = json!({ "launch_parameters": { "keep_alive_time_seconds": 600 } });
    let devbox = client.running_devbox(launch).await;
    advance(&client, 590.0).await;
    assert_eq!(
        client
            .post(&format!("/v1/devboxes/{devbox}/keep_alive"), json!({}))
            .await
            .json(200),
        json!({})
    );
    let path = format!("/v1/devboxes/{devbox}");
    assert_eq!(client.get(&path).await.json(200)["status"], "running");
    advance(&client, 11.0).await;
    let view = client.get(&path).await.json(200);
    assert_eq!(view["status"], "shutdown");
    assert_eq!(view["shutdown_reason"], "keep_alive_timeout");
    assert!(view["end_time_ms"].as_i64() > view["create_time_ms"].as_i64());
    client
        .post("/v1/devboxes/dbx_none/keep_alive", json!({}))
        .await
        .json(404);
}

#[tokio::test]
async fn the_default_lifetime_is_one_hour() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    advance(&client, 3590.0).await;
    let path = format!("/v1/devboxes/{devbox}");
    assert_eq!(client.get(&path).await.json(200)["status"], "running");
    advance(&client, 11.0).await;
    assert_eq!(client.get(&path).await.json(200)["status"], "shutdown");
}

#[tokio::test]
async fn a_lifetime_may_start_anew_with_each_resume() {
    let client = Client::start_set(json!({ "lifetime_start": "resume" }));
    let launch = json!({ "launch_parameters": { "keep_alive_time_seconds": 600 } });
    let devbox = client.running_devbox(launch).await;
    advance(&client, 500.0).await;
    client
        .post(&format!("/v1/devboxes/{devbox}/suspend"), json!({}))
        .await
        .json(200);
    client.wait(&devbox, &["suspended"]).await;
    client
        .post(&format!("/v1/devboxes/{devbox}/resume"), json!({}))
        .await
        .json(200);
    client.wait(&devbox, &["running"]).await;
    advance(&client, 500.0).await;
    let path = format!("/v1/devboxes/{devbox}");
    assert_eq!(client.get(&path).await.json(200)["status"], "running");
}

#[tokio::test]
async fn an_idle_box_is_suspended_and_use_keeps_it_from_idling() {
    let client = Client::start();
    let rule = json!({ "idle_time_seconds": 60, "on_idle": "suspend" });
    let launch = json!({ "launch_parameters": { "lifecycle": { "after_idle": rule } } });
    let devbox = client.running_devbox(launch).await;
    for _ in 0..3 {
        advance(&client, 50.0).await;
        client
            .post(&format!("/v1/devboxes/{devbox}/keep_alive"), json!({}))
            .await
            .json(200);
    }
    let busy = client
        .spawn(
            &devbox,
            json!({ "command": "while [ ! -e go ]; do sleep 0.02; done" }),
        )
        .await;
    advance(&client, 3600.0).await;
    let path = format!("/v1/devboxes/{devbox}");
    assert_eq!(
        client.get(&path).await.json(200)["status"],
        "running",
        "a command runs"
    );
    client.run(&devbox, "touch go").await;
    client.completed(&busy).await;
    advance(&client, 61.0).await;
    client.wait(&devbox, &["suspended"]).await;
}

#[tokio::test]
async fn an_idle_box_is_shut_down_when_the_rule_says_so() {
    let client = Client::start();
    let rule = json!({ "idle_time_seconds": 60, "on_idle": "shutdown" });
    let launch = json!({ "after_idle": rule, "keep_alive_time_seconds": 60 });
    let devbox = client
        .running_devbox(json!({ "launch_parameters": launch }))
        .await;
    advance(&client, 61.0).await;
    let view = client.wait(&devbox, &["shutdown"]).await;
    assert_eq!(view["shutdown_reason"], "idle");
}

#[tokio::test]
async fn usage_counts_disk_always_and_the_rest_only_while_active() {
    let client = Client::start();
    let launch = json!({ "resource_size_request": "X_SMALL", "keep_alive_time_seconds": 172_800 });
    let devbox = client
        .running_devbox(json!({ "launch_parameters": launch }))
        .await;
    advance(&client, 100.0).await;
    client
        .post(&format!("/v1/devboxes/{devbox}/suspend"), json!({}))
        .await
        .json(200);
    client.wait(&devbox, &["suspended"]).await;
    advance(&client, 1000.0).await;
    let usage = client
        .get(&format!("/v1/devboxes/{devbox}/usage"))
        .await
        .json(200);
    assert_eq!(usage["status"], "suspended");
    let number = |name: &str| usage[name].as_i64().unwrap();
    assert!(
        (100..110).contains(&number("total_active_seconds")),
        "{usage}"
    );
    assert!(
        (1100..1110).contains(&number("total_elapsed_seconds")),
        "{usage}"
    );
    assert!((50..55).contains(&number("vcpu_seconds")), "{usage}");
    assert!((4400..4440).contains(&number("disk_gb_seconds")), "{usage}");
    client.get("/v1/devboxes/dbx_none/usage").await.json(404);
}

#[tokio::test]
async fn an_eviction_is_announced_replayed_and_carried_out() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let plain = client.get("/v1/devboxes/evictions/watch").await;
    assert_eq!((plain.status, plain.text().as_str()), (200, ""));
    assert_eq!(plain.headers["content-type"], "text/plain");
    let order = json!({ "devbox_id": devbox, "in_seconds": 60 });
    let announced = client.post("/_simulator/evictions", order).await.json(200);
    let request = client
        .request(reqwest::Method::GET, "/v1/devboxes/evictions/watch")
        .header("accept", "text/event-stream");
    let mut stream = request.send().await.unwrap();
    let chunk = stream.chunk().await.unwrap().unwrap();
    let seen = events(std::str::from_utf8(&chunk).unwrap());
    assert_eq!(seen[0]["devbox_id"], devbox.as_str());
    assert_eq!(
        seen[0]["eviction_deadline_ms"],
        announced["eviction_deadline_ms"]
    );
    advance(&client, 61.0).await;
    client.wait(&devbox, &["suspended"]).await;
}
