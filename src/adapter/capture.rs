//! Captures the disk of a Devbox: submits once, then watches the status.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::records::{CaptureRequest, SandboxState, SnapshotRecord, SnapshotState};
use super::sandbox_view::{OPERATION as OPERATION_KEY, SUBMISSION as SUBMISSION_KEY};
use super::suspend::not_running;
use super::{Call, Connection, sandbox_view, snapshot_view};
use crate::api::answer::parse;
use crate::api::snapshots;
use crate::error::{Code, Error, Result};
use crate::wire::snapshots::{CaptureSnapshot, Snapshot, SnapshotStatus};

const OPERATION: &str = "snapshot_capture";

/// Pauses between two looks: short at first, because small disks take a few
/// seconds, and growing, because large ones take minutes.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// How long a snapshot that was just begun may be invisible.
const VISIBLE_WITHIN: Duration = Duration::from_secs(3);

impl Connection {
    /// Submits, once, and resolves with the service's first answer; the disk is
    /// still being captured, and the Devbox keeps running.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a label that begins with `beachside_`;
    /// `NOT_FOUND`, `NOT_RUNNING`, `CONFLICT`; `OUTCOME_UNKNOWN` where the
    /// answer is lost.
    pub async fn capture_snapshot(
        &self,
        request: &CaptureRequest,
        call: &Call,
    ) -> Result<SnapshotRecord> {
        let CaptureRequest {
            sandbox_id,
            markers,
            labels,
        } = request;
        let mut metadata = BTreeMap::new();
        for (key, value) in labels.iter().flatten() {
            if key.starts_with(snapshot_view::RESERVED) {
                let message = format!("labels has the reserved name {key:?}; choose another");
                return Err(Error::invalid_argument(message).during(OPERATION));
            }
            metadata.insert(key.as_str(), value.as_str());
        }
        metadata.insert(OPERATION_KEY, &markers.operation);
        metadata.insert(SUBMISSION_KEY, &markers.submission);
        let http = snapshots::capture(sandbox_id, &CaptureSnapshot { metadata })?;
        let context = self.context(OPERATION, &http).about("sandbox", sandbox_id);
        let answer = match self.submit(http, &context, call).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.explain_capture(sandbox_id, error, call).await),
        };
        let view: Snapshot = parse(&answer, &context)?;
        if view.id.is_empty() {
            let message = "Runloop answered the capture without an id of the snapshot";
            let error = Error::new(Code::OutcomeUnknown, message).during(OPERATION);
            return Err(error.with_outcome(|outcome| outcome.submitted = Some(true)));
        }
        let record = snapshot_view::record(view);
        Ok(SnapshotRecord {
            state: SnapshotState::Creating,
            ..record
        })
    }

    /// A refusal that is one of the Devbox's state says so.
    async fn explain_capture(&self, sandbox_id: &str, refusal: Error, call: &Call) -> Error {
        if refusal.code() != Code::Rejected {
            return refusal;
        }
        let Ok(view) = self.view(OPERATION, sandbox_id, call).await else {
            return refusal;
        };
        let status = view.status.as_deref().unwrap_or_default();
        match sandbox_view::state(status) {
            SandboxState::Running | SandboxState::Unknown => refusal,
            _ => not_running(sandbox_id, status)
                .during(OPERATION)
                .with_outcome(|outcome| outcome.submitted = Some(true)),
        }
    }

    /// Waits until the snapshot is ready, at most `timeouts.captureSeconds`,
    /// reading only. Repeatable.
    ///
    /// # Errors
    /// `REJECTED` with the reason `snapshot_failed`; `NOT_FOUND` where it is
    /// gone; `DEADLINE_EXCEEDED`. All carry the snapshot's id.
    pub async fn wait_for_snapshot(
        &self,
        snapshot_id: &str,
        call: &Call,
    ) -> Result<SnapshotRecord> {
        self.watch(snapshot_id, call).await.map_err(|error| {
            error.with_outcome(|outcome| outcome.snapshot_id = Some(snapshot_id.to_owned()))
        })
    }

    async fn watch(&self, snapshot_id: &str, call: &Call) -> Result<SnapshotRecord> {
        let limit = self.config().timeouts.capture;
        let started = Instant::now();
        let deadline = started + limit;
        let mut pause = FIRST_PAUSE;
        let mut was_seen = false;
        loop {
            match self
                .snapshot(OPERATION, snapshot_id, Some(deadline), call)
                .await
            {
                Ok(record) => match record.state {
                    SnapshotState::Ready => return Ok(record),
                    SnapshotState::Failed => return Err(failed(&record)),
                    SnapshotState::Deleted => return Err(gone(snapshot_id)),
                    SnapshotState::Creating | SnapshotState::Unknown => was_seen = true,
                },
                Err(error) if error.code() == Code::NotFound => {
                    if was_seen || started.elapsed() >= VISIBLE_WITHIN {
                        return Err(error);
                    }
                }
                // A read that the deadline cut is the deadline.
                Err(error) if error.code() == Code::Unavailable && Instant::now() >= deadline => {}
                Err(error) => return Err(error),
            }
            if Instant::now() >= deadline {
                return Err(overdue(snapshot_id, limit));
            }
            let until = (Instant::now() + pause).min(deadline);
            self.until_stopped(call, OPERATION, tokio::time::sleep_until(until))
                .await?;
            pause = pause.mul_f64(1.5).min(MAX_PAUSE);
        }
    }

    /// The snapshot as the provider reports it. A deleted one is still reported.
    ///
    /// # Errors
    /// `NOT_FOUND` for an id that the account does not have.
    pub async fn inspect_snapshot(&self, snapshot_id: &str, call: &Call) -> Result<SnapshotRecord> {
        self.snapshot("snapshot_inspect", snapshot_id, None, call)
            .await
    }

    /// Reads one snapshot, during another operation.
    pub(super) async fn snapshot(
        &self,
        operation: &'static str,
        snapshot_id: &str,
        deadline: Option<Instant>,
        call: &Call,
    ) -> Result<SnapshotRecord> {
        let mut request = snapshots::status(snapshot_id);
        request.deadline = deadline;
        let context = self
            .context(operation, &request)
            .about("snapshot", snapshot_id);
        let status: SnapshotStatus = parse(&self.read(&request, &context, call).await?, &context)?;
        let reported = status.snapshot.as_ref().map_or("", |view| view.id.as_str());
        if !reported.is_empty() && reported != snapshot_id {
            let message = format!("Runloop answered with another snapshot than {snapshot_id:?}");
            return Err(Error::protocol(message)
                .during(operation)
                .with_resource("snapshot", snapshot_id));
        }
        let mut record = snapshot_view::record_of_status(snapshot_id, status);
        record.reason = self.told("", record.reason);
        Ok(record)
    }
}

