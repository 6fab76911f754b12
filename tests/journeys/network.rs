//! The deny-all policy, shared by processes and changed by others.

use std::sync::Arc;

use beachside_runloop::adapter::Call;
use beachside_runloop::error::Code;
use runloop_simulator::Settings;
use serde_json::json;

use crate::harness::{Service, create, running};

const MAKE: &str = "POST /v1/network-policies";
const CREATE: &str = "POST /v1/devboxes";

#[tokio::test(flavor = "multi_thread")]
async fn r5_a_race_of_two_processes_ends_with_one_policy() {
    let service = Service::start();
    // As late as possible, so that both have looked before either makes it.
    let late = json!({ "type": "latency", "milliseconds": 300 });
    service.fault("POST", "/v1/network-policies", 2, late).await;
    let (one, other) = (service.connect().await, service.connect().await);
    let (first, second) = tokio::join!(running(&one), running(&other));
    assert_eq!(first.network.policy_id, second.network.policy_id);
    assert_eq!(
        (first.network.policy, second.network.policy),
        ("blocked", "blocked")
    );
    assert_eq!(service.count(MAKE).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_a_policy_of_an_earlier_process_is_found_and_checked_again() {
    let service = Service::start();
    let first = running(&service.connect().await).await;
    let second = running(&service.connect().await).await;
    assert_eq!(first.network.policy_id, second.network.policy_id);
    assert_eq!(service.count(MAKE).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_where_names_can_be_shared_a_box_is_blocked_all_the_same() {
    let service = Service::with(Settings {
        unique_policy_names: false,
        ..Settings::default()
    });
    let late = json!({ "type": "latency", "milliseconds": 300 });
    service.fault("POST", "/v1/network-policies", 2, late).await;
    let (one, other) = (service.connect().await, service.connect().await);
    let (first, second) = tokio::join!(running(&one), running(&other));
    assert_eq!(
        (first.network.policy, second.network.policy),
        ("blocked", "blocked")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_a_policy_that_was_opened_refuses_the_create_and_sends_none() {
    let service = Service::start();
    let connection = service.connect().await;
    running(&connection).await;
    let opened = json!({ "type": "edit_reply", "set": { "/egress/allow_runloop_mirrors": true } });
    service
        .fault("GET", "/v1/network-policies/*", 1, opened)
        .await;
    let error = connection
        .create_sandbox(&create(), &Call::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Conflict);
    assert!(error.message().contains("allow_runloop_mirrors"), "{error}");
    assert_eq!(error.outcome().submitted, Some(false));
    assert_eq!(service.count(CREATE).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_a_box_whose_echo_lacks_the_policy_is_shut_down() {
    let service = Service::start();
    let connection = service.connect().await;
    let lost = json!({ "type": "edit_reply", "remove": ["/launch_parameters/network_policy_id"] });
    service.fault("POST", "/v1/devboxes", 1, lost).await;
    let error = connection
        .create_sandbox(&create(), &Call::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Protocol);
    let id = error.outcome().sandbox_id.clone().unwrap();
    assert_eq!(
        service
            .count(&format!("POST /v1/devboxes/{id}/shutdown"))
            .await,
        1
    );
    let boxes = service.boxes().await;
    assert!(
        boxes.iter().all(|it| it["true_status"] == "shutdown"),
        "{boxes:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_that_arrive_together_share_a_check_and_one_at_a_time_costs_one_request() {
    let service = Service::start();
    let connection = Arc::new(service.connect().await);
    running(&connection).await;
    let before = service.journal().await.len();
    connection
        .create_sandbox(&create(), &Call::default())
        .await
        .unwrap();
    assert_eq!(service.journal().await.len(), before + 2);

    let slow = json!({ "type": "latency", "milliseconds": 200 });
    service
        .fault("GET", "/v1/network-policies/*", 20, slow)
        .await;
    let before = service.journal().await.len();
    let together: Vec<_> = (0..8)
        .map(|_| {
            let connection = connection.clone();
            tokio::spawn(
                async move { connection.create_sandbox(&create(), &Call::default()).await },
            )
        })
        .collect();
    for made in together {
        made.await.unwrap().unwrap();
    }
    let checks = service.journal().await.len() - before - 8;
    assert!(checks <= 2, "{checks} checks for 8 creates");
}
