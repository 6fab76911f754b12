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
        sandbox_view::record(view)
    }
}
