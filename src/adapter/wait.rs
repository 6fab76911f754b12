//! Waits for a state of a Devbox by long polls, reading only.
//!
//! The next poll is opened the moment the last one ends, so that the poll that
//! sees the change is already there when it happens. Only a server that does
//! not hold its polls is asked at growing intervals.

use std::time::Duration;

use tokio::time::Instant;

use super::records::{SandboxRecord, SandboxState, Target, WaitForSandboxRequest};
use super::{Call, Connection, poll::Pace, sandbox_view};
use crate::api::{answer, devboxes};
use crate::error::{Code, Error, Result};
use crate::wire::devboxes::Devbox;

impl Connection {
    /// Waits until the sandbox is in the state, at most `timeouts.startSeconds`
    /// for running and `timeouts.stopSeconds` for the others. Repeatable.
    ///
    /// # Errors
    /// `SANDBOX_FAILED` with the provider's reason; `NOT_RUNNING` where it was
    /// shut down instead; `REJECTED` where a suspend did not take;
    /// `DEADLINE_EXCEEDED`, for a shutdown `OUTCOME_UNKNOWN`. All carry the sandbox's id.
    pub async fn wait_for_sandbox(
        &self,
        request: &WaitForSandboxRequest,
        call: &Call,
    ) -> Result<SandboxRecord> {
        let WaitForSandboxRequest { sandbox_id, state } = request;
        let timeouts = &self.config().timeouts;
        let (operation, limit) = match state {
            Target::Running => ("wait_until_running", timeouts.start),
            Target::Suspended => ("wait_until_suspended", timeouts.stop),
            Target::Destroyed => ("sandbox_destroy", timeouts.stop),
        };
        let wait = Wait {
            id: sandbox_id,
            target: *state,
            operation,
            limit,
        };
        self.wait(&wait, call).await.map_err(|error| {
            error.with_outcome(|outcome| outcome.sandbox_id = Some(sandbox_id.clone()))
        })
    }

    async fn wait(&self, wait: &Wait<'_>, call: &Call) -> Result<SandboxRecord> {
        let deadline = Instant::now() + wait.limit;
        let mut pace = Pace::new();
        let mut seen_suspending = false;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(wait.overdue());
            }
            let statuses = wait.statuses(seen_suspending);
            let hold = whole_seconds(left);
            let poll = devboxes::wait_for_status(wait.id, statuses, hold)?.by(deadline);
            let context = self
                .context(wait.operation, &poll)
                .about("sandbox", wait.id);
            let view: Devbox = match self.poll(&poll, &context, &mut pace, call).await? {
                Some(answer) => answer::parse(&answer, &context)?,
                None if Instant::now() >= deadline => return Err(wait.overdue()),
                // A suspend that fails goes back to running, which only a look can tell:
                // a poll for "running" would answer before the suspend began.
                None if wait.target == Target::Suspended => {
                    self.view(wait.operation, wait.id, call).await?
                }
                None => continue,
            };
            sandbox_view::expect_id(&view, wait.id, wait.operation)?;
            let state = sandbox_view::state(view.status.as_deref().unwrap_or_default());
            if wait.reached(state) {
                return Ok(self.record(view));
            }
            match state {
                SandboxState::Failed | SandboxState::Destroyed => {
                    // An end is final, so a second look that disagrees shows a glitch.
                    let again = self.view(wait.operation, wait.id, call).await?;
                    if again.status == view.status {
                        return Err(wait.ended(&self.record(again)));
                    }
                }
                SandboxState::Running if wait.target == Target::Suspended && seen_suspending => {
                    return Err(wait.not_suspended());
                }
                SandboxState::Suspending => seen_suspending = true,
                _ => {}
            }
            self.until_stopped(call, wait.operation, pace.breathe(deadline))
                .await?;
        }
    }
}

struct Wait<'a> {
    id: &'a str,
    target: Target,
    operation: &'static str,
    limit: Duration,
}

