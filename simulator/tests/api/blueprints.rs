//! Blueprints: building, naming, listing, deleting.

use serde_json::{Value, json};

use crate::support::Client;

const ALL: &str = "/v1/blueprints";

async fn built(client: &Client, request: Value) -> Value {
    let created = client.post(ALL, request).await.json(200);
    let path = format!("{ALL}/{}", created["id"].as_str().unwrap());
    loop {
        let view = client.get(&path).await.json(200);
        if matches!(view["status"].as_str(), Some("build_complete" | "failed")) {
            return view;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_blueprint_is_built_from_setup_commands_and_boxes_start_from_it() {
    let client = Client::start();
    let request = json!({
        "name": "b",
        "dockerfile": "FROM ubuntu\n# note\nRUN echo docker > /tmp/d && \\\n    echo more >> /tmp/d\n",
        "system_setup_commands": ["echo setup > setup"],
        "file_mounts": { "/home/user/mounted": "m" },
        "launch_parameters": { "keep_alive_time_seconds": 99, "resource_size_request": "LARGE" },
        "metadata": { "k": "v" },
    });
    let view = built(&client, request).await;
    assert_eq!(view["status"], "build_complete");
    assert_eq!(view["state"], "created");
    assert_eq!(view["parameters"]["name"], "b");
    assert_eq!(view["metadata"], json!({ "k": "v" }));
    let id = view["id"].as_str().unwrap();
    let by_id = json!({
        "blueprint_id": id,
        "launch_parameters": { "keep_alive_time_seconds": 100 },
    });
    let devbox = client.running_devbox(by_id).await;
    let seen = client
        .run(&devbox, "cat setup mounted; cat /home/user/mounted")
        .await;
    assert_eq!(seen["stdout"], "setup\nmm");
    let shown = client
        .get(&format!("/v1/devboxes/{devbox}"))
        .await
        .json(200);
    assert_eq!(shown["blueprint_id"], id);
    assert_eq!(
        shown["launch_parameters"],
        json!({ "keep_alive_time_seconds": 100, "resource_size_request": "LARGE" })
    );
    let logs = client.get(&format!("{ALL}/{id}/logs")).await.json(200);
    assert_eq!(logs["blueprint_id"], id);
    assert!(logs["logs"].as_array().unwrap().len() >= 3);
    let child = built(
        &client,
        json!({ "name": "c", "base_blueprint_id": id, "system_setup_commands": ["cat setup > copy"] }),
    )
    .await;
    assert_eq!(child["base_blueprint_id"], id);
    let devbox = client
        .running_devbox(json!({ "blueprint_name": "c" }))
        .await;
    assert_eq!(client.run(&devbox, "cat copy").await["stdout"], "setup\n");
}

#[tokio::test]
async fn a_name_means_the_newest_that_was_built() {
    let client = Client::start();
    let first = built(&client, json!({ "name": "b" })).await;
    let second = built(&client, json!({ "name": "b" })).await;
    let failed = built(
        &client,
        json!({ "name": "b", "system_setup_commands": ["exit 3"] }),
    )
    .await;
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["failure_reason"], "build_failed");
    assert_ne!(first["id"], second["id"]);
    let created = client
        .post("/v1/devboxes", json!({ "blueprint_name": "b" }))
        .await
        .json(200);
    assert_eq!(created["blueprint_id"], second["id"]);
    client
        .post("/v1/devboxes", json!({ "blueprint_id": failed["id"] }))
        .await
        .json(400);
}

#[tokio::test]
async fn a_build_that_cannot_be_done_here_fails_with_a_line_in_its_log() {
    let client = Client::start();
    let view = built(
        &client,
        json!({ "name": "b", "dockerfile": "FROM x\nCOPY a b" }),
    )
    .await;
    assert_eq!(view["status"], "failed");
    let logs = client
        .get(&format!("{ALL}/{}/logs", view["id"].as_str().unwrap()))
        .await
        .json(200);
    assert!(logs.to_string().contains("COPY a b"), "{logs}");
    client.post(ALL, json!({})).await.json(400);
    client
        .post(ALL, json!({ "name": "b", "base_blueprint_name": "none" }))
        .await
        .json(400);
    client
        .post(ALL, json!({ "name": "b", "build_context": {} }))
        .await
        .json(400);
}

#[tokio::test]
async fn a_build_fails_or_lingers_when_a_rule_says_so() {
    let client = Client::start();
    client
        .fault(json!({
            "match": { "method": "POST", "path": ALL, "count": 1 },
            "action": { "type": "build_outcome", "failure_reason": "out_of_disk" },
        }))
        .await;
    let view = built(&client, json!({ "name": "b" })).await;
    assert_eq!(view["status"], "failed");
    assert_eq!(view["failure_reason"], "out_of_disk");
    client
        .post("/_simulator/settings", json!({ "build_ms": 60_000 }))
        .await
        .json(200);
    let created = client.post(ALL, json!({ "name": "slow" })).await.json(200);
    assert_ne!(created["status"], "build_complete");
    client
        .post("/v1/devboxes", json!({ "blueprint_id": created["id"] }))
        .await
        .json(400);
}

#[tokio::test]
async fn blueprints_are_listed_by_name_and_status_and_public_ones_apart() {
    let client = Client::start();
    built(&client, json!({ "name": "base" })).await;
    built(
        &client,
        json!({ "name": "base-2", "system_setup_commands": ["false"] }),
    )
    .await;
    let count = async |query: &str| {
        client.get(&format!("{ALL}{query}")).await.json(200)["total_count"].clone()
    };
    assert_eq!(count("").await, 2);
    assert_eq!(count("?name=base").await, 2);
    assert_eq!(count("?status=failed").await, 1);
    client
        .post(
            "/_simulator/settings",
            json!({ "blueprint_name_match": "exact" }),
        )
        .await
        .json(200);
    assert_eq!(count("?name=base").await, 1);
    let public = client.get(&format!("{ALL}/list_public")).await.json(200);
    let name = public["blueprints"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("runloop/"));
    client
        .running_devbox(json!({ "blueprint_name": name }))
        .await;
    let id = public["blueprints"][0]["id"].as_str().unwrap();
    client
        .post(&format!("{ALL}/{id}/delete"), json!({}))
        .await
        .json(400);
}

#[tokio::test]
async fn a_deleted_blueprint_is_told_and_one_with_snapshots_stays() {
    let client = Client::start();
    let view = built(&client, json!({ "name": "b" })).await;
    let one = format!("{ALL}/{}", view["id"].as_str().unwrap());
    let devbox = client
        .running_devbox(json!({ "blueprint_name": "b" }))
        .await;
    let path = format!("/v1/devboxes/{devbox}/snapshot_disk");
    let snapshot = client.post(&path, json!({})).await.json(200);
    assert_eq!(snapshot["source_blueprint_id"], view["id"]);
    let id = snapshot["id"].as_str().unwrap();
    let refused = client
        .post(&format!("{one}/delete"), json!({}))
        .await
        .json(400);
    assert!(refused["message"].as_str().unwrap().contains(id));
    client
        .post(
            &format!("/v1/devboxes/disk_snapshots/{id}/delete"),
            json!({}),
        )
        .await
        .json(200);
    for _ in 0..2 {
        let deleted = client
            .post(&format!("{one}/delete"), json!({}))
            .await
            .json(200);
        assert_eq!(deleted, json!({}));
    }
    assert_eq!(client.get(&one).await.json(200)["state"], "deleted");
    client
        .post("/v1/devboxes", json!({ "blueprint_name": "b" }))
        .await
        .json(400);
    client.get(&format!("{ALL}/bpt_none")).await.json(404);
    client.get(&format!("{ALL}/bpt_none/logs")).await.json(404);
    client
        .post(&format!("{ALL}/bpt_none/delete"), json!({}))
        .await
        .json(404);
}

#[tokio::test]
async fn a_build_sees_secrets_and_its_image_does_not_keep_them() {
    let client = Client::start();
    let secret = json!({ "name": "S", "value": "hunter2" });
    client.post("/v1/secrets", secret).await.json(200);
    let view = built(
        &client,
        json!({
            "name": "b",
            "secrets": { "PASS": "S" },
            "system_setup_commands": ["printf %s \"$PASS\" | wc -c > length"],
        }),
    )
    .await;
    assert_eq!(view["parameters"]["secrets"], json!({ "PASS": "S" }));
    let devbox = client
        .running_devbox(json!({ "blueprint_name": "b" }))
        .await;
    let seen = client
        .run(&devbox, "cat length; printf \"${PASS-unset}\"")
        .await;
    assert_eq!(seen["stdout"], "7\nunset");
}
