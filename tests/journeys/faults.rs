//! Creates whose answers are lost, refused or spoilt: sent once, and found again.

use beachside_runloop::adapter::Call;
use beachside_runloop::adapter::records::FindRequest;
use beachside_runloop::error::Code;
use serde_json::{Value, json};

use crate::harness::{Service, create};

const CREATE: &str = "POST /v1/devboxes";

/// What a create ends with, whether it was submitted and how many boxes its markers find.
async fn create_under(action: Value) -> (Code, Option<bool>, usize) {
    let service = Service::start();
    let connection = service
        .connect_with(json!({ "timeouts": { "requestSeconds": 1 } }))
        .await;
    service.fault("POST", "/v1/devboxes", 1, action).await;
    let (request, call) = (create(), Call::default());
    let error = connection
        .create_sandbox(&request, &call)
        .await
        .unwrap_err();
    assert_eq!(service.count(CREATE).await, 1);
    let find = FindRequest {
        markers: request.markers,
        source_sandbox_id: None,
    };
    let found = connection.find_sandboxes(&find, &call).await.unwrap();
    assert!(found.searched.complete);
    (error.code(), error.outcome().submitted, found.matches.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_r29_r30_r31_a_lost_create_is_sent_once_and_found_by_its_markers() {
    for action in [
        json!({ "type": "drop_reply" }),
        json!({ "type": "drop_reply", "reset": true }),
        json!({ "type": "hold_reply" }),
        json!({ "type": "replace_reply", "status": 502, "text": "<html>" }),
        json!({ "type": "replace_reply", "status": 408 }),
        json!({ "type": "replace_reply", "status": 200, "text": "<html>" }),
        json!({ "type": "halve_reply" }),
        json!({ "type": "truncate_reply", "bytes": 10 }),
    ] {
        let shown = action.to_string();
        assert_eq!(
            create_under(action).await,
            (Code::OutcomeUnknown, Some(true), 1),
            "{shown}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r31_a_create_that_never_acted_leaves_nothing() {
    for (action, code) in [
        (json!({ "type": "drop_request" }), Code::OutcomeUnknown),
        (json!({ "type": "hold_request" }), Code::OutcomeUnknown),
        (
            json!({ "type": "refuse", "status": 500 }),
            Code::OutcomeUnknown,
        ),
        (json!({ "type": "redirect" }), Code::OutcomeUnknown),
        (json!({ "type": "refuse", "status": 400 }), Code::Rejected),
        (
            json!({ "type": "refuse", "status": 401 }),
            Code::Unauthenticated,
        ),
        (
            json!({ "type": "refuse", "status": 403 }),
            Code::PermissionDenied,
        ),
        (json!({ "type": "refuse", "status": 409 }), Code::Conflict),
        (json!({ "type": "refuse", "status": 422 }), Code::Rejected),
        (
            json!({ "type": "rate_limit", "retry_after": "3" }),
            Code::RateLimited,
        ),
    ] {
        let shown = action.to_string();
        assert_eq!(create_under(action).await, (code, Some(true), 0), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_a_look_that_fails_is_never_not_found_and_gets_past_what_passes() {
    let service = Service::start();
    let connection = service.connect().await;
    let call = Call::default();
    let made = connection.create_sandbox(&create(), &call).await.unwrap();
    let path = format!("/v1/devboxes/{}", made.id);
    for (status, code) in [
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
        (400, Code::Rejected),
    ] {
        service
            .fault(
                "GET",
                &path,
                1,
                json!({ "type": "refuse", "status": status }),
            )
            .await;
        let error = connection
            .inspect_sandbox(&made.id, &call)
            .await
            .unwrap_err();
        assert_eq!(error.code(), code);
    }
    for action in [
        json!({ "type": "refuse", "status": 500 }),
        json!({ "type": "refuse", "status": 502, "text": "<html>" }),
        json!({ "type": "rate_limit", "retry_after": "0" }),
        json!({ "type": "drop_request", "reset": true }),
        json!({ "type": "drop_reply" }),
    ] {
        service.fault("GET", &path, 2, action.clone()).await;
        let record = connection.inspect_sandbox(&made.id, &call).await;
        assert_eq!(record.unwrap().id, made.id, "{action}");
    }
    assert_eq!(service.count(CREATE).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a6_v23_a_create_that_is_cancelled_on_its_way_goes_out_whole() {
    let service = Service::start();
    let connection = service.connect_with(json!({ "network": "internet" })).await;
    let slow = json!({ "type": "delay_reply", "milliseconds": 60_000 });
    service.fault("POST", "/v1/devboxes", 1, slow).await;
    let (request, call) = (create(), Call::default());
    let creating = connection.create_sandbox(&request, &call);
    let cancelling = async {
        while service.count(CREATE).await == 0 {
            tokio::task::yield_now().await;
        }
        call.cancel.cancel();
    };
    let (result, ()) = tokio::join!(creating, cancelling);
    let error = result.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome().submitted),
        (Code::Cancelled, Some(true))
    );
    let find = FindRequest {
        markers: request.markers,
        source_sandbox_id: None,
    };
    let mut found = 0;
    while found == 0 {
        let matches = connection
            .find_sandboxes(&find, &Call::default())
            .await
            .unwrap()
            .matches;
        found = matches.len();
    }
    assert_eq!(found, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn k6_a_service_that_echoes_the_key_puts_it_into_no_error() {
    let service = Service::start();
    let connection = service.connect_with(json!({ "network": "internet" })).await;
    for status in [400, 401, 409, 500] {
        let echo = json!({ "type": "refuse", "status": status, "text": "no: {authorization}" });
        service.fault("POST", "/v1/devboxes", 1, echo).await;
        let error = connection
            .create_sandbox(&create(), &Call::default())
            .await
            .unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(
            shown.contains("[redacted]") && !shown.contains("ak_journey"),
            "{shown}"
        );
    }
}
