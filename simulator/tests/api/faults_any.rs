//! Faults that concern any request.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, send};

const ME: &str = "/v1/accounts/me";
const POLICIES: &str = "/v1/network-policies";

/// A client whose simulator does this to every request of a path.
async fn with(path: &str, action: Value) -> Client {
    let client = Client::start();
    client
        .fault(json!({ "id": "f", "match": { "path": path }, "action": action }))
        .await;
    client
}

async fn policies(client: &Client) -> usize {
    client.delete("/_simulator/faults").await.json(200);
    let page = client.get(POLICIES).await.json(200);
    page["network_policies"].as_array().unwrap().len()
}

fn create(client: &Client) -> reqwest::RequestBuilder {
    client
        .request(Method::POST, POLICIES)
        .json(&json!({ "name": "p" }))
}

async fn outcome(client: &Client) -> Value {
    let journal = client.get("/_simulator/journal").await.json(200);
    journal["entries"][0].clone()
}

#[tokio::test]
async fn a_rule_skips_the_first_requests_acts_on_the_next_and_is_spent() {
    let client = Client::start();
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
        seen.push(client.get(ME).await.status);
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
async fn a_rule_is_for_its_method_path_query_and_body_only() {
    let client = Client::start();
    let refuse = json!({ "type": "refuse", "status": 418 });
    for (id, matcher) in [
        ("method", json!({ "method": "DELETE" })),
        ("path", json!({ "path": "/v1/devboxes/**" })),
        (
            "query",
            json!({ "path": POLICIES, "query": { "name": "x" } }),
        ),
        (
            "body",
            json!({ "path": POLICIES, "body_contains": "secret-name" }),
        ),
    ] {
        client
            .fault(json!({ "id": id, "match": matcher, "action": refuse }))
            .await;
    }
    assert_eq!(client.get(ME).await.status, 200);
    assert_eq!(client.get("/v1/devboxes/dbx_none").await.status, 418);
    assert_eq!(client.get(POLICIES).await.status, 200);
    assert_eq!(
        client
            .get(&format!("{POLICIES}?name=x&limit=1"))
            .await
            .status,
        418
    );
    assert_eq!(create(&client).send().await.unwrap().status(), 200);
    let named = client
        .post(POLICIES, json!({ "name": "secret-name" }))
        .await;
    assert_eq!(named.status, 418);
}

#[tokio::test]
async fn rules_are_listed_replaced_and_removed_and_unknown_ones_are_refused() {
    let client = with(ME, json!({ "type": "refuse", "status": 500 })).await;
    client
        .fault(json!({ "id": "f", "match": { "path": ME }, "action": { "type": "refuse", "status": 501 } }))
        .await;
    assert_eq!(client.get(ME).await.status, 501);
    client.delete("/_simulator/faults/f").await.json(200);
    client.delete("/_simulator/faults/f").await.json(404);
    assert_eq!(client.get(ME).await.status, 200);
    for rule in [
        json!({}),
        json!({ "action": { "type": "explode" } }),
        json!({ "action": { "type": "latency" } }),
        json!({ "action": { "type": "latency", "milliseconds": 1, "typo": 1 } }),
        json!({ "match": { "typo": 1 }, "action": { "type": "hold_reply" } }),
    ] {
        client.post("/_simulator/faults", rule).await.json(400);
    }
}

#[tokio::test]
async fn a_refusal_does_not_act() {
    for (action, status) in [
        (json!({ "type": "refuse", "status": 503 }), 503),
        (
            json!({ "type": "rate_limit", "retry_after": "yesterday" }),
            429,
        ),
        (json!({ "type": "redirect" }), 307),
    ] {
        let client = with(POLICIES, action).await;
        let reply = send(create(&client)).await;
        assert_eq!(reply.status, status);
        if status == 429 {
            assert_eq!(reply.headers["retry-after"], "yesterday");
        }
        assert_eq!(policies(&client).await, 0);
    }
}

#[tokio::test]
async fn k6_a_redirect_leads_to_this_origin_or_to_another() {
    for (action, location) in [
        (json!({ "type": "redirect" }), "/v1/accounts/me?x=1"),
        (
            json!({ "type": "redirect", "origin": "http://127.0.0.2:9", "status": 308 }),
            "http://127.0.0.2:9/v1/accounts/me?x=1",
        ),
        (
            json!({ "type": "redirect", "location": "https://elsewhere/" }),
            "https://elsewhere/",
        ),
    ] {
        let client = with(ME, action).await;
        let reply = client.get(&format!("{ME}?x=1")).await;
        assert!(matches!(reply.status, 307 | 308));
        assert_eq!(reply.headers["location"], location);
    }
}

#[tokio::test]
async fn a1_a_reply_that_is_lost_or_replaced_keeps_its_act() {
    for action in [
        json!({ "type": "drop_reply" }),
        json!({ "type": "drop_reply", "reset": true }),
        json!({ "type": "replace_reply", "status": 502, "text": "<html>", "headers": { "content-type": "text/html" } }),
    ] {
        let client = with(POLICIES, action.clone()).await;
        match create(&client).send().await {
            Ok(reply) => assert_eq!(reply.status(), 502),
            Err(error) => assert!(!error.is_timeout() && !error.is_connect(), "{error}"),
        }
        assert_eq!(policies(&client).await, 1, "{action}");
    }
}

#[tokio::test]
async fn a_dropped_request_does_not_act_and_the_journal_tells_it() {
    for reset in [false, true] {
        let client = with(POLICIES, json!({ "type": "drop_request", "reset": reset })).await;
        assert!(create(&client).send().await.is_err());
        let entry = outcome(&client).await;
        assert_eq!(entry["outcome"], "hung_up");
        assert_eq!(entry["status"], Value::Null);
        assert_eq!(entry["faults"], json!(["f"]));
        assert_eq!(policies(&client).await, 0);
    }
}

#[tokio::test]
async fn a_held_request_or_reply_never_ends_and_does_not_keep_the_simulator() {
    for (action, made) in [("hold_request", 0), ("hold_reply", 1)] {
        let client = with(POLICIES, json!({ "type": action })).await;
        let sent = create(&client)
            .timeout(Duration::from_millis(300))
            .send()
            .await;
        assert!(sent.unwrap_err().is_timeout());
        assert_eq!(policies(&client).await, made);
        client
            .fault(json!({ "match": { "path": ME }, "action": { "type": "hold_request" } }))
            .await;
        let held = tokio::spawn({
            let client = client.with_key("ak_other");
            async move {
                client
                    .request(Method::GET, "/v1/accounts/me")
                    .send()
                    .await
                    .is_err()
            }
        });
        while client.get("/_simulator/journal").await.json(200)["entries"]
            .as_array()
            .unwrap()
            .len()
            < 3
        {
            tokio::task::yield_now().await;
        }
        let begin = Instant::now();
        client.simulator.stop();
        assert!(held.await.unwrap());
        assert!(begin.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test]
async fn latency_comes_before_the_act_and_a_delay_after_it() {
    for action in ["latency", "delay_reply"] {
        let client = with(POLICIES, json!({ "type": action, "milliseconds": 400 })).await;
        let begin = Instant::now();
        let posted = tokio::spawn(create(&client).send());
        while client.get("/_simulator/faults").await.json(200)["faults"][0]["acted"] == 0 {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(
            policies(&client).await,
            usize::from(action == "delay_reply")
        );
        assert_eq!(posted.await.unwrap().unwrap().status(), 200);
        assert!(begin.elapsed() >= Duration::from_millis(400));
    }
}

#[tokio::test]
async fn k2_bodies_are_html_empty_halved_or_of_the_wrong_types() {
    let html = json!({ "type": "replace_reply", "status": 200, "text": "<p>hi</p>", "headers": { "content-type": "text/html" } });
    let reply = with(ME, html).await.get(ME).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "<p>hi</p>"));
    assert_eq!(reply.headers["content-type"], "text/html");
    let empty = with(
        ME,
        json!({ "type": "replace_reply", "status": 500, "text": "" }),
    )
    .await;
    assert_eq!(empty.get(ME).await.text(), "");
    let whole = Client::start().get(ME).await;
    let half = with(ME, json!({ "type": "halve_reply" }))
        .await
        .get(ME)
        .await;
    assert_eq!(half.status, 200);
    assert_eq!(
        half.body.len(),
        half.headers["content-length"]
            .to_str()
            .unwrap()
            .parse::<usize>()
            .unwrap()
    );
    assert!(half.body.len() < whole.body.len() * 2 / 3 && half.body.starts_with(b"{"));
    let edit = json!({
        "type": "edit_reply",
        "set": { "/account_status": 7, "/new": [null], "/billing/account_billing_type": null },
        "remove": ["/id", "/nowhere/at/all"],
    });
    let edited = with(ME, edit).await.get(ME).await.json(200);
    assert_eq!(edited["account_status"], 7);
    assert_eq!(edited["new"], json!([null]));
    assert!(edited.get("id").is_none());
    assert_eq!(edited["billing"]["account_billing_type"], Value::Null);
}

#[tokio::test]
async fn k2_an_error_may_be_compressed_or_echo_the_key() {
    let zipped = json!({ "type": "refuse", "status": 502, "text": "x".repeat(1000), "gzip": true });
    let client = with(ME, zipped).await;
    let reply = client.get(ME).await;
    assert_eq!(reply.headers["content-encoding"], "gzip");
    assert!(reply.body.starts_with(&[0x1f, 0x8b]) && reply.body.len() < 200);
    let echo = json!({ "type": "refuse", "status": 401, "text": "bad key {authorization}!" });
    let client = with(ME, echo).await;
    assert_eq!(
        client.get(ME).await.text(),
        format!("bad key Bearer {}!", crate::support::KEY)
    );
    assert!(
        !client
            .get("/_simulator/journal")
            .await
            .text()
            .contains(crate::support::KEY)
    );
}

#[tokio::test]
async fn a_truncated_reply_is_seen_to_be_cut() {
    let client = with(ME, json!({ "type": "truncate_reply", "bytes": 10 })).await;
    let mut response = client.request(Method::GET, ME).send().await.unwrap();
    let mut body = Vec::new();
    let cut = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(cut && body.len() == 10, "{body:?}");
    assert_eq!(outcome(&client).await["outcome"], "cut");
}

#[tokio::test]
async fn a_slow_reply_comes_in_pieces() {
    let slow = json!({ "type": "slow_reply", "chunk_bytes": 100, "milliseconds": 100 });
    let client = with(ME, slow).await;
    let begin = Instant::now();
    client.get(ME).await.json(200);
    assert!(begin.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let client = with(ME, json!({ "type": "close_idle", "milliseconds": 200 })).await;
    let connection = async |client: &Client| {
        let journal = client.get("/_simulator/journal?path=/v1").await.json(200);
        let last = journal["entries"].as_array().unwrap().last().unwrap()["connection"].clone();
        last.as_u64().unwrap()
    };
    client.get(ME).await.json(200);
    let first = connection(&client).await;
    client.get(ME).await.json(200);
    assert_eq!(connection(&client).await, first);
    tokio::time::sleep(Duration::from_millis(600)).await;
    client.get(ME).await.json(200);
    assert_ne!(connection(&client).await, first);

    let client = Client::start_set(json!({ "keep_alive_seconds": 0.2, "latency_ms": 500 }));
    client.get(ME).await.json(200);
    let first = connection(&client).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    client.get(ME).await.json(200);
    assert_ne!(connection(&client).await, first);
}

#[tokio::test]
async fn rules_compose_in_the_order_they_were_posted() {
    let client = with(
        POLICIES,
        json!({ "type": "delay_reply", "milliseconds": 200 }),
    )
    .await;
    client
        .fault(json!({ "match": { "path": POLICIES }, "action": { "type": "edit_reply", "set": { "/name": "edited" } } }))
        .await;
    client
        .fault(json!({ "match": { "path": POLICIES }, "action": { "type": "slow_reply", "chunk_bytes": 1000, "milliseconds": 100 } }))
        .await;
    let begin = Instant::now();
    let view = send(create(&client)).await.json(200);
    assert_eq!(view["name"], "edited");
    assert!(begin.elapsed() >= Duration::from_millis(300));
    assert_eq!(
        outcome(&client).await["faults"],
        json!(["f", "fault_2", "fault_3"])
    );
    assert_eq!(policies(&client).await, 1);
}

#[tokio::test]
async fn a_fault_may_come_before_the_key_is_looked_at() {
    let client = with(ME, json!({ "type": "refuse", "status": 503 })).await;
    assert_eq!(client.with_key("").get(ME).await.status, 503);
}

#[tokio::test]
async fn what_is_late_still_acts_when_the_client_has_left() {
    let client = with(POLICIES, json!({ "type": "latency", "milliseconds": 300 })).await;
    let sent = create(&client)
        .timeout(Duration::from_millis(50))
        .send()
        .await;
    assert!(sent.unwrap_err().is_timeout());
    while policies(&client).await == 0 {
        tokio::task::yield_now().await;
    }
}
