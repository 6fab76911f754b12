//! Lists that do not keep their promises.

use serde_json::{Value, json};

use crate::support::Client;

async fn listed(fault: Value, query: &str) -> Value {
    let client = Client::start();
    for name in ["a", "b", "c"] {
        client
            .post("/v1/network-policies", json!({ "name": name }))
            .await
            .json(200);
        client
            .post("/_simulator/clock", json!({ "advance_seconds": 1 }))
            .await
            .json(200);
    }
    let mut action = fault;
    action["type"] = json!("list");
    client.fault(json!({ "match": { "method": "GET", "path": "/v1/network-policies" }, "action": action })).await;
    client
        .get(&format!("/v1/network-policies?{query}"))
        .await
        .json(200)
}

fn names(page: &Value) -> Vec<&str> {
    let items = page["network_policies"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn filters_are_ignored() {
    let page = listed(json!({ "ignore_filters": true }), "name=a&limit=2").await;
    assert_eq!(names(&page), ["c", "b"]);
}

#[tokio::test]
async fn all_timestamps_are_the_same() {
    let page = listed(json!({ "identical_timestamps": true }), "").await;
    let items = page["network_policies"].as_array().unwrap();
    assert!(
        items
            .iter()
            .all(|item| item["create_time_ms"] == items[0]["create_time_ms"])
    );
    assert_eq!(items.len(), 3);
}

#[tokio::test]
async fn a_page_is_empty_and_promises_more() {
    let page = listed(json!({ "empty_page_with_more": true }), "").await;
    assert_eq!(page["network_policies"], json!([]));
    assert_eq!(page["has_more"], true);
}

#[tokio::test]
async fn the_first_page_comes_again_for_ever() {
    let page = listed(
        json!({ "repeated_cursor": true }),
        "limit=2&starting_after=x",
    )
    .await;
    assert_eq!(names(&page), ["c", "b"]);
    assert_eq!(page["has_more"], true);
}

#[tokio::test]
async fn the_item_of_the_cursor_is_gone() {
    let client = Client::start_set(json!({ "unknown_cursor": "empty_page" }));
    let first = client
        .post("/v1/network-policies", json!({ "name": "a" }))
        .await
        .json(200);
    client
        .post("/v1/network-policies", json!({ "name": "b" }))
        .await
        .json(200);
    client
        .fault(json!({ "action": { "type": "list", "vanished_cursor": true } }))
        .await;
    let path = format!(
        "/v1/network-policies?starting_after={}",
        first["id"].as_str().unwrap()
    );
    let page = client.get(&path).await.json(200);
    assert_eq!(page["network_policies"], json!([]));
    client
        .post(
            "/_simulator/settings",
            json!({ "unknown_cursor": "bad_request" }),
        )
        .await
        .json(200);
    client.get(&path).await.json(400);
}
