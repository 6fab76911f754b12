//! A box from its creation to its end.

use std::time::{Duration, Instant};

use beachside_runloop::adapter::Call;
use beachside_runloop::adapter::records::{SandboxState, Target};
use beachside_runloop::error::Code;
use runloop_simulator::Settings;
use serde_json::json;

use crate::harness::{Service, create, running, wait};

#[tokio::test(flavor = "multi_thread")]
async fn r25_r27_r28_a_box_is_made_suspended_resumed_and_destroyed() {
    let service = Service::start();
    let connection = service.connect().await;
    let call = Call::default();
    let made = connection.create_sandbox(&create(), &call).await.unwrap();
    let id = made.id.as_str();
    let record = wait(&connection, id, Target::Running).await.unwrap();
    assert_eq!(
        (record.network.policy, record.differences.len()),
        ("blocked", 0)
    );
    assert_eq!(record.lifecycle.lifetime_seconds, Some(900.0));
    assert!(record.created_at_ms.unwrap() > 1.7e12);
    assert_eq!(connection.inspect_sandbox(id, &call).await.unwrap(), record);

    assert!(
        !connection
            .suspend_sandbox(id, &call)
            .await
            .unwrap()
            .already_there
    );
    let suspended = wait(&connection, id, Target::Suspended).await.unwrap();
    assert_eq!(suspended.state, SandboxState::Suspended);
    assert!(
        connection
            .suspend_sandbox(id, &call)
            .await
            .unwrap()
            .already_there
    );

    assert!(
        !connection
            .resume_sandbox(id, &call)
            .await
            .unwrap()
            .already_there
    );
    wait(&connection, id, Target::Running).await.unwrap();
    assert!(
        connection
            .resume_sandbox(id, &call)
            .await
            .unwrap()
            .already_there
    );

    assert!(
        !connection
            .destroy_sandbox(id, &call)
            .await
            .unwrap()
            .already_gone
    );
    let ended = wait(&connection, id, Target::Destroyed).await.unwrap();
    assert_eq!(ended.state, SandboxState::Destroyed);
    let shutdown = format!("POST /v1/devboxes/{id}/shutdown");
    assert!(
        connection
            .destroy_sandbox(id, &call)
            .await
            .unwrap()
            .already_gone
    );
    assert_eq!(service.count(&shutdown).await, 1);
    let error = wait(&connection, id, Target::Running).await.unwrap_err();
    assert_eq!(error.code(), Code::NotRunning);
}

