//! Boxes: what a create takes, what a view shows, updates and lists.

use serde_json::{Value, json};

use crate::support::Client;

#[tokio::test]
async fn a_view_echoes_what_was_asked_and_hides_the_environment() {
    let client = Client::start();
    let created = client
        .post(
            "/v1/devboxes",
            json!({
                "name": "n",
                "metadata": { "k": "v" },
                "environment_variables": { "TOKEN": "hunter2", "nothing": null },
                "launch_parameters": {
                    "resource_size_request": "MEDIUM",
                    "keep_alive_time_seconds": 60,
                    "network_policy_id": null,
                },
                "mounts": [],
                "blueprint_id": null,
            }),
        )
        .await
        .json(200);
    assert_eq!(created["status"], "provisioning");
    assert_eq!(created["end_time_ms"], Value::Null);
    assert!(created.as_object().unwrap().contains_key("end_time_ms"));
    let id = created["id"].as_str().unwrap();
    assert!(id.starts_with("dbx_") && id.len() == 25, "{id}");
    let view = client.wait(id, &["running"]).await;
    assert_eq!(view["name"], "n");
    assert_eq!(view["metadata"], json!({ "k": "v" }));
    assert_eq!(
        view["launch_parameters"],
        json!({ "resource_size_request": "MEDIUM", "keep_alive_time_seconds": 60 })
    );
    assert_eq!(view["capabilities"], json!([]));
    let statuses: Vec<_> = view["state_transitions"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    let statuses: Vec<_> = statuses
        .iter()
        .map(|entry| entry["status"].clone())
        .collect();
    assert_eq!(statuses, ["provisioning", "initializing", "running"]);
    assert!(!view.to_string().contains("hunter2"));
    assert_eq!(
        client.run(id, "printf %s \"$TOKEN\"").await["stdout"],
        "hunter2"
    );
}

#[tokio::test]
async fn a_create_without_a_body_makes_a_plain_box() {
    let client = Client::start();
    let request = client
        .request(reqwest::Method::POST, "/v1/devboxes")
        .header("content-type", "application/json")
        .header("content-length", "0");
    let view = crate::support::send(request).await.json(200);
    assert_eq!(view["launch_parameters"], json!({}));
    assert!(view.get("name").is_none());
}

#[tokio::test]
async fn a_create_that_names_nothing_known_is_400_and_makes_no_box() {
    let client = Client::start();
    for request in [
        json!({ "blueprint_id": "bpt_none" }),
        json!({ "blueprint_name": "none" }),
        json!({ "snapshot_id": "snp_none" }),
        json!({ "snapshot_id": "snp_none", "blueprint_id": "bpt_none" }),
        json!({ "launch_parameters": { "network_policy_id": "npol_none" } }),
        json!({ "launch_parameters": { "resource_size_request": "HUGE" } }),
        json!({ "launch_parameters": { "keep_alive_time_seconds": 172_801 } }),
        json!({ "secrets": { "A": "NONE" } }),
        json!({ "environment_variables": { "A=B": "c" } }),
        json!({ "tunnel": { "auth_mode": "public" } }),
        json!({ "mounts": [{ "type": "object_mount", "object_id": "o", "object_path": "p" }] }),
        json!({ "name": 7 }),
    ] {
        let refusal = client.post("/v1/devboxes", request.clone()).await.json(400);
        assert_eq!(refusal["code"], "400", "{request}");
        assert!(
            refusal["message"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{request}"
        );
    }
    let malformed = client
        .request(reqwest::Method::POST, "/v1/devboxes")
        .body("{\"name\":");
    crate::support::send(malformed).await.json(400);
    assert_eq!(client.get("/v1/devboxes").await.json(200)["total_count"], 0);
}

#[tokio::test]
async fn the_flex_tier_begins_queued() {
    let client = Client::start();
    let request = json!({ "launch_parameters": { "provisioning_tier": "flex" } });
    let created = client.post("/v1/devboxes", request).await.json(200);
    assert_eq!(created["status"], "queued");
    client
        .wait(created["id"].as_str().unwrap(), &["running"])
        .await;
}

#[tokio::test]
async fn launch_commands_and_mounted_files_are_there_before_the_box_runs() {
    let client = Client::start();
    let devbox = client
        .running_devbox(json!({
            "launch_parameters": { "launch_commands": ["cp seed copy", "echo more >> copy"] },
            "file_mounts": { "/home/user/seed": "a\n" },
            "mounts": [{ "type": "file_mount", "target": "/tmp/second", "content": "b" }],
        }))
        .await;
    let seen = client.run(&devbox, "cat copy /tmp/second").await;
    assert_eq!(seen["stdout"], "a\nmore\nb");
    let logs = client
        .get(&format!("/v1/devboxes/{devbox}/logs"))
        .await
        .json(200);
    assert_eq!(logs["logs"][0]["source"], "setup_commands");
    assert_eq!(logs["logs"][0]["cmd"], "cp seed copy");
    assert_eq!(logs["logs"][0]["exit_code"], 0);
}

#[tokio::test]
async fn a_launch_command_that_fails_fails_the_box_unless_ignored() {
    let request = json!({ "launch_parameters": { "launch_commands": ["exit 3"] } });
    let client = Client::start();
    let created = client.post("/v1/devboxes", request.clone()).await.json(200);
    let id = created["id"].as_str().unwrap();
    let failed = client.wait(id, &["running", "failure"]).await;
    assert_eq!(failed["status"], "failure");
    assert_eq!(failed["failure_reason"], "execution_failed");
    assert!(failed["end_time_ms"].as_i64().is_some());

    let lenient = Client::start_set(json!({ "launch_failure": "ignored" }));
    lenient.running_devbox(request).await;
}

#[tokio::test]
async fn an_entrypoint_that_ends_ends_the_box() {
    let client = Client::start();
    let devbox = client
        .running_devbox(json!({ "entrypoint": "while [ ! -e stop ]; do sleep 0.05; done" }))
        .await;
    client.run(&devbox, "touch stop").await;
    let view = client.wait(&devbox, &["shutdown"]).await;
    assert_eq!(view["shutdown_reason"], "entrypoint_exit");
}

#[tokio::test]
async fn an_update_keeps_what_is_absent_and_replaces_what_is_given() {
    let client = Client::start();
    let request = json!({ "name": "a", "metadata": { "x": "1", "y": "2" } });
    let created = client.post("/v1/devboxes", request).await.json(200);
    let path = format!("/v1/devboxes/{}", created["id"].as_str().unwrap());
    let renamed = client
        .post(&path, json!({ "name": "b", "metadata": null }))
        .await
        .json(200);
    assert_eq!(renamed["name"], "b");
    assert_eq!(renamed["metadata"], json!({ "x": "1", "y": "2" }));
    let replaced = client
        .post(&path, json!({ "metadata": { "z": "3" } }))
        .await
        .json(200);
    assert_eq!(replaced["metadata"], json!({ "z": "3" }));
    assert_eq!(replaced["name"], "b");
    let cleared = client
        .post(&path, json!({ "name": "", "metadata": {} }))
        .await
        .json(200);
    assert!(cleared.get("name").is_none());
    assert_eq!(cleared["metadata"], json!({}));
    client
        .post("/v1/devboxes/dbx_none", json!({}))
        .await
        .json(404);
}

#[tokio::test]
async fn pages_follow_the_cursor_and_filter_by_status() {
    let client = Client::start();
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(client.running_devbox(json!({})).await);
    }
    client
        .post(&format!("/v1/devboxes/{}/shutdown", ids[0]), json!({}))
        .await
        .json(200);
    ids.reverse();
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = client
            .get(&format!("/v1/devboxes?limit=2{cursor}"))
            .await
            .json(200);
        assert_eq!(page["total_count"], 5);
        let items = page["devboxes"].as_array().unwrap();
        seen.extend(
            items
                .iter()
                .map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        if page["has_more"] == false {
            break;
        }
        cursor = format!("&starting_after={}", seen.last().unwrap());
    }
    assert_eq!(seen, ids);
    let running = client
        .get("/v1/devboxes?status=running&unknown=x")
        .await
        .json(200);
    assert_eq!(running["total_count"], 4);
    let ended = client.get("/v1/devboxes?status=shutdown").await.json(200);
    assert_eq!(ended["devboxes"][0]["id"], ids[4].as_str());
    let uncounted = client
        .get("/v1/devboxes?include_total_count=false")
        .await
        .json(200);
    assert!(uncounted.get("total_count").is_none());
    client.get("/v1/devboxes?status=nonsense").await.json(400);
    client.get("/v1/devboxes?limit=many").await.json(400);
    client
        .get("/v1/devboxes?starting_after=dbx_none")
        .await
        .json(400);
    let switches = json!({ "unknown_cursor": "empty_page", "list_order": "oldest" });
    client
        .post("/_simulator/settings", switches)
        .await
        .json(200);
    let empty = client
        .get("/v1/devboxes?starting_after=dbx_none")
        .await
        .json(200);
    assert_eq!(empty["devboxes"], json!([]));
    assert_eq!(empty["has_more"], false);
    let oldest = client.get("/v1/devboxes?limit=1").await.json(200);
    assert_eq!(oldest["devboxes"][0]["id"], ids[4].as_str());
}

#[tokio::test]
async fn a_box_of_another_account_is_not_found() {
    let client = Client::start();
    let account =
        json!({ "id": "acc_other", "api_key": "ak_other", "account_status": "TRIAL_CANCELLED" });
    client.post("/_simulator/accounts", account).await.json(200);
    let devbox = client.running_devbox(json!({})).await;
    let other = client.with_key("ak_other");
    let me = other.get("/v1/accounts/me").await.json(200);
    assert_eq!(me["id"], "acc_other");
    assert_eq!(me["account_status"], "TRIAL_CANCELLED");
    other.get(&format!("/v1/devboxes/{devbox}")).await.json(404);
    assert_eq!(
        other.get("/v1/devboxes").await.json(200)["devboxes"],
        json!([])
    );
    client
        .get(&format!("/v1/devboxes/{devbox}"))
        .await
        .json(200);
}

#[tokio::test]
async fn metadata_in_use_is_listed() {
    let client = Client::start();
    for value in ["1", "2", "2"] {
        client
            .post("/v1/devboxes", json!({ "metadata": { "k": value } }))
            .await
            .json(200);
    }
    let keys = client.get("/v1/devboxes/metadata/keys").await.json(200);
    assert_eq!(keys, json!({ "keys": ["k"] }));
    let values = client
        .get("/v1/devboxes/metadata/keys/k/values")
        .await
        .json(200);
    assert_eq!(values, json!({ "key": "k", "values": ["1", "2"] }));
}

#[tokio::test]
async fn an_ssh_key_is_made_for_a_box() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{devbox}/create_ssh_key");
    let (first, second) = (
        client.post(&path, json!({})).await.json(200),
        client.post(&path, json!({})).await.json(200),
    );
    assert_eq!(first["ssh_user"], "user");
    assert_ne!(first["ssh_private_key"], second["ssh_private_key"]);
    client
        .post("/v1/devboxes/dbx_none/create_ssh_key", json!({}))
        .await
        .json(404);
}

#[tokio::test]
async fn a_create_that_names_what_is_not_there_is_refused_as_switched() {
    let client = Client::start();
    for status in [400, 404] {
        let switch = json!({ "unknown_reference_status": status });
        client.post("/_simulator/settings", switch).await.json(200);
        for (wrong, expected) in [
            (json!({ "snapshot_id": "snp_none" }), status),
            (json!({ "blueprint_name": "none" }), status),
            (
                json!({ "launch_parameters": { "network_policy_id": "np_none" } }),
                status,
            ),
            (json!({ "blueprint_id": "bpt_none" }), 400),
            (json!({ "snapshot_id": "a", "blueprint_id": "b" }), 400),
        ] {
            client.post("/v1/devboxes", wrong).await.json(expected);
        }
    }
    let list = client.get("/v1/devboxes").await.json(200);
    assert_eq!(list["devboxes"], json!([]));
}
