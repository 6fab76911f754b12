//! Reads and writes whole files.
//!
//! Small ones take one request: a script that brings the content, or carries
//! it. Large ones are downloaded, or uploaded beside their place and moved by
//! a script. Both look at what the path is first, so that a directory or a
//! FIFO is told at once and a Devbox that is gone is told apart. Start reading
//! at [`Connection::read_file`] and [`Connection::write_file`].

mod fault;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use uuid::Uuid;

use self::fault::{fault, too_large};
use super::exec::refusal::unrepresentable;
use super::guest_script::{TIDY_LIMIT, may_be_left};
use super::transfer::{Upload, other_length};
use super::{Call, Connection};
use crate::error::{Code, Error, Result};
use crate::observe::Phase;
use crate::shell::{
    FileContent, FileSource, Nonce, WRITE_INLINE_LIMIT_BYTES, probe_file, read_probe, read_written,
    write_file,
};

/// The longest file: 64 MiB.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// How long a script about a file may take in the guest.
const SCRIPT_LIMIT: Duration = Duration::from_secs(60);

/// How often a file is downloaded whose length is not that of the file.
const DOWNLOADS: usize = 3;

/// A file to read.
#[derive(Debug, Clone)]
pub struct ReadFileRequest {
    /// Where.
    pub sandbox_id: String,
    /// Absolute, or relative to the home directory; taken literally, `~` too.
    pub path: String,
}

/// A file to write. `Debug` shows no content.
#[derive(Clone)]
pub struct WriteFileRequest {
    /// Where.
    pub sandbox_id: String,
    /// Absolute, or relative to the home directory; taken literally, `~` too.
    pub path: String,
    /// All of it, at most 64 MiB.
    pub content: Bytes,
    /// Permission bits. `None` keeps an existing file's.
    pub mode: Option<u32>,
}

impl fmt::Debug for WriteFileRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteFileRequest")
            .field("sandbox_id", &self.sandbox_id)
            .field("path", &self.path)
            .field("content_bytes", &self.content.len())
            .field("mode", &self.mode)
            .finish()
    }
}

impl Connection {
    /// All bytes of a regular file of at most 64 MiB.
    ///
    /// # Errors
    /// `NOT_FOUND` of the file or the sandbox, `NOT_RUNNING`, `FILE_ERROR` with
    /// `is_directory`, `not_regular`, `permission`, `name_too_long` or `too_large`,
    /// `UNAVAILABLE` where no answer came, `PROTOCOL` where the answers had another
    /// length than the file three times.
    pub async fn read_file(&self, request: &ReadFileRequest, call: &Call) -> Result<Bytes> {
        const OPERATION: &str = "file_read";
        let ReadFileRequest { sandbox_id, path } = request;
        let content = self.file_content(OPERATION, sandbox_id, path, call).await;
        content.map_err(|error| as_a_read(error).during(OPERATION))
    }

    async fn file_content(
        &self,
        operation: &'static str,
        sandbox_id: &str,
        path: &str,
        call: &Call,
    ) -> Result<Bytes> {
        let mut before = match self.probe(operation, sandbox_id, path, call).await? {
            FileContent::Inline(bytes) => return Ok(bytes.into()),
            FileContent::Large { path, bytes } => (path, bytes),
        };
        let mut received = 0;
        for _ in 0..DOWNLOADS {
            let (absolute, bytes) = &before;
            let content = self
                .whole_file(operation, sandbox_id, absolute, *bytes, call)
                .await?;
            received = content.len() as u64;
            if received == *bytes {
                return Ok(content);
            }
            // The file changed meanwhile, or the answer lost its end without a sign of it.
            let after = match self.probe(operation, sandbox_id, path, call).await? {
                FileContent::Inline(bytes) => return Ok(bytes.into()),
                FileContent::Large { path, bytes } => (path, bytes),
            };
            if (before.1.min(after.1)..=before.1.max(after.1)).contains(&received) {
                return Ok(content);
            }
            before = after;
        }
        Err(other_length(received, before.1).with_resource("file", path))
    }

    /// What a path is, and the content of a small file.
    async fn probe(
        &self,
        operation: &'static str,
        sandbox_id: &str,
        path: &str,
        call: &Call,
    ) -> Result<FileContent> {
        let nonce = nonce();
        let script = probe_file(path, &nonce).map_err(|reason| unrepresentable(&reason))?;
        let text = self
            .run_script(operation, sandbox_id, script, &[], SCRIPT_LIMIT, call)
            .await?;
        let probe = read_probe(&text, path, &nonce).map_err(|reason| {
            let message = format!("{path:?} could not be looked at: {reason}");
            Error::new(Code::Unavailable, message)
        })?;
        match probe.map_err(|reason| fault(&reason, path))? {
            FileContent::Large { bytes, .. } if bytes > MAX_FILE_BYTES => {
                Err(too_large(path, bytes))
            }
            content => Ok(content),
        }
    }

