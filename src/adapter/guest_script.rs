//! Runs a script of this adapter's own in a Devbox, as opposed to a user's command.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::execution::{End, Execution, Stop};
use super::transfer::Upload;
use super::{Call, Connection};
use crate::error::{Code, Error, Result};
use crate::shell::{self, Captured, CleanUp, Content, Nonce, Partial, Wrapped};

/// How long looking after a call that has ended may take.
pub(super) const TIDY_LIMIT: Duration = Duration::from_secs(5);

/// How often a clean-up is sent at most. It removes by an unguessable name, so
/// that doing it twice is doing it once.
const CLEAN_UPS: u32 = 3;

/// What a [`Connection::read_out`] brought.
pub(super) enum ReadOut {
    /// The output so far; nothing of the call is left in the guest.
    Output(Captured, Captured),
    /// There was none, and nothing of the call is left in the guest.
    Nothing,
    /// It could not be asked.
    Failed,
}

impl Connection {
    /// Runs a script to its end and returns what it printed to standard output.
    /// No error quotes the script or `contents`.
    ///
    /// # Errors
    /// Those of a mutation. A script that does not end within `limit` is
    /// `OUTCOME_UNKNOWN`; it is left alone, because it ends by itself.
    pub(super) async fn run_script(
        &self,
        operation: &'static str,
        sandbox_id: &str,
        mut script: Wrapped,
        contents: &[&[u8]],
        limit: Duration,
        call: &Call,
    ) -> Result<String> {
        let deadline = Instant::now() + limit;
        let uploads = Upload::script(&mut script).into_iter().collect();
        self.upload_before(operation, sandbox_id, uploads, &[], call)
            .await?;
        let execution = Execution::new(self, sandbox_id, operation, &[]).carrying(contents);
        match execution.follow(&script.command, deadline, call).await {
            End::Completed(view) => Ok(view.stdout.unwrap_or_default().0),
            End::Stopped(Stop::Cancelled, _) => {
                let error = Error::new(Code::Cancelled, "the caller's signal stopped the call");
                Err(submitted(error.during(operation)))
            }
            End::Stopped(Stop::Deadline, _) => {
                let seconds = limit.as_secs_f64();
                let message = format!("the Devbox did not finish within {seconds} s");
                let error = Error::new(Code::OutcomeUnknown, message).during(operation);
                Err(submitted(error.with_resource("sandbox", sandbox_id)))
            }
            End::Failed(error) => Err(error),
        }
    }

    /// Reads what a call has written so far and removes what it left, in a
    /// task of its own that goes on past `until` for up to [`TIDY_LIMIT`].
    pub(super) async fn read_out(
        &self,
        operation: &'static str,
        sandbox_id: &str,
        nonce: &Nonce,
        max_bytes: u64,
        until: Instant,
    ) -> ReadOut {
        let script = shell::read_out(nonce, max_bytes);
        let text = self.tidy(operation, sandbox_id, script, until).await;
        match text.and_then(|text| shell::read_partial(&text, nonce).ok()) {
            Some(Partial::Output { stdout, stderr }) => ReadOut::Output(stdout, stderr),
            Some(Partial::Nothing) => ReadOut::Nothing,
            Some(Partial::Refused(_)) | None => ReadOut::Failed,
        }
    }

    /// Removes what a call left in the guest, in a task as that of
    /// [`read_out`](Self::read_out), and again where that fails before `until`.
    /// Returns the paths that may still be there.
    pub(super) async fn clean_up(
        &self,
        operation: &'static str,
        sandbox_id: &str,
        nonce: &Nonce,
        until: Instant,
    ) -> Vec<String> {
        for _ in 0..CLEAN_UPS {
            if self.closed().is_cancelled() || Instant::now() >= until {
                break;
            }
            let script = shell::clean_up(nonce);
            let text = self.tidy(operation, sandbox_id, script, until).await;
            match text.and_then(|text| shell::read_clean_up(&text, nonce).ok()) {
                Some(CleanUp::Clean) => return Vec::new(),
                Some(CleanUp::Left(paths)) => return paths,
                Some(CleanUp::Refused(_)) => break,
                None => {}
            }
        }
        vec![leftover(nonce)]
    }

    async fn tidy(
        &self,
        operation: &'static str,
        sandbox_id: &str,
        script: Wrapped,
        until: Instant,
    ) -> Option<String> {
        let connection = self.clone();
        let sandbox_id = sandbox_id.to_owned();
        let task = tokio::spawn(async move {
            // Not the caller's signal: this is what follows when it has come.
            let call = Call::default();
            connection
                .run_script(operation, &sandbox_id, script, &[], TIDY_LIMIT, &call)
                .await
        });
        timeout_at(until, task).await.ok()?.ok()?.ok()
    }
}

/// Names everything of a call as possibly left: whatever a clean-up found, what
/// was still on its way to the guest then may have come later.
pub(super) fn may_be_left(error: Error, nonce: &Nonce) -> Error {
    error.with_outcome(|outcome| {
        let left = leftover(nonce);
        if !outcome.leftovers.contains(&left) {
            outcome.leftovers.push(left);
        }
    })
}

/// Everything that a call may have left: one directory, and what was uploaded for it.
pub(super) fn leftover(nonce: &Nonce) -> String {
    format!("/tmp/beachside-*{nonce}*")
}

/// The bytes of a stream that came in the record.
pub(super) fn inline(captured: Captured) -> Option<Vec<u8>> {
    match captured.content {
        Content::Inline(bytes) => Some(bytes),
        Content::File { .. } => None,
    }
}

fn submitted(error: Error) -> Error {
    error.with_outcome(|outcome| outcome.submitted = Some(true))
}
