//! The task that reads one output stream of a process to its end.
//!
//! It opens the stream, hands text to a buffer, and opens it again wherever it
//! left off. The end of a connection is not the end of the stream: that is a
//! connection which was opened after the exit and closed in order with nothing
//! new, while the text ends as a report of the ended execution does. What is not
//! closed 10 s after the exit is given up as incomplete.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::time::Instant;

use super::buffer::Buffer;
use super::exit::{Exit, Interested, MAX_OUTAGE, ended, is_passing};
use super::tail::Received;
use super::tally::Counted;
use super::{Target, view};
use crate::adapter::{Call, Connection};
use crate::api::answer::refusal;
use crate::api::executions::{self, Output};
use crate::error::{Code, Error, Result};
use crate::message::{Head, Response, StreamResponse};
use crate::observe::{Event, now_ms};
use crate::sse::{OutputDecoder, ServiceError, StreamError};

/// How long after the exit, or after the last thing that happened, a stream may
/// take to close.
pub(super) const MAX_TAIL: Duration = Duration::from_secs(10);

/// Longest pause before a stream is opened again.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The longest pause once the exit is known: the tail is owed within
/// [`MAX_TAIL`], which a few long pauses would use up.
const MAX_TAIL_PAUSE: Duration = Duration::from_millis(500);

/// A connection that lived this long was no failure, even if it gave nothing.
const LONG_LIVED: Duration = Duration::from_secs(1);

/// A stream and where it goes.
pub(super) struct Follow {
    pub(super) connection: Connection,
    pub(super) target: Arc<Target>,
    pub(super) output: Output,
    pub(super) decoder: OutputDecoder,
    pub(super) buffer: Arc<Buffer>,
    pub(super) exit: Interested,
    pub(super) counted: Counted,
    pub(super) progress: Progress,
    pub(super) received: Received,
}

/// Since when nothing happened, and how often in a row.
pub(super) struct Progress {
    last: Instant,
    /// Connections in a row that were short and gave nothing.
    fruitless: u32,
    /// When the service got out of reach.
    outage: Option<Instant>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            last: Instant::now(),
            fruitless: 0,
            outage: None,
        }
    }
}

/// How a connection ended.
enum Ending {
    /// In order.
    Closed,
    /// Broken, or idle too long: says nothing.
    Lost,
    /// The service has trouble; the pause that it asks for.
    Trouble(Error, Option<f64>),
    /// 10 s after the exit it was still open.
    TailOverdue,
}

impl Ending {
    fn word(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Lost => "lost",
            Self::Trouble(..) => "trouble",
            Self::TailOverdue => "overdue",
        }
    }
}

impl Follow {
    /// Reads to the end, and tells the buffer and the tally how that was.
    pub(super) async fn run(mut self) {
        let mut text = String::new();
        let result = self.read_all(&mut text).await;
        self.decoder.finish(&mut text);
        self.buffer
            .push(self.output, &mut text, self.decoder.position());
        if !matches!(result, Ok(true)) || self.decoder.doubt().is_some() {
            self.counted.is_incomplete();
        }
        self.target.learn(self.decoder.mode());
        // Counted out first: whoever sees the end and asks gets this verdict.
        drop(self.counted);
        self.buffer.end(result.err());
    }

