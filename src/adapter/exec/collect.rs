//! Fetches what a command wrote, and leaves nothing of the call behind.

use bytes::Bytes;
use futures::future::join;
use tokio::time::Instant;

use super::{Exec, ExecRecord, OPERATION, STOP_LIMIT};
use crate::adapter::Call;
use crate::adapter::guest_script::{ReadOut, TIDY_LIMIT, inline, leftover};
use crate::error::{Code, Error, Result};
use crate::shell::{Captured, Content, ExecResult};

/// The whole result of a command.
pub(super) struct Output {
    exit_code: u8,
    stdout: Stream,
    stderr: Stream,
}

struct Stream {
    kept: Bytes,
    total_bytes: u64,
}

impl Output {
    pub(super) fn record(self, duration_ms: f64) -> ExecRecord {
        ExecRecord {
            exit_code: self.exit_code,
            stdout_bytes: self.stdout.total_bytes,
            stderr_bytes: self.stderr.total_bytes,
            stdout_truncated: self.stdout.total_bytes > self.stdout.kept.len() as u64,
            stderr_truncated: self.stderr.total_bytes > self.stderr.kept.len() as u64,
            stdout: self.stdout.kept,
            stderr: self.stderr.kept,
            duration_ms,
        }
    }
}

/// Fetches the output of a command that has ended.
///
/// What is not in the record is downloaded, both streams side by side, and the
/// directory removed, once. Where a download fails for good, one script reads
/// the streams out instead.
pub(super) async fn collect(exec: &Exec<'_>, result: ExecResult, call: &Call) -> Result<Output> {
    let (stdout, stderr) = (&result.stdout, &result.stderr);
    let fetched = join(fetch(exec, stdout, call), fetch(exec, stderr, call)).await;
    let (stdout_kept, stderr_kept) = match fetched {
        (Ok(stdout), Ok(stderr)) => {
            if result.left_directory.is_some() {
                exec.clean_up(Instant::now() + TIDY_LIMIT).await;
            }
            (stdout, stderr)
        }
        (Err(error), _) | (_, Err(error)) => otherwise(exec, error, &result).await?,
    };
    Ok(Output {
        exit_code: result.exit_code,
        stdout: Stream {
            kept: stdout_kept,
            total_bytes: result.stdout.total_bytes,
        },
        stderr: Stream {
            kept: stderr_kept,
            total_bytes: result.stderr.total_bytes,
        },
    })
}

async fn fetch(exec: &Exec<'_>, captured: &Captured, call: &Call) -> Result<Bytes> {
    let (connection, sandbox_id) = (exec.execution.connection, exec.execution.sandbox_id);
    match &captured.content {
        Content::Inline(bytes) => Ok(Bytes::copy_from_slice(bytes)),
        Content::File { path, bytes } => {
            connection
                .download(OPERATION, sandbox_id, path, *bytes, call)
                .await
        }
    }
}

/// Both streams after a failed download: by a script, whole, or an error that
/// has everything else of the result. A caller who went away is not kept waiting for it.
async fn otherwise(exec: &Exec<'_>, error: Error, result: &ExecResult) -> Result<(Bytes, Bytes)> {
    let (connection, sandbox_id) = (exec.execution.connection, exec.execution.sandbox_id);
    let is_stopped = matches!(error.code(), Code::Cancelled | Code::Closed);
    let limit = if is_stopped { STOP_LIMIT } else { TIDY_LIMIT };
    let until = Instant::now() + limit;
    let max_bytes = exec.max_output_bytes;
    let read_out = match error.code() {
        Code::Closed => ReadOut::Failed,
        _ => {
            connection
                .read_out(OPERATION, sandbox_id, &exec.nonce, max_bytes, until)
                .await
        }
    };
    let is_left = matches!(read_out, ReadOut::Failed);
    if let (ReadOut::Output(stdout, stderr), false) = (read_out, is_stopped)
        && let Some(stdout) = whole(stdout, &result.stdout)
        && let Some(stderr) = whole(stderr, &result.stderr)
    {
        return Ok((stdout, stderr));
    }
    let exit_code = result.exit_code;
    let error = if is_stopped {
        error
    } else {
        let message = format!(
            "the command ended with exit code {exit_code}, and its output could not be fetched: \
             {error}"
        );
        Error::new(Code::Unavailable, message).with_attempts(error.attempts())
    };
    Err(error.with_outcome(|outcome| {
        outcome.submitted = Some(true);
        outcome.exit_code = Some(exit_code.into());
        outcome.output_unavailable = true;
        if is_left {
            outcome.leftovers.push(leftover(&exec.nonce));
        }
    }))
}

/// A stream as the record announced it: what came in the record, else what was read out.
fn whole(read_out: Captured, announced: &Captured) -> Option<Bytes> {
    match &announced.content {
        Content::Inline(bytes) => Some(Bytes::copy_from_slice(bytes)),
        Content::File { bytes, .. } => {
            let content = inline(read_out)?;
            (content.len() as u64 == *bytes).then(|| content.into())
        }
    }
}
