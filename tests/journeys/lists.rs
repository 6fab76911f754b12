//! Lists over a service that orders, filters and repeats as it likes.

use std::collections::BTreeSet;

use beachside_runloop::adapter::records::{ListSandboxesRequest, SandboxState, Target};
use beachside_runloop::adapter::{Call, Connection};
use runloop_simulator::Settings;
use serde_json::json;

use crate::harness::{Service, create, running, wait};

async fn all(connection: &Connection, limit: u32, state: Option<SandboxState>) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let request = ListSandboxesRequest {
            limit,
            cursor,
            state,
        };
        let page = connection
            .list_sandboxes(&request, &Call::default())
            .await
            .unwrap();
        assert!(page.items.len() <= limit as usize && page.coverage.complete);
        ids.extend(page.items.into_iter().map(|record| record.id));
        cursor = page.cursor;
        if cursor.is_none() {
            return ids;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v18_r28_every_box_is_listed_once_whatever_the_page() {
    let service = Service::with(Settings {
        boot_ms: 60_000,
        ..Settings::default()
    });
    let connection = service.connect_with(json!({ "network": "internet" })).await;
    let mut made = BTreeSet::new();
    for _ in 0..7 {
        made.insert(
            connection
                .create_sandbox(&create(), &Call::default())
                .await
                .unwrap()
                .id,
        );
    }
    for limit in [1, 2, 3, 7, 100] {
        let listed = all(&connection, limit, None).await;
        assert_eq!(listed.len(), 7, "{limit}");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), made, "{limit}");
    }
    assert_eq!(
        all(&connection, 2, Some(SandboxState::Starting))
            .await
            .len(),
        7
    );
    assert!(
        all(&connection, 2, Some(SandboxState::Running))
            .await
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_filtered_although_the_service_ignores_it() {
    let service = Service::start();
    let connection = service.connect_with(json!({ "network": "internet" })).await;
    let kept = running(&connection).await;
    let gone = running(&connection).await;
    connection
        .destroy_sandbox(&gone.id, &Call::default())
        .await
        .unwrap();
    wait(&connection, &gone.id, Target::Destroyed)
        .await
        .unwrap();
    let ignore = json!({ "type": "list", "ignore_filters": true });
    service.fault("GET", "/v1/devboxes", 1, ignore).await;
    assert_eq!(
        all(&connection, 10, Some(SandboxState::Running)).await,
        [kept.id]
    );
    assert_eq!(
        all(&connection, 10, Some(SandboxState::Destroyed)).await,
        [gone.id]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_break_their_promise_end_the_list_and_say_that_something_may_be_missing() {
    let service = Service::start();
    let connection = service.connect_with(json!({ "network": "internet" })).await;
    let call = Call::default();
    for _ in 0..3 {
        connection.create_sandbox(&create(), &call).await.unwrap();
    }
    let request = |cursor| ListSandboxesRequest {
        limit: 2,
        cursor,
        state: None,
    };
    let first = connection
        .list_sandboxes(&request(None), &call)
        .await
        .unwrap();
    for spoilt in ["repeated_cursor", "empty_page_with_more"] {
        service
            .fault(
                "GET",
                "/v1/devboxes",
                1,
                json!({ "type": "list", spoilt: true }),
            )
            .await;
        let second = connection
            .list_sandboxes(&request(first.cursor.clone()), &call)
            .await
            .unwrap();
        assert!(
            !second.coverage.complete && second.cursor.is_none(),
            "{spoilt}"
        );
        assert!(second.items.is_empty(), "{spoilt}");
    }
    service
        .fault(
            "GET",
            "/v1/devboxes",
            1,
            json!({ "type": "list", "vanished_cursor": true }),
        )
        .await;
    let second = connection
        .list_sandboxes(&request(first.cursor), &call)
        .await
        .unwrap();
    assert!(
        second.coverage.complete && second.items.len() == 1,
        "{second:?}"
    );
}
