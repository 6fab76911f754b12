//! Disk snapshots and boxes that start from them.

use serde_json::{Value, json};

use crate::support::Client;

async fn settled(client: &Client, id: &str) -> Value {
    loop {
        let path = format!("/v1/devboxes/disk_snapshots/{id}/status");
        let status = client.get(&path).await.json(200);
        if status["status"] != "in_progress" {
            return status;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_snapshot_outlives_its_source_and_a_box_starts_from_it() {
    let client = Client::start();
    let launch = json!({ "resource_size_request": "MEDIUM", "keep_alive_time_seconds": 77 });
    let source = client
        .running_devbox(json!({
            "launch_parameters": launch,
            "environment_variables": { "E": "1" },
            "metadata": { "of": "source" },
        }))
        .await;
    client
        .run(
            &source,
            "echo kept > file; mkdir d; ln -s ../file d/link; echo x > /tmp/t",
        )
        .await;
    let request = json!({ "name": "s", "metadata": { "k": "v" }, "commit_message": "m" });
    let path = format!("/v1/devboxes/{source}/snapshot_disk");
    let snapshot = client.post(&path, request).await.json(200);
    let id = snapshot["id"].as_str().unwrap();
    assert!(id.starts_with("snp_"));
    assert_eq!(snapshot["source_devbox_id"], source.as_str());
    assert_eq!(snapshot["commit_message"], "m");
    assert!(snapshot.get("status").is_none());
    assert!(snapshot["size_bytes"].as_u64().unwrap() > 0);
    client
        .post(&format!("/v1/devboxes/{source}/shutdown"), json!({}))
        .await
        .json(200);

    let restored = client.running_devbox(json!({ "snapshot_id": id })).await;
    let view = client
        .get(&format!("/v1/devboxes/{restored}"))
        .await
        .json(200);
    assert_eq!(view["snapshot_id"], id);
    assert_eq!(
        view["launch_parameters"],
        json!({ "resource_size_request": "MEDIUM" })
    );
    assert_eq!(view["metadata"], json!({}));
    let seen = client
        .run(&restored, "cat d/link; printf \"${E-unset}\"")
        .await;
    assert_eq!(seen["stdout"], "kept\nunset");
    client.run(&restored, "echo changed > file").await;

    client
        .post(
            &format!("/v1/devboxes/disk_snapshots/{id}/delete"),
            json!({}),
        )
        .await
        .json(200);
    assert_eq!(
        client.run(&restored, "cat file").await["stdout"],
        "changed\n"
    );
    client
        .post("/v1/devboxes", json!({ "snapshot_id": id }))
        .await
        .json(400);
}

#[tokio::test]
async fn an_asynchronous_snapshot_is_polled_and_a_shutdown_waits_for_it_unless_forced() {
    let client = Client::start_set(json!({ "snapshot_ms": 300 }));
    let source = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{source}/snapshot_disk_async");
    let snapshot = client.post(&path, json!({})).await.json(200);
    let id = snapshot["id"].as_str().unwrap();
    let one = format!("/v1/devboxes/disk_snapshots/{id}");
    let status = client.get(&format!("{one}/status")).await.json(200);
    assert_eq!(status, json!({ "status": "in_progress" }));
    client
        .post(&format!("{one}/delete"), json!({}))
        .await
        .json(409);
    client
        .post("/v1/devboxes", json!({ "snapshot_id": id }))
        .await
        .json(400);
    let shutdown = format!("/v1/devboxes/{source}/shutdown");
    client
        .post(&shutdown, json!({ "force": true }))
        .await
        .json(409);
    let view = client
        .get(&format!("/v1/devboxes/{source}"))
        .await
        .json(200);
    assert_eq!(view["status"], "running");
    let status = settled(&client, id).await;
    assert_eq!(status["status"], "complete");
    assert_eq!(status["snapshot"]["id"], id);

    let second = client.post(&path, json!({})).await.json(200);
    let second = second["id"].as_str().unwrap();
    let view = client
        .post(&format!("{shutdown}?force=true"), json!({}))
        .await
        .json(200);
    assert_eq!(view["status"], "shutdown");
    let status = settled(&client, second).await;
    assert_eq!(status["status"], "error");
    assert!(status["error_message"].as_str().is_some());
    let delete = format!("/v1/devboxes/disk_snapshots/{second}/delete");
    client.post(&delete, json!({})).await.json(409);
    client.post(&path, json!({})).await.json(400);
}

#[tokio::test]
async fn a_deleted_snapshot_is_told_and_may_be_deleted_again() {
    let client = Client::start();
    let source = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{source}/snapshot_disk");
    let snapshot = client.post(&path, json!({})).await.json(200);
    let one = format!(
        "/v1/devboxes/disk_snapshots/{}",
        snapshot["id"].as_str().unwrap()
    );
    for _ in 0..2 {
        let deleted = client
            .post(&format!("{one}/delete"), json!({}))
            .await
            .json(200);
        assert_eq!(deleted, json!({}));
    }
    let status = client.get(&format!("{one}/status")).await.json(200);
    assert_eq!(status, json!({ "status": "deleted" }));
    let listed = client.get("/v1/devboxes/disk_snapshots").await.json(200);
    assert_eq!(listed["snapshots"], json!([]));
    client
        .post(
            "/_simulator/settings",
            json!({ "repeated_delete_status": 404 }),
        )
        .await
        .json(200);
    client
        .post(&format!("{one}/delete"), json!({}))
        .await
        .json(404);
    client
        .post("/v1/devboxes/disk_snapshots/snp_none/delete", json!({}))
        .await
        .json(404);
    client
        .get("/v1/devboxes/disk_snapshots/snp_none/status")
        .await
        .json(404);
    client
        .post("/v1/devboxes/dbx_none/snapshot_disk", json!({}))
        .await
        .json(404);
    client
        .post("/v1/devboxes/dbx_none/snapshot_disk_async", json!({}))
        .await
        .json(404);
}

#[tokio::test]
async fn snapshots_are_listed_by_source_and_metadata() {
    let client = Client::start();
    let (one, two) = (
        client.running_devbox(json!({})).await,
        client.running_devbox(json!({})).await,
    );
    for (source, metadata) in [
        (&one, json!({ "k.a": "v 1", "n": "1" })),
        (&one, json!({ "k.a": "v 2", "n": "2" })),
        (&two, json!({ "k.a": "v 1", "n": "3" })),
    ] {
        let path = format!("/v1/devboxes/{source}/snapshot_disk");
        client
            .post(&path, json!({ "metadata": metadata }))
            .await
            .json(200);
    }
    for (query, expected) in [
        (String::new(), vec!["3", "2", "1"]),
        (format!("devbox_id={one}"), vec!["2", "1"]),
        ("metadata%5Bk.a%5D=v%201".to_owned(), vec!["3", "1"]),
        (format!("metadata[k.a]=v+1&devbox_id={one}"), vec!["1"]),
        ("metadata%5Bn%5D%5Bin%5D=1,3".to_owned(), vec!["3", "1"]),
        ("metadata[n]=none".to_owned(), vec![]),
        ("source_blueprint_id=bpt_none".to_owned(), vec![]),
    ] {
        let page = client
            .get(&format!("/v1/devboxes/disk_snapshots?{query}"))
            .await
            .json(200);
        let items = page["snapshots"].as_array().unwrap();
        let seen: Vec<_> = items
            .iter()
            .map(|item| item["metadata"]["n"].as_str().unwrap())
            .collect();
        assert_eq!(seen, expected, "{query}");
        assert_eq!(page["total_count"], expected.len());
    }
    client
        .get("/v1/devboxes/disk_snapshots?devbox_id=dbx_none")
        .await
        .json(404);
    let keys = client
        .get("/v1/devboxes/disk_snapshots/metadata/keys")
        .await
        .json(200);
    assert_eq!(keys["keys"], json!(["k.a", "n"]));
}

#[tokio::test]
async fn an_update_replaces_the_metadata_and_is_seen_in_the_status() {
    let client = Client::start();
    let source = client.running_devbox(json!({})).await;
    let request = json!({ "name": "a", "metadata": { "x": "1" } });
    let path = format!("/v1/devboxes/{source}/snapshot_disk");
    let snapshot = client.post(&path, request).await.json(200);
    let one = format!(
        "/v1/devboxes/disk_snapshots/{}",
        snapshot["id"].as_str().unwrap()
    );
    let update = json!({ "name": "b", "metadata": { "y": "2" } });
    let view = client.post(&one, update).await.json(200);
    assert_eq!(view["metadata"], json!({ "y": "2" }));
    let status = client.get(&format!("{one}/status")).await.json(200);
    assert_eq!(status["snapshot"]["name"], "b");
    client
        .post(&one, json!({ "commit_message": "x".repeat(1001) }))
        .await
        .json(400);
    client
        .post("/v1/devboxes/disk_snapshots/snp_none", json!({}))
        .await
        .json(404);
}

#[tokio::test]
async fn a_suspended_box_can_be_snapshotted() {
    let client = Client::start();
    let source = client.running_devbox(json!({})).await;
    client.run(&source, "echo kept > file").await;
    client
        .post(&format!("/v1/devboxes/{source}/suspend"), json!({}))
        .await
        .json(200);
    client.wait(&source, &["suspended"]).await;
    let path = format!("/v1/devboxes/{source}/snapshot_disk");
    let snapshot = client.post(&path, json!({})).await.json(200);
    let restored = client
        .running_devbox(json!({ "snapshot_id": snapshot["id"] }))
        .await;
    assert_eq!(client.run(&restored, "cat file").await["stdout"], "kept\n");
}

#[tokio::test]
async fn i6_a_snapshot_fails_or_vanishes_when_a_rule_says_so() {
    let client = Client::start();
    let source = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{source}/snapshot_disk_async");
    let rule = |outcome: Value| {
        json!({
            "match": { "path": "/v1/devboxes/*/snapshot_disk_async", "count": 1 },
            "action": outcome,
        })
    };
    client
        .fault(rule(
            json!({ "type": "snapshot_outcome", "error": "disk on fire" }),
        ))
        .await;
    let failed = client.post(&path, json!({})).await.json(200);
    let status = settled(&client, failed["id"].as_str().unwrap()).await;
    assert_eq!(
        status,
        json!({ "status": "error", "error_message": "disk on fire" })
    );
    client
        .fault(rule(json!({ "type": "snapshot_outcome", "vanish": true })))
        .await;
    let vanished = client.post(&path, json!({})).await.json(200);
    let one = format!(
        "/v1/devboxes/disk_snapshots/{}/status",
        vanished["id"].as_str().unwrap()
    );
    while client.get(&one).await.status != 404 {
        tokio::task::yield_now().await;
    }
}