    /// True where the stream came to its end.
    async fn read_all(&mut self, text: &mut String) -> Result<bool> {
        let mut reason = None;
        loop {
            let offset = self.decoder.reopen();
            if let Some(reason) = reason {
                self.tell_reconnect(offset, reason);
            }
            let was_over = self.is_over();
            let opened = Instant::now();
            let chunks = self.decoder.chunks();
            let (ending, is_fruitful) = self.read_connection(offset, text).await?;
            let deserves_another = is_fruitful || opened.elapsed() >= LONG_LIVED;
            // What was sent again is no progress, but the service is there.
            if deserves_another || self.decoder.chunks() > chunks {
                self.progress.fruitless = 0;
            }
            reason = Some(ending.word());
            let may_be_all = was_over && !is_fruitful && matches!(ending, Ending::Closed);
            if may_be_all && self.is_whole().await? {
                return Ok(true);
            }
            let goes_on = match ending {
                Ending::TailOverdue => return Ok(false),
                Ending::Trouble(error, asked) => {
                    let since = *self.progress.outage.get_or_insert(opened);
                    if since.elapsed() >= MAX_OUTAGE {
                        return Err(error);
                    }
                    self.pause(asked).await?
                }
                // Most often the execution has ended: the exit will tell in a moment.
                Ending::Closed if !self.is_over() => self.pause(None).await?,
                Ending::Closed | Ending::Lost if deserves_another => true,
                Ending::Closed | Ending::Lost => self.pause(None).await?,
            };
            if !goes_on {
                return Ok(false);
            }
        }
    }

    fn tell_reconnect(&self, offset: u64, reason: &str) {
        let Some(observer) = self.connection.observer() else {
            return;
        };
        observer.observe(&Event::Reconnect {
            time: now_ms(),
            operation: "process_read",
            sandbox_id: &self.target.sandbox_id,
            process_id: &self.target.id,
            stream: match self.output {
                Output::Stdout => "stdout",
                Output::Stderr => "stderr",
            },
            offset,
            reason,
        });
    }

    /// Whether the text can be all, as far as the service tells. The report of
    /// the exit may be older than the last output, so where the text does not
    /// end as it does, a newer one is asked for.
    async fn is_whole(&mut self) -> Result<bool> {
        if self.ends_as_reported() {
            return Ok(true);
        }
        let (connection, target) = (self.connection.clone(), Arc::clone(&self.target));
        let call = Call::default();
        let newer = view(&connection, &target, "process_read", &call);
        // Whatever this fails with, the next connection meets as well.
        let Some(Ok(newer)) = self.in_time(newer).await? else {
            return Ok(false);
        };
        let Ok(Some(newer)) = ended(&newer, &target) else {
            return Ok(false);
        };
        Ok(newer
            .tail(self.output)
            .is_some_and(|tail| tail.ends(&self.received)))
    }

    /// Whether the text can be all, as far as the report of the exit tells.
    fn ends_as_reported(&self) -> bool {
        match self.exit.now() {
            Exit::Ended(ended) => ended
                .tail(self.output)
                .is_none_or(|tail| tail.ends(&self.received)),
            _ => false,
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.exit.now(), Exit::Ended(_))
    }

    /// Reads one connection; says how it ended and whether it gave new text.
    async fn read_connection(&mut self, offset: u64, text: &mut String) -> Result<(Ending, bool)> {
        let mut stream = match self.open(offset).await? {
            Ok(stream) => stream,
            Err(ending) => return Ok((ending, false)),
        };
        let mut is_fruitful = false;
        loop {
            let Some(next) = self.in_time(stream.body.next()).await? else {
                return Ok((Ending::TailOverdue, is_fruitful));
            };
            let piece = match next {
                None => return Ok((Ending::Closed, is_fruitful)),
                Some(Err(_)) => return Ok((Ending::Lost, is_fruitful)),
                Some(Ok(piece)) => piece,
            };
            let fed = self.decoder.feed(&piece, text);
            if !text.is_empty() {
                is_fruitful = true;
                self.progress.fruitless = 0;
                self.progress.outage = None;
                self.received.push(text);
                self.buffer.push(self.output, text, self.decoder.position());
                self.buffer.room(self.output).await;
                self.progress.last = Instant::now();
            }
            match fed {
                Ok(()) => {}
                Err(StreamError::Service(told)) => {
                    return Ok((self.told(told)?, is_fruitful));
                }
                Err(error @ (StreamError::Limit(_) | StreamError::NotAChunk)) => {
                    return Err(self.error(Code::Protocol, error.to_string()));
                }
            }
        }
    }

