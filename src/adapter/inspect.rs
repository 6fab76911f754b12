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
        self.view("sandbox_inspect", sandbox_id, call)
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

    /// What the provider says about a sandbox, as far as it may stand in a message.
    pub(super) fn told(&self, sandbox_id: &str, text: Option<String>) -> Option<String> {
        let values = self.memory().env_values(sandbox_id);
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        text.map(|text| answer::shorten(&self.secrets().redact(&text, &values)))
    }

    /// The record of a view, with what this connection knows besides.
    pub(super) fn record(&self, mut view: Devbox) -> SandboxRecord {
        if let Some(token) = view
            .tunnel
            .as_ref()
            .and_then(|tunnel| tunnel.auth_token.as_deref())
        {
            self.secrets().learn(token);
        }
        view.failure_reason = self.told(&view.id, view.failure_reason.take());
        view.shutdown_reason = self.told(&view.id, view.shutdown_reason.take());
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
