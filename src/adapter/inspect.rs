//! Reads one Devbox.

use super::records::SandboxRecord;
use super::{Call, Connection, sandbox_view};
use crate::api::{answer, devboxes};
use crate::error::Result;
use crate::wire::devboxes::Devbox;

impl Connection {
    /// The sandbox as the provider reports it. A shut-down Devbox is still reported.
    ///
    /// # Errors
    /// `NOT_FOUND` for an id that the account does not have.
    pub async fn inspect_sandbox(&self, sandbox_id: &str, call: &Call) -> Result<SandboxRecord> {
        self.view("inspect", sandbox_id, call)
            .await
            .map(|view| self.record(view))
    }

    /// The provider's view, during another operation.
    pub(super) async fn view(
        &self,
        operation: &'static str,
        sandbox_id: &str,
        call: &Call,
    ) -> Result<Devbox> {
        let request = devboxes::get(sandbox_id);
        let context = self
            .context(operation, &request)
            .about("sandbox", sandbox_id);
        let view: Devbox = answer::parse(&self.read(&request, &context, call).await?, &context)?;
        sandbox_view::expect_id(&view, sandbox_id, operation)?;
        Ok(view)
    }

    /// The record of a view, with what this connection knows besides.
    pub(super) fn record(&self, view: Devbox) -> SandboxRecord {
        if let Some(token) = view
            .tunnel
            .as_ref()
            .and_then(|tunnel| tunnel.auth_token.as_deref())
        {
            self.secrets().learn(token);
        }
        let differences = self.memory().differences(&view);
        // Without the echo nothing is known: absent is not "internet".
        let policy = match &view.launch_parameters {
            None => "unknown",
            Some(launch) => match &launch.network_policy_id {
                None => "internet",
                Some(id) if self.policy_checks().is_blocked(id) => "blocked",
                Some(_) => "unknown",
            },
        };
        let mut record = sandbox_view::record(view);
        record.network.policy = policy;
        record.differences = differences;
        record
    }
}
