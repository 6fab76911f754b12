//! Quotas, the limit of requests at once, repeats, settings.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, send};

#[tokio::test]
async fn a_quota_refuses_one_more_of_each_kind() {
    let client = Client::start_set(json!({
        "devbox_quota": 1,
        "snapshot_quota": 1,
        "blueprint_quota": 1,
        "retry_after": "Wed, 21 Oct 2099 07:28:00 GMT",
    }));
    let devbox = client.running_devbox(json!({})).await;
    let refused = client.post("/v1/devboxes", json!({})).await;
    refused.json(429);
    assert_eq!(
        refused.headers["retry-after"],
        "Wed, 21 Oct 2099 07:28:00 GMT"
    );
    let path = format!("/v1/devboxes/{devbox}/snapshot_disk");
    client.post(&path, json!({})).await.json(200);
    client.post(&path, json!({})).await.json(429);
    client
        .post("/v1/blueprints", json!({ "name": "a" }))
        .await
        .json(200);
    let switches = json!({ "quota_status": 400, "retry_after": null });
    client
        .post("/_simulator/settings", switches)
        .await
        .json(200);
    let refused = client.post("/v1/blueprints", json!({ "name": "b" })).await;
    refused.json(400);
    assert!(!refused.headers.contains_key("retry-after"));
    client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await
        .json(200);
    client.post("/v1/devboxes", json!({})).await.json(200);
}

#[tokio::test]
async fn metadata_beyond_the_limits_is_400_everywhere_and_changes_nothing() {
    let client = Client::start_set(json!({ "metadata_max_entries": 2, "metadata_max_bytes": 8 }));
    let good = json!({ "metadata": { "a": "12345678", "b": "" } });
    let devbox = client.running_devbox(good.clone()).await;
    let update = format!("/v1/devboxes/{devbox}");
    let take = format!("{update}/snapshot_disk");
    let snapshot = client.post(&take, good.clone()).await.json(200);
    let rename = format!(
        "/v1/devboxes/disk_snapshots/{}",
        snapshot["id"].as_str().unwrap()
    );
    for wrong in [
        json!({ "a": "", "b": "", "c": "" }),
        json!({ "a": "123456789" }),
        json!({ "123456789": "" }),
    ] {
        for path in ["/v1/devboxes", &update, &take, &rename] {
            client
                .post(path, json!({ "metadata": wrong }))
                .await
                .json(400);
        }
    }
    let view = client.get(&update).await.json(200);
    assert_eq!(view["metadata"], good["metadata"]);
    client
        .post(
            "/_simulator/settings",
            json!({ "metadata_max_entries": null }),
        )
        .await
        .json(200);
    client
        .post(
            &update,
            json!({ "metadata": { "a": "", "b": "", "c": "" } }),
        )
        .await
        .json(200);
}

#[tokio::test]
async fn one_request_too_many_at_once_is_429_with_any_retry_after() {
    let client = Client::start_set(json!({ "max_concurrent_requests": 1, "retry_after": "soon" }));
    client.fault(json!({ "match": { "path": "/v1/secrets" }, "action": { "type": "latency", "milliseconds": 60000 } })).await;
    let devbox = client.running_devbox(json!({})).await;
    let held = tokio::spawn({
        let (client, path) = (
            client.clone(),
            format!("/v1/devboxes/{devbox}/wait_for_status"),
        );
        async move {
            client
                .post(&path, json!({ "statuses": ["shutdown"] }))
                .await
                .status
        }
    });
    let refused = loop {
        let reply = client.get("/v1/accounts/me").await;
        if reply.status != 200 {
            break reply;
        }
    };
    refused.json(429);
    assert_eq!(refused.headers["retry-after"], "soon");
    client
        .post(
            "/_simulator/settings",
            json!({ "max_concurrent_requests": null }),
        )
        .await
        .json(200);
    client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await
        .json(200);
    assert_eq!(held.await.unwrap(), 200);
}

#[tokio::test]
async fn a_repeated_request_id_is_answered_again_only_when_switched_on() {
    let client = Client::start();
    let create = || {
        let request = client
            .request(Method::POST, "/v1/devboxes")
            .json(&json!({}));
        send(request.header("x-request-id", "stainless-node-retry-1"))
    };
    let ids = async || -> Vec<Value> {
        vec![
            create().await.json(200)["id"].clone(),
            create().await.json(200)["id"].clone(),
        ]
    };
    let apart = ids().await;
    assert_ne!(apart[0], apart[1]);
    client
        .post(
            "/_simulator/settings",
            json!({ "dedupe_request_ids": true }),
        )
        .await
        .json(200);
    let same = ids().await;
    assert_eq!(same[0], same[1]);
    let (one, two) = tokio::join!(create(), create());
    assert_eq!(one.json(200)["id"], two.json(200)["id"]);
    assert_eq!(client.get("/v1/devboxes").await.json(200)["total_count"], 3);
}

#[tokio::test]
async fn a_repeat_after_a_refusal_that_asks_for_one_acts() {
    let client = Client::start_set(json!({ "dedupe_request_ids": true, "devbox_quota": 0 }));
    let create = || {
        let request = client
            .request(Method::POST, "/v1/devboxes")
            .json(&json!({}));
        send(request.header("x-request-id", "r"))
    };
    create().await.json(429);
    client
        .post("/_simulator/settings", json!({ "devbox_quota": null }))
        .await
        .json(200);
    create().await.json(200);
}

#[tokio::test]
async fn settings_are_shown_patched_and_checked() {
    let client = Client::start();
    let before = client.get("/_simulator/settings").await.json(200);
    assert_eq!(before["default_last_n"], 100);
    let after = client
        .post("/_simulator/settings", json!({ "default_last_n": 7 }))
        .await
        .json(200);
    assert_eq!(after["default_last_n"], 7);
    assert_eq!(after["boot_ms"], before["boot_ms"]);
    for bad in [
        json!({ "typo": 1 }),
        json!({ "boot_ms": "soon" }),
        json!({ "stdin": "maybe" }),
        json!([]),
    ] {
        client.post("/_simulator/settings", bad).await.json(400);
    }
    assert_eq!(client.get("/_simulator/settings").await.json(200), after);
}

#[tokio::test]
async fn an_account_is_changed_and_renamed_and_its_boxes_go_with_it() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let change =
        json!({ "new_id": "acc_chosen", "account_status": "DISABLED_BY_ADMIN", "name": "N" });
    client.post("/_simulator/accounts", change).await.json(200);
    let me = client.get("/v1/accounts/me").await.json(200);
    assert_eq!(me["id"], "acc_chosen");
    assert_eq!(me["account_status"], "DISABLED_BY_ADMIN");
    assert_eq!(me["name"], "N");
    client
        .get(&format!("/v1/devboxes/{devbox}"))
        .await
        .json(200);
    client
        .post("/_simulator/accounts", json!({ "typo": 1 }))
        .await
        .json(400);
}
