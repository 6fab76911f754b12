//! Shuts a Devbox down. There is no other way to remove one, and none back.

use super::records::{Gone, SandboxState};
use super::{Call, Connection, sandbox_view};
use crate::api::devboxes;
use crate::error::Result;

impl Connection {
    /// Submits the shutdown, once, unless the sandbox is shut down already;
    /// [`wait_for_sandbox`](Self::wait_for_sandbox) confirms it.
    ///
    /// # Errors
    /// `CONFLICT` while a snapshot is being captured, `NOT_FOUND`,
    /// `OUTCOME_UNKNOWN` where the answer is lost.
    pub async fn destroy_sandbox(&self, sandbox_id: &str, call: &Call) -> Result<Gone> {
        const OPERATION: &str = "sandbox_destroy";
        // A repeated shutdown is answered like the first, so only a look before
        // can tell that it was gone.
        let view = self.view(OPERATION, sandbox_id, call).await?;
        if sandbox_view::state(view.status.as_deref().unwrap_or_default())
            == SandboxState::Destroyed
        {
            return Ok(Gone { already_gone: true });
        }
        let request = devboxes::shutdown(sandbox_id);
        let context = self
            .context(OPERATION, &request)
            .about("sandbox", sandbox_id);
        match self.submit(request, &context, call).await {
            Ok(_) => Ok(Gone {
                already_gone: false,
            }),
            Err(error) => Err(error.with_outcome(|outcome| {
                outcome.sandbox_id = Some(sandbox_id.to_owned());
            })),
        }
    }
}
