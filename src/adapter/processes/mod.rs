//! Live processes: start, reopen, follow, wait, kill.
//!
//! It owns what runs on behalf of a process handle: at most one long poll for
//! its end, while somebody waits or reads, and one task for each stream of each
//! reader. It must not know the event-stream format or how offsets resume
//! ([`sse`](crate::sse)). Start reading at [`Process`]; `follow` holds the rules
//! of reopening.
//!
//! - Nothing is read before it is asked for, so output that nobody reads costs
//!   and blocks nothing.
//! - Each reader reads from the handle's offsets on, over connections of its
//!   own. A slow one holds back its own connections only, and holds at most
//!   1 MiB of each stream and what three reads of a connection give.
//! - A process is known by its id; everything can be reopened by another handle.

mod buffer;
mod exit;
mod follow;
mod reader;
mod records;
mod start;
mod tail;
mod tally;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::{CancellationToken, DropGuard};

use self::buffer::slot;
use self::exit::{Exit, ExitWatch, ended, is_passing};
use self::follow::MAX_TAIL;
use self::tally::Tally;
use super::{Call, Connection};
use crate::api::answer::parse;
use crate::api::executions;
use crate::error::{Code, Error, Killed, Result};
use crate::shell::Nonce;
use crate::sse::OffsetMode;
use crate::wire::executions::Execution;

pub use crate::api::executions::Output;
pub use reader::OutputReader;
pub use records::{
    CommandInput, Completeness, OpenProcessRequest, OutputPiece, ProcessExit, ProcessStatus,
    StartRequest, Which,
};
pub(super) use start::SeenIds;

/// A handle on a process. Clones are the same handle; dropping the last one and
/// every reader stops everything of ours and nothing of the process.
#[derive(Clone)]
pub struct Process(Arc<Inner>);

struct Inner {
    connection: Connection,
    target: Arc<Target>,
    /// Where readers start.
    from: [u64; 2],
    /// How far any reader came.
    read: [AtomicU64; 2],
    exit: Arc<ExitWatch>,
    tally: Tally,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

/// The execution that a handle is about.
struct Target {
    sandbox_id: String,
    id: String,
    /// The call's name in the guest, where this connection started it.
    nonce: Option<Nonce>,
    cwd: Option<String>,
    mode: OnceLock<OffsetMode>,
}

impl Target {
    fn mode(&self) -> Option<OffsetMode> {
        self.mode.get().copied()
    }

    /// Remembers what the offsets of one stream mark, for the others.
    fn learn(&self, mode: Option<OffsetMode>) {
        if let Some(mode) = mode {
            self.mode.get_or_init(|| mode);
        }
    }
}

impl Inner {
    fn from(&self, output: Output) -> u64 {
        self.from.get(slot(output)).copied().unwrap_or_default()
    }

    fn advance(&self, which: Which, positions: [u64; 2]) {
        for output in which.outputs() {
            let slot = slot(*output);
            if let (Some(read), Some(position)) = (self.read.get(slot), positions.get(slot)) {
                read.fetch_max(*position, Ordering::Relaxed);
            }
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("sandbox_id", &self.0.target.sandbox_id)
            .field("id", &self.0.target.id)
            .finish_non_exhaustive()
    }
}

impl Process {
    fn new(connection: Connection, target: Target, from: [u64; 2], known: Exit) -> Self {
        let stop = CancellationToken::new();
        Self(Arc::new(Inner {
            connection,
            target: Arc::new(target),
            from,
            read: from.map(AtomicU64::new),
            exit: ExitWatch::new(known),
            tally: Tally::new(),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
        }))
    }

    /// The service's id of the execution.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.target.id
    }

    /// A new reader, from the handle's offsets on.
    #[must_use]
    pub fn read(&self, which: Which) -> OutputReader {
        OutputReader::new(Arc::clone(&self.0), which)
    }

    /// How far readers of this handle came, for [`OpenProcessRequest`].
    #[must_use]
    pub fn offsets(&self) -> [u64; 2] {
        [&self.0.read[0], &self.0.read[1]].map(|read| read.load(Ordering::Relaxed))
    }

    /// Waits for the end, then at most 10 s for the streams that are being read.
    ///
    /// `output` says how the readers of this handle fared so far; one that was
    /// cancelled or is yet to be made does not count.
    ///
    /// # Errors
    /// `CANCELLED`, `CLOSED`; `NOT_FOUND` where the process is gone;
    /// `UNAVAILABLE` after a minute in which the service was out of reach;
    /// `PROTOCOL` for an end without exit code; where the command could not be
    /// started, the reason.
    pub async fn wait(&self, call: &Call) -> Result<ProcessExit> {
        let inner = &self.0;
        let work = async {
            let mut exit = inner.exit.interest(&inner.connection, &inner.target);
            let ended = exit.ended().await?;
            let output = inner.tally.verdict(ended.at + MAX_TAIL).await;
            Ok(ProcessExit {
                exit_code: ended.code,
                output,
            })
        };
        self.until_stopped(call, "process_wait", work).await
    }

