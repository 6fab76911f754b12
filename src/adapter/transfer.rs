//! Bytes into and out of a Devbox, at paths that only this adapter uses.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use tokio::time::timeout;

use super::{Call, Connection};
use crate::api::answer::{accept, unanswered};
use crate::api::files;
use crate::error::{Code, Error, Result};
use crate::observe::Counter;
use crate::shell::Wrapped;

/// How long a stopped call waits for its uploads to arrive.
const LANDING_LIMIT: Duration = Duration::from_secs(1);

/// A file to upload.
pub(super) struct Upload {
    pub(super) path: String,
    pub(super) content: Bytes,
    /// Where its transfer is told of.
    pub(super) counter: Option<Counter>,
}

impl Upload {
    /// The script of a call that is too long for one command string.
    pub(super) fn script(wrapped: &mut Wrapped) -> Option<Self> {
        wrapped.upload.take().map(|upload| Self {
            path: upload.path,
            content: upload.content.into(),
            counter: None,
        })
    }
}

impl Connection {
    /// Uploads files side by side, each once, before a command that needs them.
    /// No error quotes a file or shows a value of `hide`.
    ///
    /// # Errors
    /// `CANCELLED` and `CLOSED` with `submitted: false`, refusals as they are;
    /// a lost answer is `UNAVAILABLE`, because the command was not sent. A part
    /// of the files may then be in the guest. A stopped call waits a moment for
    /// what was sent; a file that may still arrive is among the leftovers.
    pub(super) async fn upload_before(
        &self,
        operation: &'static str,
        sandbox_id: &str,
        uploads: Vec<Upload>,
        hide: &[&str],
        call: &Call,
    ) -> Result<()> {
        if uploads.is_empty() {
            return Ok(());
        }
        if let Some(error) = self.stopped(call, operation) {
            return Err(error.with_outcome(|outcome| outcome.submitted = Some(false)));
        }
        let paths: Vec<String> = uploads.iter().map(|upload| upload.path.clone()).collect();
        let not_sent = |error: Error| error.with_outcome(|outcome| outcome.submitted = Some(false));
        let sending = uploads.into_iter().map(|upload| async move {
            let contents = [&upload.content[..]];
            let request = files::upload(sandbox_id, &upload.path, upload.content.clone());
            let request = request.counted(upload.counter);
            let context = self
                .context(operation, &request)
                .about("sandbox", sandbox_id)
                .hiding(hide)
                .carrying(&contents);
            let answer = self.dispatch(request, operation, call).await.map_err(|_| {
                Error::internal("the task that sent a request ended early").during(operation)
            })?;
            let answer = answer.map_err(|failure| unanswered(&failure, &context))?;
            accept(answer, &context).map(|_| ())
        });
        let mut sending = pin!(join_all(sending));
        let answers = match self.until_stopped(call, operation, &mut sending).await {
            Ok(answers) => answers,
            Err(error) => {
                // A request that was sent arrives even when nobody waits for it: what
                // the caller removes next would come back.
                let landed =
                    self.closed().is_cancelled() || timeout(LANDING_LIMIT, sending).await.is_ok();
                let left = if landed { Vec::new() } else { paths };
                return Err(not_sent(error).with_outcome(|outcome| outcome.leftovers = left));
            }
        };
        for answer in answers {
            let Err(error) = answer else { continue };
            let error = match error.code() {
                Code::OutcomeUnknown => unsent(&error, operation),
                _ => self.explain_refusal(error, sandbox_id, call).await,
            };
            return Err(not_sent(error));
        }
        Ok(())
    }

    /// Downloads a file of which the length is known.
    ///
    /// # Errors
    /// Those of a read; `PROTOCOL` where it is longer or shorter.
    pub(super) async fn download(
        &self,
        operation: &'static str,
        sandbox_id: &str,
        path: &str,
        bytes: u64,
        call: &Call,
    ) -> Result<Bytes> {
        let content = self
            .download_at_most(operation, sandbox_id, path, bytes, None, call)
            .await?;
        if content.len() as u64 == bytes {
            return Ok(content);
        }
        Err(other_length(content.len() as u64, bytes)
            .during(operation)
            .with_resource("file", path))
    }

    /// Downloads a file of which only a limit to its length is known.
    ///
    /// # Errors
    /// Those of a read; `PROTOCOL` where it is longer.
    pub(super) async fn download_at_most(
        &self,
        operation: &'static str,
        sandbox_id: &str,
        path: &str,
        max_bytes: u64,
        counter: Option<Counter>,
        call: &Call,
    ) -> Result<Bytes> {
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let request = files::download(sandbox_id, path, max_bytes)?.counted(counter);
        let context = self.context(operation, &request).about("file", path);
        let answer = self.read(&request, &context, call).await?;
        Ok(answer.body)
    }
}

/// The error of a download that is not the file that was looked at.
pub(super) fn other_length(received: u64, bytes: u64) -> Error {
    Error::protocol(format!(
        "Runloop sent {received} bytes of a file of {bytes}"
    ))
}

/// The error of an upload whose answer was lost, for the command that was to follow.
fn unsent(error: &Error, operation: &'static str) -> Error {
    let message =
        format!("nothing was run in the Devbox, because an upload for it failed: {error}");
    let unsent = Error::new(Code::Unavailable, message).during(operation);
    match error.status() {
        Some(status) => unsent.with_answer(
            status,
            error.request_id().map(str::to_owned),
            error.retry_after_seconds(),
        ),
        None => unsent,
    }
}
