//! Faults that concern any request.

use serde_json::json;

use crate::support::Client;

#[tokio::test]
async fn a_rule_skips_the_first_requests_acts_on_the_next_and_is_spent() {
    let client = Client::start_set(json!({ "boot_ms": 1 }));
    client
        .fault(json!({
            "id": "flaky",
            "match": { "method": "GET", "path": "/v1/accounts/*", "after": 1, "count": 2 },
            "action": {
                "type": "refuse",
                "status": 503,
                "headers": { "retry-after": "soon" },
                "body": { "oops": true },
            },
        }))
        .await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(client.get("/v1/accounts/me").await.status);
    }
    assert_eq!(seen, [200, 503, 503, 200]);
    let journal = client.get("/_simulator/journal").await.json(200);
    assert_eq!(journal["entries"][1]["faults"], json!(["flaky"]));
    assert_eq!(journal["entries"][3]["faults"], json!([]));
    let rules = client.get("/_simulator/faults").await.json(200);
    assert_eq!(rules["faults"][0]["acted"], 2);
    assert_eq!(rules["faults"][0]["seen"], 4);
}

#[tokio::test]
async fn a1_the_reply_is_dropped_after_the_act() {
    let client = Client::start();
    client
        .fault(json!({
            "match": { "method": "POST", "path": "/v1/network-policies", "count": 1 },
            "action": { "type": "drop_reply" },
        }))
        .await;
    let sent = client
        .request(reqwest::Method::POST, "/v1/network-policies")
        .json(&json!({ "name": "kept" }))
        .send()
        .await;
    assert!(sent.is_err());
    let found = client.get("/v1/network-policies").await.json(200);
    assert_eq!(found["network_policies"][0]["name"], "kept");
    let journal = client.get("/_simulator/journal").await.json(200);
    assert_eq!(journal["entries"][0]["outcome"], "hung_up");
    assert_eq!(journal["entries"][0]["status"], json!(null));
}
