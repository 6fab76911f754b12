//! Network policies, and what boxes under them reach.

use serde_json::{Value, json};

use crate::support::Client;

const ALL: &str = "/v1/network-policies";

async fn create(client: &Client, policy: Value) -> Value {
    client.post(ALL, policy).await.json(200)
}

#[tokio::test]
async fn a_policy_is_shown_with_its_egress_nested() {
    let client = Client::start();
    let request = json!({
        "name": "p",
        "description": "d",
        "allowed_hostnames": ["github.com", "*.example.org"],
        "allowed_cidrs": [{ "cidr": "10.0.0.0/8", "ports": [{ "port": 80, "protocol": "TCP" }] }],
    });
    let created = create(&client, request).await;
    let egress = &created["egress"];
    assert_eq!(egress["allow_all"], false);
    assert_eq!(
        egress["allowed_hostnames"],
        json!(["github.com", "*.example.org"])
    );
    assert_eq!(egress["allow_devbox_to_devbox"], false);
    assert_eq!(egress["allow_agent_gateway"], false);
    assert_eq!(egress["allow_mcp_gateway"], false);
    assert_eq!(egress["allowed_cidrs"][0]["cidr"], "10.0.0.0/8");
    assert_eq!(created["description"], "d");
    let found = client
        .get(&format!("{ALL}/{}", created["id"].as_str().unwrap()))
        .await
        .json(200);
    assert_eq!(found, created);
    let denied = create(&client, json!({ "name": "deny" })).await;
    assert_eq!(denied["egress"]["allowed_hostnames"], json!([]));
    let open = create(&client, json!({ "name": "open", "allow_all": true })).await;
    assert_eq!(open["egress"]["allow_devbox_to_devbox"], true);
}

#[tokio::test]
async fn names_may_be_reused_where_the_switch_says_so() {
    let client = Client::start_set(json!({ "unique_policy_names": false }));
    let first = create(&client, json!({ "name": "p" })).await;
    let second = create(&client, json!({ "name": "p" })).await;
    assert_ne!(first["id"], second["id"]);
    let found = client.get(&format!("{ALL}?name=p")).await.json(200);
    assert_eq!(found["network_policies"].as_array().unwrap().len(), 2);
    let path = format!("{ALL}/{}", second["id"].as_str().unwrap());
    client.post(&path, json!({ "name": "p" })).await.json(200);
}

#[tokio::test]
async fn names_are_required_and_unique() {
    let client = Client::start();
    create(&client, json!({ "name": "p" })).await;
    client.post(ALL, json!({ "name": "p" })).await.json(400);
    client.post(ALL, json!({})).await.json(400);
    client.post(ALL, json!({ "name": "" })).await.json(400);
    client
        .post(ALL, json!({ "name": "q", "allow_all": "yes" }))
        .await
        .json(400);
    let racing = (0..10).map(|_| client.post(ALL, json!({ "name": "raced" })));
    let replies = futures::future::join_all(racing).await;
    assert_eq!(
        replies.iter().filter(|reply| reply.status == 200).count(),
        1
    );
}

#[tokio::test]
async fn an_update_merges_field_by_field() {
    let client = Client::start();
    let created = create(
        &client,
        json!({ "name": "p", "description": "d", "allowed_hostnames": ["a"] }),
    )
    .await;
    let one = format!("{ALL}/{}", created["id"].as_str().unwrap());
    let changed = client
        .post(&one, json!({ "allow_all": true, "name": null }))
        .await
        .json(200);
    assert_eq!(changed["name"], "p");
    assert_eq!(changed["description"], "d");
    assert_eq!(changed["egress"]["allow_all"], true);
    let back = json!({ "allow_all": false, "allowed_hostnames": [] });
    let changed = client.post(&one, back).await.json(200);
    assert_eq!(changed["egress"]["allowed_hostnames"], json!([]));
    create(&client, json!({ "name": "other" })).await;
    client
        .post(&one, json!({ "name": "other" }))
        .await
        .json(400);
    client.post(&one, json!({ "name": "p" })).await.json(200);
    client
        .post(&format!("{ALL}/npol_none"), json!({}))
        .await
        .json(404);
}