fn error(code: Code, message: String, snapshot_id: &str) -> Error {
    Error::new(code, message)
        .during(OPERATION)
        .with_resource("snapshot", snapshot_id)
}

fn failed(record: &SnapshotRecord) -> Error {
    let reason = record.reason.as_deref().unwrap_or("no reason given");
    let message = format!("the capture of snapshot {:?} failed: {reason}", record.id);
    error(Code::Rejected, message, &record.id).with_reason("snapshot_failed")
}

fn gone(snapshot_id: &str) -> Error {
    let message = format!("snapshot {snapshot_id:?} was deleted while it was being captured");
    error(Code::NotFound, message, snapshot_id)
}

fn overdue(snapshot_id: &str, limit: Duration) -> Error {
    let seconds = limit.as_secs_f64();
    let message = format!("snapshot {snapshot_id:?} is not ready after {seconds} s of waiting");
    error(Code::DeadlineExceeded, message, snapshot_id)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::records::Markers;
    use super::super::testing::{connect, connect_with, devbox};
    use super::*;
    use crate::transport::scripted::Step;

    fn request() -> CaptureRequest {
        CaptureRequest {
            sandbox_id: "dbx_1".into(),
            markers: Markers {
                operation: "op-1".into(),
                submission: "sub-1".into(),
            },
            labels: None,
        }
    }

    fn status(status: &str) -> Step {
        let snapshot = json!({
            "id": "snp_1", "create_time_ms": 17, "source_devbox_id": "dbx_1", "size_bytes": 5,
            "metadata": {
                "beachside_operation": "op-1", "beachside_submission": "sub-1", "team": "x",
            },
        });
        let body = json!({ "status": status, "snapshot": snapshot, "error_message": "disk full" });
        Step::json(200, &body.to_string())
    }

    async fn wait(steps: impl IntoIterator<Item = Step>) -> Result<SnapshotRecord> {
        let (connection, _) = connect(steps).await;
        connection
            .wait_for_snapshot("snp_1", &Call::default())
            .await
    }

    #[tokio::test(start_paused = true)]
    async fn r26_r30_a_capture_is_asynchronous_and_carries_markers_and_labels() {
        let (connection, script) = connect([Step::json(200, r#"{"id":"snp_1"}"#)]).await;
        let labels = Some(BTreeMap::from([("team".into(), "x".into())]));
        let request = CaptureRequest {
            labels,
            ..request()
        };
        let record = connection
            .capture_snapshot(&request, &Call::default())
            .await
            .unwrap();
        assert_eq!(
            (record.id.as_str(), record.state),
            ("snp_1", SnapshotState::Creating)
        );
        assert_eq!(
            script.lines(),
            ["Post /v1/devboxes/dbx_1/snapshot_disk_async"]
        );
        assert_eq!(
            script.json(0)["metadata"],
            json!({
                "beachside_operation": "op-1", "beachside_submission": "sub-1", "team": "x",
            })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_reserved_label_is_refused_before_any_request() {
        let (connection, script) = connect([]).await;
        let labels = Some(BTreeMap::from([("beachside_operation".into(), "x".into())]));
        let request = CaptureRequest {
            labels,
            ..request()
        };
        let error = connection
            .capture_snapshot(&request, &Call::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(script.seen().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn r29_r31_a_capture_is_sent_once_and_a_refusal_by_state_says_so() {
        for (steps, code) in [
            (vec![Step::reset()], Code::OutcomeUnknown),
            (vec![Step::json(503, "")], Code::OutcomeUnknown),
            (vec![Step::json(200, "{}")], Code::OutcomeUnknown),
            (vec![Step::json(404, "")], Code::NotFound),
            (vec![Step::json(409, "")], Code::Conflict),
            (
                vec![Step::json(400, ""), devbox("suspended")],
                Code::NotRunning,
            ),
            (vec![Step::json(400, ""), devbox("running")], Code::Rejected),
        ] {
            let (connection, script) = connect(steps).await;
            let error = connection
                .capture_snapshot(&request(), &Call::default())
                .await
                .unwrap_err();
            assert_eq!(
                (error.code(), error.outcome().submitted),
                (code, Some(true))
            );
            let sent = script
                .lines()
                .iter()
                .filter(|line| line.starts_with("Post"))
                .count();
            assert_eq!(sent, 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn i6_a_capture_is_ready_only_when_it_is_complete() {
        let started = Instant::now();
        let invisible = Step::json(404, "");
        let steps = [
            invisible,
            status("in_progress"),
            status("migrating"),
            status("complete"),
        ];
        let record = wait(steps).await.unwrap();
        assert_eq!(record.state, SnapshotState::Ready);
        assert_eq!(
            record.labels,
            Some(BTreeMap::from([("team".into(), "x".into())]))
        );
        assert_eq!(record.source_sandbox_id.as_deref(), Some("dbx_1"));
        assert!(
            started.elapsed() < Duration::from_secs(2),
            "{:?}",
            started.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn i6_a_failed_deleted_or_vanished_capture_is_an_error_with_its_id() {
        for (steps, code) in [
            (vec![status("in_progress"), status("error")], Code::Rejected),
            (vec![status("deleted")], Code::NotFound),
            (
                vec![status("in_progress"), Step::json(404, "")],
                Code::NotFound,
            ),
            (vec![Step::json(401, "")], Code::Unauthenticated),
        ] {
            let error = wait(steps).await.unwrap_err();
            assert_eq!(error.code(), code);
            assert_eq!(error.outcome().snapshot_id.as_deref(), Some("snp_1"));
        }
        let error = wait([status("error")]).await.unwrap_err();
        assert_eq!(error.reason(), Some("snapshot_failed"));
        assert!(error.message().contains("disk full"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_capture_that_does_not_end_is_overdue_after_a_bounded_number_of_looks() {
        let steps = (0..200).map(|_| status("in_progress"));
        let config = json!({ "timeouts": { "captureSeconds": 60 } });
        let (connection, script) = connect_with(config, steps).await;
        let error = connection
            .wait_for_snapshot("snp_1", &Call::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
        assert!(
            (20..50).contains(&script.seen().len()),
            "{}",
            script.seen().len()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_inspected_snapshot_needs_no_view_and_refuses_another_ones() {
        let body = |value: Value| Step::json(200, &value.to_string());
        let (connection, _) = connect([
            body(json!({ "status": "deleted" })),
            body(json!({ "status": "complete", "snapshot": { "id": "snp_2" } })),
        ])
        .await;
        let record = connection
            .inspect_snapshot("snp_1", &Call::default())
            .await
            .unwrap();
        assert_eq!(
            (record.id.as_str(), record.state),
            ("snp_1", SnapshotState::Deleted)
        );
        let error = connection
            .inspect_snapshot("snp_1", &Call::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::Protocol);
    }
}