    /// Opens a connection; the outer error is for good.
    async fn open(&mut self, offset: u64) -> Result<std::result::Result<StreamResponse, Ending>> {
        let target = Arc::clone(&self.target);
        let request = executions::stream(&target.sandbox_id, &target.id, self.output, offset);
        let connection = self.connection.clone();
        let context = connection
            .context("process_read", &request)
            .about("process", &target.id);
        let call = Call::default();
        let opening = connection.open_stream(&request, &context, &call);
        let Some(answer) = self.in_time(opening).await? else {
            return Ok(Err(Ending::TailOverdue));
        };
        match answer {
            Ok(stream) => {
                self.progress.outage = None;
                Ok(Ok(stream))
            }
            Err(error) if error.status() == Some(408) => Ok(Err(Ending::Lost)),
            Err(error) if is_passing(&error) => {
                let asked = error.retry_after_seconds();
                Ok(Err(Ending::Trouble(error, asked)))
            }
            Err(error) => Err(error),
        }
    }

    /// What an error event means: the same as that status of an answer.
    fn told(&self, told: ServiceError) -> Result<Ending> {
        let ServiceError { code, message } = told;
        if code == Some(408) {
            return Ok(Ending::Lost);
        }
        let request = executions::stream(&self.target.sandbox_id, &self.target.id, self.output, 0);
        let context = self
            .connection
            .context("process_read", &request)
            .about("process", &self.target.id);
        let body = serde_json::json!({ "message": message }).to_string();
        let response = Response {
            head: Head {
                // An error without a usable code is trouble of the service's own.
                status: code.filter(|code| (400..600).contains(code)).unwrap_or(500),
                attempts: 1,
                ..Head::default()
            },
            body: body.into(),
        };
        let error = refusal(&response, &context);
        if is_passing(&error) {
            Ok(Ending::Trouble(error, None))
        } else {
            Err(error)
        }
    }

    /// Waits before the next connection, longer each time in a row, but no
    /// longer than until the exit is known, unless the service asked for it.
    /// False where the tail is overdue.
    async fn pause(&mut self, asked: Option<f64>) -> Result<bool> {
        let step = Duration::from_millis(50) * 2_u32.pow(self.progress.fruitless.min(8));
        self.progress.fruitless += 1;
        let asked = asked.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if let Some(asked) = asked {
            let pause = tokio::time::sleep(asked.min(MAX_OUTAGE));
            return Ok(self.in_time(pause).await?.is_some());
        }
        let mut exit = self.exit.another();
        let was_over = matches!(exit.now(), Exit::Ended(_));
        let longest = if was_over { MAX_TAIL_PAUSE } else { MAX_PAUSE };
        let pause = async {
            let step = tokio::time::sleep(step.min(longest));
            tokio::select! {
                () = step => {}
                _ = exit.ended(), if !was_over => {}
            }
        };
        Ok(self.in_time(pause).await?.is_some())
    }

    /// Runs until it is done; `None` where 10 s have passed since the exit, or
    /// since the last thing that happened after it.
    async fn in_time<T>(&mut self, work: impl Future<Output = T>) -> Result<Option<T>> {
        tokio::pin!(work);
        loop {
            let overdue = match self.exit.now() {
                Exit::Failed(error) => return Err(error),
                Exit::Ended(ended) => Some(ended.at.max(self.progress.last) + MAX_TAIL),
                Exit::Unknown => None,
            };
            let overdue = async {
                match overdue {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                done = &mut work => return Ok(Some(done)),
                () = overdue => return Ok(None),
                () = self.exit.changed() => {}
            }
        }
    }

    fn error(&self, code: Code, message: String) -> Error {
        Error::new(code, message)
            .during("process_read")
            .with_resource("process", &self.target.id)
    }
}

/// What stops a reading task from outside.
pub(super) async fn until_stopped(
    follow: Follow,
    connection: Connection,
    stop: tokio_util::sync::CancellationToken,
) {
    let buffer = Arc::clone(&follow.buffer);
    let stopped = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        () = connection.closed().cancelled() => connection.stopped(&Call::default(), "process_read"),
        () = follow.run() => return,
    };
    buffer.end(stopped);
}