#[tokio::test]
async fn the_name_filter_is_a_partial_match() {
    let client = Client::start();
    let mut ids = Vec::new();
    for name in ["beachside-blocked", "beachside-blocked-2", "other"] {
        ids.push(create(&client, json!({ "name": name })).await["id"].clone());
    }
    let count = async |query: &str| {
        client.get(&format!("{ALL}?{query}")).await.json(200)["total_count"].clone()
    };
    assert_eq!(count("name=beachside-blocked").await, 2);
    assert_eq!(count("search=other").await, 1);
    assert_eq!(count(&format!("id={}", ids[2].as_str().unwrap())).await, 1);
    assert_eq!(count("limit=1").await, 3);
}

#[tokio::test]
async fn a_policy_in_use_cannot_go() {
    let client = Client::start();
    let policy = create(&client, json!({ "name": "p" })).await;
    let delete = format!("{ALL}/{}/delete", policy["id"].as_str().unwrap());
    let launch = json!({ "launch_parameters": { "network_policy_id": policy["id"] } });
    let devbox = client.running_devbox(launch).await;
    let refused = client.post(&delete, json!({})).await.json(400);
    assert!(refused["message"].as_str().unwrap().contains(&devbox));
    client
        .post(&format!("/v1/devboxes/{devbox}/suspend"), json!({}))
        .await
        .json(200);
    client.wait(&devbox, &["suspended"]).await;
    client.post(&delete, json!({})).await.json(400);
    client
        .post(
            "/_simulator/settings",
            json!({ "suspended_uses_policy": false }),
        )
        .await
        .json(200);
    let deleted = client.post(&delete, json!({})).await.json(200);
    assert_eq!(deleted["id"], policy["id"]);
    client
        .get(&format!("{ALL}/{}", policy["id"].as_str().unwrap()))
        .await
        .json(404);
    client.post(&delete, json!({})).await.json(404);
}

/// Only where boxes have networks of their own.
#[tokio::test]
async fn a_box_under_deny_all_reaches_nothing_and_an_open_one_reaches_this_machine() {
    let client = Client::start();
    if client.simulator.isolation() != "namespaces" {
        let health = client.get("/_simulator/health").await.json(200);
        assert!(
            health["plain_reason"]
                .as_str()
                .is_some_and(|reason| !reason.is_empty())
        );
        return;
    }
    let policy = create(&client, json!({ "name": "deny" })).await;
    let launch = json!({ "launch_parameters": { "network_policy_id": policy["id"] } });
    let (closed, open) = (
        client.running_devbox(launch).await,
        client.running_devbox(json!({})).await,
    );
    let interfaces = "cat /proc/net/dev | grep -c ':'";
    assert_eq!(client.run(&closed, interfaces).await["stdout"], "1\n");
    assert_eq!(client.run(&open, interfaces).await["stdout"], "2\n");
}

/// Only where boxes have networks of their own.
#[tokio::test]
async fn an_edited_policy_holds_from_the_next_resume_unless_switched_off() {
    let client = Client::start();
    if client.simulator.isolation() != "namespaces" {
        let health = client.get("/_simulator/health").await.json(200);
        assert!(
            health["plain_reason"]
                .as_str()
                .is_some_and(|reason| !reason.is_empty())
        );
        return;
    }
    let policy = create(&client, json!({ "name": "p" })).await;
    let launch = json!({ "launch_parameters": { "network_policy_id": policy["id"] } });
    let devbox = client.running_devbox(launch).await;
    let interfaces = "cat /proc/net/dev | grep -c ':'";
    let resumed = async || {
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
        client.run(&devbox, interfaces).await["stdout"].clone()
    };
    let one = format!("{ALL}/{}", policy["id"].as_str().unwrap());
    client
        .post(&one, json!({ "allow_all": true }))
        .await
        .json(200);
    assert_eq!(client.run(&devbox, interfaces).await["stdout"], "1\n");
    client
        .post("/_simulator/settings", json!({ "policy_edits": "never" }))
        .await
        .json(200);
    assert_eq!(resumed().await, "1\n");
    client
        .post(
            "/_simulator/settings",
            json!({ "policy_edits": "next_start" }),
        )
        .await
        .json(200);
    assert_eq!(resumed().await, "2\n");
}
