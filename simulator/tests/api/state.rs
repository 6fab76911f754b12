//! State that outlives a simulator.

use runloop_simulator::Options;
use serde_json::{Value, json};

use crate::support::Client;

fn start(directory: &std::path::Path) -> Client {
    let state_dir = Some(directory.to_owned());
    Client::start_with(Options {
        state_dir,
        ..Options::default()
    })
}

/// What every list route shows, and the account.
async fn everything(client: &Client) -> Vec<Value> {
    let mut all = Vec::new();
    for path in [
        "/v1/accounts/me",
        "/v1/network-policies",
        "/v1/secrets",
        "/v1/blueprints",
        "/v1/devboxes/disk_snapshots",
    ] {
        all.push(client.get(path).await.json(200));
    }
    all
}

#[tokio::test]
async fn a_second_simulator_goes_on_where_the_first_ended() {
    let directory = tempfile::tempdir().unwrap();
    let first = start(directory.path());
    first
        .post(
            "/v1/network-policies",
            json!({ "name": "p", "allow_all": true }),
        )
        .await
        .json(200);
    first
        .post("/v1/secrets", json!({ "name": "S", "value": "hunter2" }))
        .await
        .json(200);
    let blueprint = json!({ "name": "b", "system_setup_commands": ["echo built > built"] });
    let blueprint = first.post("/v1/blueprints", blueprint).await.json(200);
    let path = format!("/v1/blueprints/{}", blueprint["id"].as_str().unwrap());
    while first.get(&path).await.json(200)["status"] != "build_complete" {
        tokio::task::yield_now().await;
    }
    let request = json!({
        "name": "kept",
        "environment_variables": { "E": "1" },
        "tunnel": { "auth_mode": "authenticated" },
        "launch_parameters": { "resource_size_request": "MEDIUM" },
    });
    let devbox = first.running_devbox(request).await;
    first.run(&devbox, "echo disk > file").await;
    let snapshot = first
        .post(&format!("/v1/devboxes/{devbox}/snapshot_disk"), json!({}))
        .await;
    let snapshot = snapshot.json(200)["id"].clone();
    let ended = first.running_devbox(json!({})).await;
    first
        .post(&format!("/v1/devboxes/{ended}/shutdown"), json!({}))
        .await
        .json(200);
    let before = everything(&first).await;
    let view = first.get(&format!("/v1/devboxes/{devbox}")).await.json(200);
    drop(first);

    let second = start(directory.path());
    assert_eq!(everything(&second).await, before);
    let path = format!("/v1/devboxes/{devbox}");
    let taken_over = second.get(&path).await.json(200);
    assert_eq!(taken_over["status"], "suspended");
    for field in ["name", "tunnel", "launch_parameters", "create_time_ms"] {
        assert_eq!(taken_over[field], view[field], "{field}");
    }
    let shut_down = second.get(&format!("/v1/devboxes/{ended}")).await.json(200);
    assert_eq!(shut_down["status"], "shutdown");
    second
        .post(&format!("{path}/resume"), json!({}))
        .await
        .json(200);
    second.wait(&devbox, &["running"]).await;
    assert_eq!(
        second.run(&devbox, "cat file; printf $E").await["stdout"],
        "disk\n1"
    );
    for request in [
        json!({ "snapshot_id": snapshot }),
        json!({ "blueprint_name": "b" }),
    ] {
        let restored = second.running_devbox(request).await;
        let seen = second.run(&restored, "cat file built 2>/dev/null").await;
        assert!(
            ["disk\n", "built\n"].contains(&seen["stdout"].as_str().unwrap()),
            "{seen}"
        );
    }
}

#[tokio::test]
async fn the_saved_state_is_for_the_owners_eyes_only() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    drop(start(directory.path()));
    let mode = directory
        .path()
        .join("api.json")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_state_directory_that_cannot_be_used_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("api.json"), "{").unwrap();
    let options = Options {
        state_dir: Some(directory.path().to_owned()),
        ..Options::default()
    };
    assert!(runloop_simulator::Simulator::start(options).is_err());
}
