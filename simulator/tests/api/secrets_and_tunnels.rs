//! Secrets and the records of tunnels.

use serde_json::json;

use crate::support::Client;

#[tokio::test]
async fn a_secret_reaches_a_box_as_a_variable_and_is_never_shown() {
    let client = Client::start();
    let request = json!({ "name": "DATABASE_PASSWORD", "value": "hunter2" });
    let created = client.post("/v1/secrets", request.clone()).await.json(200);
    assert!(created["id"].as_str().unwrap().starts_with("sec_"));
    client.post("/v1/secrets", request).await.json(400);
    client
        .post("/v1/secrets", json!({ "name": "9-x", "value": "v" }))
        .await
        .json(400);
    let devbox = client
        .running_devbox(json!({ "secrets": { "PASS": "DATABASE_PASSWORD" } }))
        .await;
    assert_eq!(
        client.run(&devbox, "printf %s \"$PASS\"").await["stdout"],
        "hunter2"
    );
    let one = "/v1/secrets/DATABASE_PASSWORD";
    client
        .post("/_simulator/clock", json!({ "advance_seconds": 5 }))
        .await
        .json(200);
    let updated = client
        .post(one, json!({ "value": "other" }))
        .await
        .json(200);
    assert!(updated["update_time_ms"].as_i64() > updated["create_time_ms"].as_i64());
    let listed = client.get("/v1/secrets?limit=10").await.json(200);
    assert_eq!(listed["secrets"][0]["name"], "DATABASE_PASSWORD");
    let view = client.get(&format!("/v1/devboxes/{devbox}")).await;
    for text in [listed.to_string(), updated.to_string(), view.text()] {
        assert!(
            !text.contains("hunter2") && !text.contains("other"),
            "{text}"
        );
    }
    client
        .post(&format!("{one}/delete"), json!({}))
        .await
        .json(200);
    client.get(one).await.json(404);
    client
        .post(&format!("{one}/delete"), json!({}))
        .await
        .json(404);
    client.post(one, json!({ "value": "x" })).await.json(404);
}

#[tokio::test]
async fn a_tunnel_of_a_create_is_in_the_view_with_its_token() {
    let client = Client::start();
    let open = client
        .running_devbox(json!({ "tunnel": { "auth_mode": "open" } }))
        .await;
    let view = client.get(&format!("/v1/devboxes/{open}")).await.json(200);
    assert_eq!(view["tunnel"]["auth_mode"], "open");
    assert_eq!(view["tunnel"]["http_keep_alive"], true);
    assert_eq!(view["tunnel"]["wake_on_http"], false);
    assert!(view["tunnel"].get("auth_token").is_none());
    let request = json!({ "tunnel": { "auth_mode": "authenticated", "wake_on_http": true } });
    let closed = client.running_devbox(request).await;
    let view = client
        .get(&format!("/v1/devboxes/{closed}"))
        .await
        .json(200);
    assert!(
        view["tunnel"]["auth_token"]
            .as_str()
            .is_some_and(|token| token.len() > 20)
    );
    assert_eq!(view["tunnel"]["wake_on_http"], true);
}

#[tokio::test]
async fn a_tunnel_is_enabled_once_and_removed() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let (view, enable, remove) = (
        format!("/v1/devboxes/{devbox}"),
        format!("/v1/devboxes/{devbox}/enable_tunnel"),
        format!("/v1/devboxes/{devbox}/remove_tunnel"),
    );
    assert!(client.get(&view).await.json(200).get("tunnel").is_none());
    client
        .post(&enable, json!({ "auth_mode": "public" }))
        .await
        .json(400);
    let tunnel = client.post(&enable, json!({})).await.json(200);
    assert_eq!(tunnel["auth_mode"], "open");
    assert!(
        tunnel["create_time_ms"]
            .as_i64()
            .is_some_and(|time| time > 0)
    );
    assert_eq!(client.get(&view).await.json(200)["tunnel"], tunnel);
    client.post(&enable, json!({})).await.json(400);
    assert_eq!(client.post(&remove, json!({})).await.json(200), json!({}));
    assert!(client.get(&view).await.json(200).get("tunnel").is_none());
    client.post(&remove, json!({})).await.json(200);
    client
        .post("/_simulator/settings", json!({ "no_tunnel_status": 400 }))
        .await
        .json(200);
    client.post(&remove, json!({})).await.json(400);
    client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await
        .json(200);
    client.post(&enable, json!({})).await.json(400);
    client
        .post("/v1/devboxes/dbx_none/enable_tunnel", json!({}))
        .await
        .json(404);
    client
        .post("/v1/devboxes/dbx_none/remove_tunnel", json!({}))
        .await
        .json(404);
}
