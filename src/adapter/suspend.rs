//! Suspends and resumes a Devbox: submits once, reads only to explain a refusal.

use super::records::{SandboxState, Transition};
use super::{Call, Connection, sandbox_view};
use crate::api::devboxes;
use crate::error::{Code, Error, Result};
use crate::message::Request;

impl Connection {
    /// Keeps the disk and ends everything that runs. Resolves with the first
    /// answer; [`wait_for_sandbox`](Self::wait_for_sandbox) observes.
    ///
    /// # Errors
    /// `NOT_RUNNING` for a sandbox that has ended, `OUTCOME_UNKNOWN` where the answer is lost.
    pub async fn suspend_sandbox(&self, sandbox_id: &str, call: &Call) -> Result<Transition> {
        let request = devboxes::suspend(sandbox_id);
        self.transition(
            "sandbox_suspend",
            request,
            sandbox_id,
            SandboxState::Suspended,
            call,
        )
        .await
    }

    /// Starts a suspended sandbox again, with fresh processes. Resolves with
    /// the first answer; [`wait_for_sandbox`](Self::wait_for_sandbox) observes.
    ///
    /// # Errors
    /// As [`suspend_sandbox`](Self::suspend_sandbox).
    pub async fn resume_sandbox(&self, sandbox_id: &str, call: &Call) -> Result<Transition> {
        let request = devboxes::resume(sandbox_id);
        self.transition(
            "sandbox_resume",
            request,
            sandbox_id,
            SandboxState::Running,
            call,
        )
        .await
    }

    async fn transition(
        &self,
        operation: &'static str,
        request: Request,
        sandbox_id: &str,
        goal: SandboxState,
        call: &Call,
    ) -> Result<Transition> {
        let context = self
            .context(operation, &request)
            .about("sandbox", sandbox_id);
        let refusal = match self.submit(request, &context, call).await {
            Ok(_) => {
                return Ok(Transition {
                    already_there: false,
                });
            }
            Err(refusal) => refusal,
        };
        if !matches!(refusal.code(), Code::Rejected | Code::Conflict) {
            return Err(refusal.with_outcome(|outcome| {
                outcome.sandbox_id = Some(sandbox_id.to_owned());
            }));
        }
        // Runloop answers 400 alike for a sandbox that is there already, is on
        // its way there and has ended: only its state tells them apart.
        let view = self.view(operation, sandbox_id, call).await?;
        let state = sandbox_view::state(view.status.as_deref().unwrap_or_default());
        let under_way = match goal {
            SandboxState::Suspended => SandboxState::Suspending,
            _ => SandboxState::Resuming,
        };
        match state {
            state if state == goal => Ok(Transition {
                already_there: true,
            }),
            state if state == under_way => Ok(Transition {
                already_there: false,
            }),
            SandboxState::Failed | SandboxState::Destroyed => Err(not_running(
                sandbox_id,
                view.status.as_deref().unwrap_or_default(),
            )
            .during(operation)),
            _ => Err(refusal),
        }
    }
}

/// The error of a call that needs a running sandbox; its reason is `suspended` or `ended`, where
/// that is known.
pub(super) fn not_running(sandbox_id: &str, provider_state: &str) -> Error {
    let (advice, reason) = match sandbox_view::state(provider_state) {
        SandboxState::Suspended => ("; resume it first", Some("suspended")),
        SandboxState::Failed | SandboxState::Destroyed => {
            ("; it cannot be started again", Some("ended"))
        }
        _ => ("", None),
    };
    let message = format!("sandbox {sandbox_id:?} is not running: it is {provider_state}{advice}");
    let error = Error::new(Code::NotRunning, message).with_resource("sandbox", sandbox_id);
    match reason {
        Some(reason) => error.with_reason(reason),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{connect, devbox};
    use super::*;
    use crate::transport::scripted::Step;

    #[tokio::test(start_paused = true)]
    async fn i5_suspend_of_a_suspended_sandbox_and_resume_of_a_running_one_do_nothing() {
        let refused = || Step::json(400, r#"{"message":"wrong state"}"#);
        let steps = [refused(), devbox("suspended"), refused(), devbox("running")];
        let (connection, script) = connect(steps).await;
        let call = Call::default();
        assert!(
            connection
                .suspend_sandbox("dbx_1", &call)
                .await
                .unwrap()
                .already_there
        );
        assert!(
            connection
                .resume_sandbox("dbx_1", &call)
                .await
                .unwrap()
                .already_there
        );
        assert_eq!(
            script.lines(),
            [
                "Post /v1/devboxes/dbx_1/suspend",
                "Get /v1/devboxes/dbx_1",
                "Post /v1/devboxes/dbx_1/resume",
                "Get /v1/devboxes/dbx_1",
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn i5_resume_of_a_sandbox_that_has_ended_is_not_running() {
        let steps = [Step::json(400, "{}"), devbox("shutdown")];
        let (connection, _) = connect(steps).await;
        let error = connection
            .resume_sandbox("dbx_1", &Call::default())
            .await
            .unwrap_err();
        assert_eq!(
            (error.code(), error.operation()),
            (Code::NotRunning, "sandbox_resume")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn r29_r31_a_lost_answer_to_a_suspend_is_unknown_and_not_repeated() {
        for lost in [
            Step::reset(),
            Step::json(502, "<html>"),
            Step::json(408, ""),
        ] {
            let (connection, script) = connect([lost]).await;
            let error = connection
                .suspend_sandbox("dbx_1", &Call::default())
                .await
                .unwrap_err();
            assert_eq!(error.code(), Code::OutcomeUnknown);
            assert_eq!(error.outcome().submitted, Some(true));
            assert_eq!(error.outcome().sandbox_id.as_deref(), Some("dbx_1"));
            assert_eq!(script.seen().len(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn r29_r31_a_refused_suspend_is_that_refusal() {
        let steps = [
            Step::json(400, r#"{"message":"no quota"}"#),
            devbox("running"),
        ];
        let (connection, _) = connect(steps).await;
        let error = connection
            .suspend_sandbox("dbx_1", &Call::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::Rejected);
        assert!(error.message().contains("no quota"), "{error}");
    }
}