impl Wait<'_> {
    fn statuses(&self, seen_suspending: bool) -> &'static [&'static str] {
        match self.target {
            // Right after a resume the status may still be "suspended": no reason to stop.
            Target::Running => &["running", "failure", "shutdown"],
            Target::Suspended if seen_suspending => {
                &["suspended", "failure", "shutdown", "running"]
            }
            Target::Suspended => &["suspended", "failure", "shutdown", "suspending"],
            Target::Destroyed => &["shutdown", "failure"],
        }
    }

    fn reached(&self, state: SandboxState) -> bool {
        match self.target {
            Target::Running => state == SandboxState::Running,
            Target::Suspended => state == SandboxState::Suspended,
            // Both are final: a failed Devbox has ended as well.
            Target::Destroyed => matches!(state, SandboxState::Destroyed | SandboxState::Failed),
        }
    }

    fn overdue(&self) -> Error {
        let seconds = self.limit.as_secs_f64();
        let (code, sentence) = match self.target {
            Target::Running => (Code::DeadlineExceeded, "is not running"),
            Target::Suspended => (Code::DeadlineExceeded, "is not suspended"),
            Target::Destroyed => (Code::OutcomeUnknown, "is not shut down"),
        };
        self.error(
            code,
            format!(
                "sandbox {:?} {sentence} after {seconds} s of waiting",
                self.id
            ),
        )
    }

    fn ended(&self, record: &SandboxRecord) -> Error {
        let status = &record.provider_state;
        let reason = record.reason.as_ref();
        let shown = reason
            .map(|reason| format!(" ({reason})"))
            .unwrap_or_default();
        let code = match record.state {
            SandboxState::Failed => Code::SandboxFailed,
            _ => Code::NotRunning,
        };
        self.error(
            code,
            format!("sandbox {:?} ended in {status}{shown}", self.id),
        )
        .with_reason("ended")
    }

    fn not_suspended(&self) -> Error {
        let message = format!(
            "sandbox {:?} went back to running instead of suspended",
            self.id
        );
        self.error(Code::Rejected, message)
    }

    fn error(&self, code: Code, message: String) -> Error {
        Error::new(code, message)
            .during(self.operation)
            .with_resource("sandbox", self.id)
    }
}