    /// Asks the service whether it runs.
    ///
    /// # Errors
    /// As any read; `NOT_FOUND` where the process is gone.
    pub async fn status(&self, call: &Call) -> Result<ProcessStatus> {
        let inner = &self.0;
        let work = async {
            let view = view(&inner.connection, &inner.target, "process_status", call).await?;
            let ended = ended(&view, &inner.target)?;
            Ok(ProcessStatus {
                state: if ended.is_some() { "exited" } else { "running" },
                exit_code: ended.map(|ended| ended.code),
            })
        };
        self.until_stopped(call, "process_status", work).await
    }

    /// Kills the process group with SIGKILL, once. An execution that has ended
    /// is no error (certain: the service answers such a kill with 200).
    ///
    /// # Errors
    /// What the service refuses the kill with; `OUTCOME_UNKNOWN` where its
    /// answer is lost; `CANCELLED`.
    pub async fn kill(&self, call: &Call) -> Result<()> {
        self.send_kill("process_kill", call).await.map_err(|error| {
            if error.code() != Code::OutcomeUnknown {
                return error;
            }
            error.with_outcome(|outcome| {
                outcome.process_id = Some(self.0.target.id.clone());
                outcome.killed = Some(Killed::Unknown);
            })
        })
    }

    async fn send_kill(&self, operation: &'static str, call: &Call) -> Result<()> {
        let Inner {
            connection, target, ..
        } = &*self.0;
        let request = executions::kill_group(&target.sandbox_id, &target.id)?;
        let context = connection
            .context(operation, &request)
            .about("process", &target.id);
        connection
            .submit(request.clone(), &context, call)
            .await
            .map(|_| ())
    }

    /// As [`kill`](Self::kill), and waits until the service reports the end.
    ///
    /// A kill whose answer is lost is observed: an end that comes is an end.
    ///
    /// # Errors
    /// What the service refuses the kill with; `OUTCOME_UNKNOWN` where no end
    /// is reported within `timeouts.stopSeconds`, or asking for it is refused; `CANCELLED`.
    pub async fn terminate(&self, call: &Call) -> Result<ProcessExit> {
        const OPERATION: &str = "process_terminate";
        let Inner {
            connection, target, ..
        } = &*self.0;
        let lost = match self.send_kill(OPERATION, call).await {
            Ok(()) => None,
            Err(error) if error.code() == Code::OutcomeUnknown => Some(error),
            Err(error) => return Err(error),
        };
        let limit = connection.config().timeouts.stop;
        let sent = |error: Error| error.with_outcome(|outcome| outcome.submitted = Some(true));
        let unknown = |error: Error| {
            sent(error).with_outcome(|outcome| {
                outcome.process_id = Some(target.id.clone());
                outcome.killed = Some(Killed::Unknown);
            })
        };
        let unseen = |message: String| {
            Error::new(Code::OutcomeUnknown, message)
                .during(OPERATION)
                .with_resource("process", &target.id)
        };
        match tokio::time::timeout(limit, self.wait(call)).await {
            Ok(Err(error)) if is_unread(&error) => {
                let message = format!("the kill was taken and the end is not known: {error}");
                Err(unknown(lost.unwrap_or_else(|| unseen(message))))
            }
            Ok(exit) => exit.map_err(|error| sent(error.during(OPERATION))),
            Err(_) => {
                let seconds = limit.as_secs_f64();
                let message = format!("no end of the process was reported within {seconds} s");
                Err(unknown(lost.unwrap_or_else(|| unseen(message))))
            }
        }
    }

    /// Stops everything of ours, pending calls included; the process goes on.
    pub fn detach(&self) {
        self.0.stop.cancel();
    }

    /// Runs until it is done, the caller's signal, a detach or the end of the connection.
    async fn until_stopped<T>(
        &self,
        call: &Call,
        operation: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let detached = async {
            self.0.stop.cancelled().await;
            let message = "the process was detached; reopen it by its reference";
            Err(Error::new(Code::Closed, message).during(operation))
        };
        let work = async {
            tokio::select! {
                biased;
                error = detached => error,
                done = work => done,
            }
        };
        self.0
            .connection
            .until_stopped(call, operation, work)
            .await?
    }
}

/// Whether the end could not be asked for, as opposed to an end that is an error itself.
fn is_unread(error: &Error) -> bool {
    is_passing(error) || (error.status().is_some() && error.code() != Code::NotRunning)
}

/// The service's view of an execution.
async fn view(
    connection: &Connection,
    target: &Target,
    operation: &'static str,
    call: &Call,
) -> Result<Execution> {
    let request = executions::get(&target.sandbox_id, &target.id, 100);
    let context = connection
        .context(operation, &request)
        .about("process", &target.id);
    parse(&connection.read(&request, &context, call).await?, &context)
}

impl Connection {
    /// Reopens a process, which may have ended.
    ///
    /// # Errors
    /// As any read; `NOT_FOUND` where the process is gone.
    pub async fn open_process(&self, request: &OpenProcessRequest, call: &Call) -> Result<Process> {
        let target = Target {
            sandbox_id: request.sandbox_id.clone(),
            id: request.process_id.clone(),
            nonce: None,
            cwd: None,
            mode: OnceLock::new(),
        };
        let view = view(self, &target, "process_get", call).await?;
        let known = ended(&view, &target)?.map_or(Exit::Unknown, Exit::Ended);
        let from = [request.stdout_offset, request.stderr_offset];
        Ok(Process::new(self.clone(), target, from, known))
    }
}
