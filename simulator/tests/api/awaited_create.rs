//! The create that waits for the boot.

use crate::support::Client;
use serde_json::json;

const PATH: &str = "/v1/devboxes/create_and_await_running";

#[tokio::test]
async fn an_awaited_create_answers_once_the_devbox_runs() {
    let client = Client::start_set(json!({ "boot_ms": 100 }));
    let devbox = client.post(PATH, json!({ "name": "awaited" })).await;
    let devbox = devbox.json(200);
    assert_eq!(devbox["status"], "running");
    assert_eq!(devbox["name"], "awaited");
}

#[tokio::test]
async fn an_awaited_create_that_outlasts_its_hold_is_200_with_the_status_so_far() {
    let client = Client::start_set(json!({ "boot_ms": 60_000, "create_hold_seconds": 0.05 }));
    let devbox = client.post(PATH, json!({})).await.json(200);
    assert_eq!(devbox["status"], "provisioning");
}
