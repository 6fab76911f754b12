//! What the journal keeps of the answers, when it is asked to.

use crate::support::Client;
use serde_json::{Value, json};

async fn entries(client: &Client, path: &str) -> Vec<Value> {
    let journal = client
        .get(&format!("/_simulator/journal?path={path}"))
        .await
        .json(200);
    journal["entries"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn answers_are_kept_only_while_the_switch_is_set() {
    let client = Client::start();
    let account = client.get("/v1/accounts/me").await.json(200);
    client
        .post(
            "/_simulator/settings",
            json!({ "journal_response_bodies": true }),
        )
        .await
        .json(200);
    client.get("/v1/accounts/me").await.json(200);
    let entries = entries(&client, "/v1/accounts/me").await;
    assert_eq!(entries[0]["response_body"], Value::Null);
    assert_eq!(entries[1]["response_body"], account);
    assert_eq!(entries[1]["response_content_type"], "application/json");
}

#[tokio::test]
async fn an_answer_that_a_fault_spoiled_is_kept_as_it_was_sent() {
    let client = Client::start_set(json!({ "journal_response_bodies": true }));
    client
        .fault(json!({
            "match": { "path": "/v1/accounts/me" },
            "action": { "type": "halve_reply" },
        }))
        .await;
    let sent = client.get("/v1/accounts/me").await.text();
    let entries = entries(&client, "/v1/accounts/me").await;
    assert_eq!(entries[0]["response_body"], sent);
}