    /// What the service sends of a file that had `bytes` bytes a moment ago.
    async fn whole_file(
        &self,
        operation: &'static str,
        sandbox_id: &str,
        absolute: &str,
        bytes: u64,
        call: &Call,
    ) -> Result<Bytes> {
        let counter = call.progress.counter(Phase::Downloading, bytes);
        if let Some(counter) = &counter {
            counter.at(0);
        }
        let download = self
            .download_at_most(
                operation,
                sandbox_id,
                absolute,
                MAX_FILE_BYTES,
                counter,
                call,
            )
            .await;
        match download {
            Ok(content) => Ok(content),
            Err(error) => {
                let better = self.explain_refusal(error.clone(), sandbox_id, call).await;
                let is_better = better.code() == Code::NotRunning;
                Err(if is_better { better } else { error })
            }
        }
    }

    /// Replaces a file in one step, or makes it with its parents. A write that
    /// fails leaves the old content.
    ///
    /// Symbolic links are followed. An existing file keeps its mode, owner and
    /// group; hard links break.
    ///
    /// # Errors
    /// - `INVALID_ARGUMENT` for more than 64 MiB, `FILE_ERROR` with
    ///   `name_too_long`: nothing was sent.
    /// - `FILE_ERROR` with `is_directory`, `not_regular`, `not_directory`,
    ///   `permission` or `no_space`, `NOT_FOUND` of the sandbox, `NOT_RUNNING`.
    /// - `OUTCOME_UNKNOWN` where the answer is lost: the file is whole, old or new.
    pub async fn write_file(&self, request: &WriteFileRequest, call: &Call) -> Result<()> {
        const OPERATION: &str = "file_write";
        let replaced = self.replace_file(OPERATION, request, call).await;
        replaced.map_err(|error| error.during(OPERATION))
    }

    async fn replace_file(
        &self,
        operation: &'static str,
        request: &WriteFileRequest,
        call: &Call,
    ) -> Result<()> {
        let WriteFileRequest {
            sandbox_id,
            path,
            content,
            mode,
        } = request;
        let bytes = content.len() as u64;
        if bytes > MAX_FILE_BYTES {
            let message = format!("content is {bytes} bytes; at most {MAX_FILE_BYTES} are written");
            return Err(Error::invalid_argument(message));
        }
        if let Some(error) = self.stopped(call, operation) {
            return Err(error.with_outcome(|outcome| outcome.submitted = Some(false)));
        }
        let nonce = nonce();
        let is_inline = content.len() <= WRITE_INLINE_LIMIT_BYTES;
        let source = if is_inline {
            FileSource::Inline(content)
        } else {
            FileSource::Uploaded { bytes }
        };
        let script =
            write_file(path, source, *mode, &nonce).map_err(|reason| unrepresentable(&reason))?;
        let written = async {
            if !is_inline {
                let upload = Upload {
                    path: nonce.file_path(),
                    content: content.clone(),
                    counter: call.progress.counter(Phase::Uploading, bytes),
                };
                self.upload_before(operation, sandbox_id, vec![upload], &[], call)
                    .await?;
                call.progress.tell(Phase::Finishing, bytes, bytes);
            }
            let contents = [&content[..]];
            self.run_script(operation, sandbox_id, script, &contents, SCRIPT_LIMIT, call)
                .await
        };
        match written.await {
            Ok(text) => {
                let report = read_written(&text, &nonce).map_err(|reason| {
                    let message = format!("whether {path:?} was written is not known: {reason}");
                    Error::new(Code::OutcomeUnknown, message)
                        .with_outcome(|outcome| outcome.submitted = Some(true))
                })?;
                // An upload that could not be removed is another user's file, which would mean
                // that the service writes as another user than it runs commands (not known to).
                report.map(|_| ()).map_err(|reason| fault(&reason, path))
            }
            Err(error) if is_inline => Err(error),
            Err(error) if self.closed().is_cancelled() => Err(may_be_left(error, &nonce)),
            Err(error) => {
                let until = Instant::now() + TIDY_LIMIT;
                let left = self.clean_up(operation, sandbox_id, &nonce, until).await;
                Err(error.with_outcome(|outcome| outcome.leftovers.extend(left)))
            }
        }
    }
}

/// A read that went through a mutation of the service's is still a read: what
/// it changed is nothing, so that nothing is unknown.
fn as_a_read(error: Error) -> Error {
    if error.code() != Code::OutcomeUnknown {
        return error;
    }
    let unavailable = Error::new(Code::Unavailable, error.message())
        .during(error.operation())
        .with_attempts(error.attempts());
    match error.status() {
        Some(status) => unavailable.with_answer(
            status,
            error.request_id().map(str::to_owned),
            error.retry_after_seconds(),
        ),
        None => unavailable,
    }
}

fn nonce() -> Nonce {
    Nonce::from_random(*Uuid::new_v4().as_bytes())
}