/// Rounded up, because 0 would ask the server for its default.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a duration is not negative, and a float that is too large saturates"
)]
fn whole_seconds(left: Duration) -> u32 {
    left.as_secs_f64().ceil() as u32
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{connect, connect_with, devbox};
    use super::*;
    use crate::transport::scripted::Step;

    const POLL: &str = "Post /v1/devboxes/dbx_1/wait_for_status";
    const LOOK: &str = "Get /v1/devboxes/dbx_1";

    fn until(state: Target) -> WaitForSandboxRequest {
        WaitForSandboxRequest {
            sandbox_id: "dbx_1".into(),
            state,
        }
    }

    /// A hold that ends without a change, as the service answers it.
    fn held() -> Step {
        Step::json(408, r#"{"message":"not yet"}"#).after(Duration::from_secs(30))
    }

    #[tokio::test(start_paused = true)]
    async fn f2_a_wait_asks_again_at_once_when_a_hold_ends() {
        let steps = [
            held(),
            held(),
            devbox("running").after(Duration::from_secs(3)),
        ];
        let (connection, script) = connect(steps).await;
        let started = Instant::now();
        let record = connection
            .wait_for_sandbox(&until(Target::Running), &Call::default())
            .await
            .unwrap();
        assert_eq!(record.state, SandboxState::Running);
        assert_eq!(started.elapsed(), Duration::from_secs(63));
        assert_eq!(script.lines(), [POLL; 3]);
        assert_eq!(
            script.json(0),
            json!({ "statuses": ["running", "failure", "shutdown"], "timeout_seconds": 30 })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn f2_a_poll_that_is_cut_at_the_end_of_its_hold_is_no_fault() {
        let cut = || Step::reset().after(Duration::from_secs(29));
        let steps = (0..12).map(|_| cut()).chain([devbox("running")]);
        let (connection, script) = connect(steps).await;
        connection
            .wait_for_sandbox(&until(Target::Running), &Call::default())
            .await
            .unwrap();
        assert_eq!(script.seen().len(), 13);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_hold_its_polls_is_not_asked_in_a_busy_loop() {
        let steps = (0..200).map(|_| Step::json(408, ""));
        let (connection, script) =
            connect_with(json!({ "timeouts": { "startSeconds": 60 } }), steps).await;
        let error = connection
            .wait_for_sandbox(&until(Target::Running), &Call::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
        assert!(
            (10..40).contains(&script.seen().len()),
            "{}",
            script.seen().len()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a4_a_wait_that_is_overdue_carries_the_sandbox() {
        let (connection, _) =
            connect_with(json!({ "timeouts": { "startSeconds": 0.3 } }), [Step::Hang]).await;
        let started = Instant::now();
        let error = connection
            .wait_for_sandbox(&until(Target::Running), &Call::default())
            .await
            .unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(1));
        assert_eq!(error.code(), Code::DeadlineExceeded);
        assert_eq!(error.outcome().sandbox_id.as_deref(), Some("dbx_1"));
    }

    #[tokio::test(start_paused = true)]
    async fn i5_a_failure_carries_its_reason_and_is_confirmed_by_a_second_look() {
        let failed = || {
            let view = json!({
                "id": "dbx_1", "status": "failure", "failure_reason": "out_of_memory"
            });
            Step::json(200, &view.to_string())
        };
        let (connection, script) = connect([failed(), failed()]).await;
        let error = connection
            .wait_for_sandbox(&until(Target::Running), &Call::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::SandboxFailed);
        assert!(error.message().contains("out_of_memory"), "{error}");
        assert_eq!(script.lines(), [POLL, LOOK]);
    }

    #[tokio::test(start_paused = true)]
    async fn i5_a_flicker_through_shutdown_and_an_unknown_state_are_no_end() {
        let steps = [
            devbox("shutdown"),
            devbox("provisioning"),
            devbox("migrating"),
            devbox("running"),
        ];
        let (connection, _) = connect(steps).await;
        let record = connection
            .wait_for_sandbox(&until(Target::Running), &Call::default())
            .await
            .unwrap();
        assert_eq!(record.state, SandboxState::Running);
    }

    #[tokio::test(start_paused = true)]
    async fn i5_a_suspend_that_goes_back_to_running_is_rejected() {
        let (connection, script) = connect([devbox("suspending"), devbox("running")]).await;
        let error = connection
            .wait_for_sandbox(&until(Target::Suspended), &Call::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::Rejected);
        assert_eq!(script.lines(), [POLL, POLL]);
    }

    #[tokio::test(start_paused = true)]
    async fn i1_a_shutdown_that_does_not_happen_is_noticed() {
        let steps = (0..4).map(|_| held());
        let (connection, _) = connect(steps).await;
        let error = connection
            .wait_for_sandbox(&until(Target::Destroyed), &Call::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::OutcomeUnknown);
        assert_eq!(error.outcome().sandbox_id.as_deref(), Some("dbx_1"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_gets_past_passing_faults_and_gives_up_on_lasting_ones() {
        let steps = [
            Step::refused(),
            Step::json(503, ""),
            Step::json(429, ""),
            devbox("running"),
        ];
        let (connection, _) = connect(steps).await;
        connection
            .wait_for_sandbox(&until(Target::Running), &Call::default())
            .await
            .unwrap();

        let (connection, script) = connect((0..5).map(|_| Step::refused())).await;
        let error = connection
            .wait_for_sandbox(&until(Target::Running), &Call::default())
            .await
            .unwrap_err();
        assert_eq!((error.code(), error.attempts()), (Code::Unavailable, 5));
        assert_eq!(script.seen().len(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn v23_a_cancelled_wait_ends_at_once_and_carries_the_sandbox() {
        let (connection, _) = connect([Step::Hang]).await;
        let call = Call::default();
        let cancel = call.cancel.clone();
        let request = until(Target::Running);
        let wait = connection.wait_for_sandbox(&request, &call);
        let (waited, ()) = tokio::join!(wait, async move { cancel.cancel() });
        let error = waited.unwrap_err();
        assert_eq!(error.code(), Code::Cancelled);
        assert_eq!(error.outcome().sandbox_id.as_deref(), Some("dbx_1"));
    }
}
