//! Tells why Runloop refused a call into a Devbox.
//!
//! The service answers a command or a transfer for a Devbox that is not
//! running with 400, 404 or 409 (which of them is unknown), as it answers much
//! else. Only the Devbox's own state tells them apart.

use super::records::SandboxState;
use super::suspend::not_running;
use super::{Call, Connection, sandbox_view};
use crate::error::{Code, Error};

impl Connection {
    /// The refusal, or the better error that the sandbox's state gives.
    pub(super) async fn explain_refusal(
        &self,
        refusal: Error,
        sandbox_id: &str,
        call: &Call,
    ) -> Error {
        if !matches!(
            refusal.code(),
            Code::Rejected | Code::NotFound | Code::Conflict
        ) {
            return refusal;
        }
        let operation = refusal.operation();
        let error = match self.view(operation, sandbox_id, call).await {
            Ok(view) => {
                let status = view.status.as_deref().unwrap_or_default();
                match sandbox_view::state(status) {
                    // The sandbox is there: something else is not.
                    SandboxState::Running if refusal.code() == Code::NotFound => {
                        Error::new(Code::Rejected, refusal.message())
                            .with_resource("sandbox", sandbox_id)
                    }
                    SandboxState::Running | SandboxState::Unknown => return refusal,
                    _ => not_running(sandbox_id, status),
                }
            }
            Err(error) if error.code() == Code::NotFound => error,
            Err(_) => return refusal,
        };
        let outcome = refusal.outcome().clone();
        let error = error.during(operation).with_outcome(|to| *to = outcome);
        match refusal.status() {
            Some(status) => error.with_answer(
                status,
                refusal.request_id().map(str::to_owned),
                refusal.retry_after_seconds(),
            ),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{connect, devbox};
    use super::*;
    use crate::transport::scripted::Step;

    async fn explain(code: Code, step: Step) -> Error {
        let (connection, _) = connect([step]).await;
        let refusal = Error::new(code, "refused (400)").during("exec");
        connection
            .explain_refusal(refusal, "dbx_1", &Call::default())
            .await
    }

    #[tokio::test(start_paused = true)]
    async fn i5_a_refusal_by_a_sandbox_that_does_not_run_says_so() {
        for (status, code) in [
            ("suspended", Code::NotRunning),
            ("shutdown", Code::NotRunning),
            ("failure", Code::NotRunning),
            ("provisioning", Code::NotRunning),
            ("running", Code::Rejected),
            ("migrating", Code::Rejected),
        ] {
            let error = explain(Code::Rejected, devbox(status)).await;
            assert_eq!(
                (error.code(), error.operation()),
                (code, "exec"),
                "{status}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn b6_a_missing_sandbox_and_a_missing_something_else_are_told_apart() {
        let error = explain(Code::NotFound, Step::json(404, "")).await;
        assert_eq!(error.code(), Code::NotFound);
        let error = explain(Code::NotFound, devbox("running")).await;
        assert_eq!(error.code(), Code::Rejected);
        let error = explain(Code::Rejected, Step::json(403, "")).await;
        assert_eq!(
            (error.code(), error.message()),
            (Code::Rejected, "refused (400)")
        );
    }
}
