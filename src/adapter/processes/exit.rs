//! Watches for the end of an execution by long polls, while somebody asks.
//!
//! However many wait, there is one poll. With nobody waiting there is none.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::Target;
use super::buffer::slot;
use super::start::check_start_failure;
use super::tail::Tail;
use crate::adapter::execution::is_completed;
use crate::adapter::poll::Pace;
use crate::adapter::{Call, Connection};
use crate::api::answer::parse;
use crate::api::executions::{self, Output};
use crate::error::{Code, Error, Result};
use crate::wire::executions::Execution;

/// How long the service may be out of reach before a wait gives up.
pub(super) const MAX_OUTAGE: Duration = Duration::from_secs(60);

/// What is known of the end.
#[derive(Debug, Clone)]
pub(super) enum Exit {
    Unknown,
    Ended(Ended),
    /// It cannot be found out.
    Failed(Error),
}

/// The end.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) code: i32,
    /// When it was reported.
    pub(super) at: Instant,
    tails: [Option<Tail>; 2],
}

impl Ended {
    /// How the stream ends, where the report shows it.
    pub(super) fn tail(&self, output: Output) -> Option<&Tail> {
        self.tails.get(slot(output))?.as_ref()
    }
}

/// The one watch of a process.
#[derive(Debug)]
pub(super) struct ExitWatch {
    state: watch::Sender<Exit>,
    interest: Mutex<Interest>,
}

#[derive(Debug, Default)]
struct Interest {
    count: usize,
    task: Option<AbortHandle>,
}

/// Keeps the watch going.
#[derive(Debug)]
pub(super) struct Interested {
    watch: Arc<ExitWatch>,
    exit: watch::Receiver<Exit>,
}

impl ExitWatch {
    pub(super) fn new(known: Exit) -> Arc<Self> {
        Arc::new(Self {
            state: watch::Sender::new(known),
            interest: Mutex::default(),
        })
    }

    /// Asks for the end of the execution. A watch that failed is tried anew.
    pub(super) fn interest(
        self: &Arc<Self>,
        connection: &Connection,
        target: &Arc<Target>,
    ) -> Interested {
        let mut interest = self.interest.lock().unwrap_or_else(PoisonError::into_inner);
        interest.count += 1;
        let is_known = matches!(*self.state.borrow(), Exit::Ended(_));
        let is_watched = interest
            .task
            .as_ref()
            .is_some_and(|task| !task.is_finished());
        if !is_known && !is_watched {
            self.state.send_modify(|state| {
                if matches!(state, Exit::Failed(_)) {
                    *state = Exit::Unknown;
                }
            });
            let (connection, target) = (connection.clone(), Arc::clone(target));
            let state = self.state.clone();
            let task = tokio::spawn(async move {
                let found = match watch(&connection, &target).await {
                    Ok(ended) => Exit::Ended(ended),
                    Err(error) => Exit::Failed(error),
                };
                state.send_replace(found);
            });
            interest.task = Some(task.abort_handle());
        }
        Interested {
            watch: Arc::clone(self),
            exit: self.state.subscribe(),
        }
    }
}

impl Interested {
    /// What is known now.
    pub(super) fn now(&self) -> Exit {
        self.exit.borrow().clone()
    }

    /// A second view of the same, which keeps nothing going by itself.
    pub(super) fn another(&self) -> Known {
        Known(self.exit.clone())
    }

    /// Waits until what is known changes.
    pub(super) async fn changed(&mut self) {
        if self.exit.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until something is known.
    pub(super) async fn ended(&mut self) -> Result<Ended> {
        Known(self.exit.clone()).ended().await
    }
}

/// A view of what is known.
#[derive(Debug, Clone)]
pub(super) struct Known(watch::Receiver<Exit>);

impl Known {
    /// What is known now.
    pub(super) fn now(&self) -> Exit {
        self.0.borrow().clone()
    }

    /// Waits until something is known.
    pub(super) async fn ended(&mut self) -> Result<Ended> {
        let known = self.0.wait_for(|exit| !matches!(exit, Exit::Unknown)).await;
        match known.as_deref() {
            Ok(Exit::Ended(ended)) => Ok(ended.clone()),
            Ok(Exit::Failed(error)) => Err(error.clone()),
            Ok(Exit::Unknown) | Err(_) => {
                Err(Error::internal("the watch of a process ended early").during("process_wait"))
            }
        }
    }
}

impl Drop for Interested {
    fn drop(&mut self) {
        let mut interest = self
            .watch
            .interest
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        interest.count -= 1;
        if interest.count == 0
            && let Some(task) = interest.task.take()
        {
            task.abort();
        }
    }
}

/// Polls until the execution is completed.
async fn watch(connection: &Connection, target: &Target) -> Result<Ended> {
    let operation = "process_wait";
    let mut pace = Pace::new();
    let mut outage: Option<Instant> = None;
    loop {
        let request =
            executions::wait_for_end(&target.sandbox_id, &target.id, executions::MAX_HOLD_SECONDS)?;
        let context = connection
            .context(operation, &request)
            .about("process", &target.id);
        match connection
            .poll(&request, &context, &mut pace, &Call::default())
            .await
        {
            Ok(Some(answer)) => {
                outage = None;
                let view: Execution = parse(&answer, &context)?;
                if let Some(ended) = ended(&view, target)? {
                    return Ok(ended);
                }
                pace.breathe(Instant::now() + Duration::from_secs(60)).await;
            }
            Ok(None) => outage = None,
            Err(error) if is_passing(&error) => {
                let since = *outage.get_or_insert_with(Instant::now);
                if since.elapsed() >= MAX_OUTAGE {
                    return Err(error);
                }
                pace = Pace::new();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether asking again may help.
pub(super) fn is_passing(error: &Error) -> bool {
    matches!(error.code(), Code::Unavailable | Code::RateLimited)
}

/// The end that a view reports.
///
/// # Errors
/// `PROTOCOL` for an end without an exit code, which is never taken for 0; the
/// reason where the command was never started.
pub(super) fn ended(view: &Execution, target: &Target) -> Result<Option<Ended>> {
    if !is_completed(view) {
        return Ok(None);
    }
    let code = view
        .exit_status
        .and_then(|code| i32::try_from(code).ok())
        .ok_or_else(|| {
            Error::protocol("Runloop reports an execution as completed without its exit code")
                .during("process_wait")
                .with_resource("process", &target.id)
        })?;
    check_start_failure(view, code, target)?;
    Ok(Some(Ended {
        code,
        at: Instant::now(),
        tails: [view.stdout.as_ref(), view.stderr.as_ref()].map(Tail::of),
    }))
}
