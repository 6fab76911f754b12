//! A snapshot from its capture to its end.

use std::collections::BTreeMap;

use beachside_runloop::adapter::Call;
use beachside_runloop::adapter::records::{
    CaptureRequest, CreateSandboxRequest, FindRequest, ListSnapshotsRequest, SnapshotState, Target,
};
use beachside_runloop::error::Code;
use runloop_simulator::Settings;
use serde_json::json;

use crate::harness::{Service, create, markers, running, wait};

fn capture(sandbox_id: &str) -> CaptureRequest {
    let labels = BTreeMap::from([("team".to_owned(), "x".to_owned())]);
    CaptureRequest {
        sandbox_id: sandbox_id.to_owned(),
        markers: markers(),
        labels: Some(labels),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r26_r30_v24_a_snapshot_is_captured_found_restored_and_outlives_its_source() {
    let service = Service::with(Settings {
        snapshot_ms: 300,
        ..Settings::default()
    });
    let connection = service.connect().await;
    let call = Call::default();
    let source = running(&connection).await;
    let request = capture(&source.id);
    let begun = connection.capture_snapshot(&request, &call).await.unwrap();
    let ready = connection
        .wait_for_snapshot(&begun.id, &call)
        .await
        .unwrap();
    assert_eq!(
        (ready.state, ready.markers.as_ref()),
        (SnapshotState::Ready, Some(&request.markers))
    );
    assert_eq!(ready.labels, request.labels);
    assert_eq!(ready.source_sandbox_id.as_deref(), Some(source.id.as_str()));

    let list = ListSnapshotsRequest {
        limit: 10,
        cursor: None,
    };
    let listed = connection.list_snapshots(&list, &call).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    let find = FindRequest {
        markers: request.markers,
        source_sandbox_id: None,
    };
    let found = connection.find_snapshots(&find, &call).await.unwrap();
    assert_eq!(found.matches, std::slice::from_ref(&ready));

    connection.destroy_sandbox(&source.id, &call).await.unwrap();
    wait(&connection, &source.id, Target::Destroyed)
        .await
        .unwrap();
    let restore = CreateSandboxRequest {
        snapshot_id: Some(ready.id.clone()),
        ..create()
    };
    let restored = connection.create_sandbox(&restore, &call).await.unwrap();
    let restored = wait(&connection, &restored.id, Target::Running)
        .await
        .unwrap();
    assert_eq!(restored.snapshot_id.as_deref(), Some(ready.id.as_str()));
    assert_eq!(restored.network.policy, "blocked");
    assert!(
        restored.differences.is_empty(),
        "{:?}",
        restored.differences
    );

    assert!(
        !connection
            .delete_snapshot(&ready.id, &call)
            .await
            .unwrap()
            .already_gone
    );
    assert!(
        connection
            .delete_snapshot(&ready.id, &call)
            .await
            .unwrap()
            .already_gone
    );
    wait(&connection, &restored.id, Target::Running)
        .await
        .unwrap();
    let error = connection
        .create_sandbox(&restore, &call)
        .await
        .unwrap_err();
    let resource = error
        .resource()
        .map(|resource| (resource.kind, resource.id.clone()));
    assert_eq!(
        (error.code(), resource),
        (Code::NotFound, Some(("snapshot", ready.id)))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r27_a_shutdown_during_a_capture_is_a_conflict() {
    let service = Service::with(Settings {
        snapshot_ms: 60_000,
        ..Settings::default()
    });
    let connection = service
        .connect_with(json!({ "timeouts": { "captureSeconds": 1 } }))
        .await;
    let call = Call::default();
    let source = running(&connection).await;
    let begun = connection
        .capture_snapshot(&capture(&source.id), &call)
        .await
        .unwrap();
    let error = connection
        .destroy_sandbox(&source.id, &call)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Conflict);
    let error = connection
        .wait_for_snapshot(&begun.id, &call)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded);
    assert_eq!(
        error.outcome().snapshot_id.as_deref(),
        Some(begun.id.as_str())
    );
    let error = connection
        .delete_snapshot(&begun.id, &call)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Conflict);
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_a_capture_whose_answer_is_lost_is_found_by_its_markers_and_was_sent_once() {
    let service = Service::start();
    let connection = service.connect().await;
    let call = Call::default();
    let source = running(&connection).await;
    let path = format!("/v1/devboxes/{}/snapshot_disk_async", source.id);
    service
        .fault("POST", &path, 1, json!({ "type": "drop_reply" }))
        .await;
    let request = capture(&source.id);
    let error = connection
        .capture_snapshot(&request, &call)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::OutcomeUnknown);
    assert_eq!(service.count(&format!("POST {path}")).await, 1);
    let find = FindRequest {
        markers: request.markers,
        source_sandbox_id: None,
    };
    let found = connection.find_snapshots(&find, &call).await.unwrap();
    assert_eq!((found.matches.len(), found.searched.complete), (1, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_capture_that_fails_says_so() {
    let service = Service::start();
    let connection = service.connect().await;
    let call = Call::default();
    let source = running(&connection).await;
    let path = format!("/v1/devboxes/{}/snapshot_disk_async", source.id);
    let failing = json!({ "type": "snapshot_outcome", "milliseconds": 100, "error": "disk full", "vanish": false });
    service.fault("POST", &path, 1, failing).await;
    let begun = connection
        .capture_snapshot(&capture(&source.id), &call)
        .await
        .unwrap();
    let error = connection
        .wait_for_snapshot(&begun.id, &call)
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.reason()),
        (Code::Rejected, Some("snapshot_failed"))
    );
    assert!(error.message().contains("disk full"), "{error}");

    let vanishing =
        json!({ "type": "snapshot_outcome", "milliseconds": 500, "error": null, "vanish": true });
    service.fault("POST", &path, 1, vanishing).await;
    let begun = connection
        .capture_snapshot(&capture(&source.id), &call)
        .await
        .unwrap();
    let error = connection
        .wait_for_snapshot(&begun.id, &call)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}