#[tokio::test(flavor = "multi_thread")]
async fn f2_the_poll_that_sees_the_readiness_was_open_before_it() {
    let service = Service::with(Settings {
        boot_ms: 1500,
        ..Settings::default()
    });
    let connection = service.connect().await;
    let started = Instant::now();
    let record = running(&connection).await;
    assert!(started.elapsed() < Duration::from_secs(10));
    let path = format!("/v1/devboxes/{}/wait_for_status", record.id);
    let polls: Vec<_> = service
        .journal()
        .await
        .into_iter()
        .filter(|entry| entry["path"] == path.as_str())
        .collect();
    assert_eq!(polls.len(), 1, "{polls:?}");
    assert!(
        polls[0]["duration_ms"].as_u64().unwrap() >= 1000,
        "{polls:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn f2_short_holds_are_followed_by_the_next_poll_at_once() {
    let settings = Settings {
        boot_ms: 2500,
        devbox_hold_max_seconds: 1.0,
        ..Settings::default()
    };
    let service = Service::with(settings);
    let connection = service.connect().await;
    let record = running(&connection).await;
    let path = format!("/v1/devboxes/{}/wait_for_status", record.id);
    let journal = service.journal().await;
    let polls: Vec<_> = journal
        .iter()
        .filter(|entry| entry["path"] == path.as_str())
        .collect();
    assert!((3..=5).contains(&polls.len()), "{polls:?}");
    for pair in polls.windows(2) {
        let end = pair[0]["time_ms"].as_i64().unwrap() + pair[0]["duration_ms"].as_i64().unwrap();
        let gap = pair[1]["time_ms"].as_i64().unwrap() - end;
        assert!(gap < 500, "{gap} ms between two polls");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i5_a_failed_boot_carries_its_reason_and_its_box() {
    let service = Service::start();
    let connection = service.connect().await;
    let steps = json!([{ "status": "failure", "failure_reason": "out_of_disk" }]);
    let script = json!({ "type": "devbox_script", "steps": steps });
    service.fault("POST", "/v1/devboxes", 1, script).await;
    let made = connection
        .create_sandbox(&create(), &Call::default())
        .await
        .unwrap();
    let error = wait(&connection, &made.id, Target::Running)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::SandboxFailed);
    assert!(error.message().contains("out_of_disk"), "{error}");
    assert_eq!(
        error.outcome().sandbox_id.as_deref(),
        Some(made.id.as_str())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i5_unknown_states_and_flickers_are_no_end_and_a_stuck_box_is_overdue() {
    let service = Service::start();
    let connection = service
        .connect_with(json!({ "timeouts": { "startSeconds": 2 } }))
        .await;
    let call = Call::default();
    let record = running(&connection).await;
    let flicker = json!({ "steps": [
        { "status": "migrating", "views": 1 },
        { "status": "shutdown", "views": 1 },
    ] });
    service.script(&record.id, flicker).await;
    let seen = connection.inspect_sandbox(&record.id, &call).await.unwrap();
    assert_eq!(
        (seen.state, seen.provider_state.as_str()),
        (SandboxState::Unknown, "migrating")
    );
    wait(&connection, &record.id, Target::Running)
        .await
        .unwrap();

    service
        .script(&record.id, json!({ "steps": [{ "status": "migrating" }] }))
        .await;
    let error = wait(&connection, &record.id, Target::Running)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded);
    assert_eq!(
        error.outcome().sandbox_id.as_deref(),
        Some(record.id.as_str())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_a_shutdown_without_effect_is_noticed_and_one_that_conflicts_says_so() {
    let service = Service::start();
    let connection = service
        .connect_with(json!({ "timeouts": { "stopSeconds": 1 } }))
        .await;
    let call = Call::default();
    let record = running(&connection).await;
    let path = format!("/v1/devboxes/{}/shutdown", record.id);
    service
        .fault("POST", &path, 1, json!({ "type": "no_effect" }))
        .await;
    connection.destroy_sandbox(&record.id, &call).await.unwrap();
    let error = wait(&connection, &record.id, Target::Destroyed)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::OutcomeUnknown);

    let conflict = json!({ "type": "refuse", "status": 409, "body": { "message": "snapshot" } });
    service.fault("POST", &path, 1, conflict).await;
    let error = connection
        .destroy_sandbox(&record.id, &call)
        .await
        .unwrap_err();
    assert_eq!((error.code(), error.status()), (Code::Conflict, Some(409)));
    connection.destroy_sandbox(&record.id, &call).await.unwrap();
    wait(&connection, &record.id, Target::Destroyed)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_id_reaches_no_other_endpoint() {
    let service = Service::start();
    let connection = service.connect().await;
    let asked = [
        "../accounts/me",
        "x/../../accounts/me",
        "x?limit=1",
        "x#y",
        "a b",
        "%2e%2e",
    ];
    // No URL can hold these as a segment, so they are not asked for.
    let unaddressable = ["", ".", ".."];
    for id in asked.into_iter().chain(unaddressable) {
        let call = Call::default();
        for error in [
            connection.inspect_sandbox(id, &call).await.unwrap_err(),
            connection.suspend_sandbox(id, &call).await.unwrap_err(),
            wait(&connection, id, Target::Running).await.unwrap_err(),
        ] {
            assert_eq!(error.code(), Code::NotFound, "{id}: {error}");
            assert_eq!(
                error.resource().map(|resource| resource.kind),
                Some("sandbox")
            );
        }
    }
    let lines = service.lines().await;
    assert_eq!(lines.len(), 3 * asked.len());
    assert!(
        lines.iter().all(|line| line.contains(" /v1/devboxes/")),
        "{lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_the_tunnel_is_made_with_the_box_and_survives_a_suspend() {
    let service = Service::start();
    let connection = service.connect().await;
    let call = Call::default();
    let record = running(&connection).await;
    let before = connection.preview(&record.id, 3000, &call).await.unwrap();
    assert_eq!(before.access, "protected");
    assert!(before.headers["X-Runloop-Tunnel-Authorization"].starts_with("Bearer "));
    connection.suspend_sandbox(&record.id, &call).await.unwrap();
    wait(&connection, &record.id, Target::Suspended)
        .await
        .unwrap();
    let error = connection
        .preview(&record.id, 3000, &call)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::NotRunning);
    connection.resume_sandbox(&record.id, &call).await.unwrap();
    wait(&connection, &record.id, Target::Running)
        .await
        .unwrap();
    assert_eq!(
        connection.preview(&record.id, 3000, &call).await.unwrap(),
        before
    );
    let lines = service.lines().await;
    assert!(
        !lines.iter().any(|line| line.ends_with("enable_tunnel")),
        "{lines:?}"
    );

    let public = service
        .connect_with(json!({ "preview": { "access": "public" } }))
        .await;
    let record = running(&public).await;
    let preview = public.preview(&record.id, 3000, &call).await.unwrap();
    assert_eq!((preview.access, preview.headers.len()), ("public", 0));
}
