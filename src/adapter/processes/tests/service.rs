//! A service with one execution, in paused time, as hostile as a test wants.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::adapter::{Call, Connection};
use crate::api::executions::Output;
use crate::config::Config;
use crate::message::{Body, Failure, Head, Request, Response, Sent, StreamResponse, What};
use crate::sse::OffsetMode;
use crate::transport::Transport;

/// What becomes of one connection of a stream.
#[derive(Debug, Clone)]
pub(super) enum Behaviour {
    /// It is answered with this status instead, and a `Retry-After`.
    Refused(u16, Option<f64>),
    /// There is no answer.
    Reset,
    /// After so many chunks, a clean end.
    CutClean(usize),
    /// After so many chunks and half of another, a broken connection.
    Broken(usize),
    /// After so many chunks, an error event.
    ErrorEvent(usize, u16),
    /// It is never closed.
    StaysOpen,
    /// It is closed so long after the exit, and the last chunk comes then.
    LateTail(Duration),
    /// Answers with these bytes.
    Raw(&'static str),
}

/// The execution and the behaviour of its streams.
pub(super) struct Service {
    pub(super) started: Instant,
    pub(super) mode: OffsetMode,
    /// When each chunk is written.
    pub(super) writes: Vec<(Duration, Output, String)>,
    pub(super) exit: watch::Sender<Option<(Instant, i32)>>,
    /// The view of the ended execution shows only what was written by then, and
    /// it ends before its output does.
    pub(super) view_is_early: bool,
    /// Silence after which a stream ends with a 408 event.
    pub(super) idle: Duration,
    pub(super) execution_id: Option<String>,
    pub(super) script: Mutex<VecDeque<Behaviour>>,
    pub(super) replies: Mutex<VecDeque<(&'static str, Response)>>,
    /// `METHOD path` of every request.
    pub(super) journal: Mutex<Vec<String>>,
    pub(super) open_streams: Arc<()>,
    pub(super) command_id: Mutex<Option<String>>,
    /// What the wrapper says of a command that it did not start.
    pub(super) refusal: Option<&'static str>,
    command: Mutex<String>,
}

impl Service {
    pub(super) fn new(writes: Vec<(Duration, Output, String)>) -> Self {
        Self {
            started: Instant::now(),
            mode: OffsetMode::End,
            writes,
            exit: watch::Sender::new(None),
            view_is_early: false,
            idle: Duration::from_secs(25),
            execution_id: Some("exec_1".into()),
            script: Mutex::default(),
            replies: Mutex::default(),
            journal: Mutex::default(),
            open_streams: Arc::default(),
            command_id: Mutex::default(),
            refusal: None,
            command: Mutex::default(),
        }
    }

    pub(super) fn exits(self, after: Duration, code: i32) -> Self {
        self.exit.send_replace(Some((self.started + after, code)));
        self
    }

    pub(super) fn behaves(self, script: impl IntoIterator<Item = Behaviour>) -> Self {
        self.script.lock().unwrap().extend(script);
        self
    }

    /// This answer to the next request whose path ends so.
    pub(super) fn answers(
        self,
        path_end: &'static str,
        status: u16,
        body: serde_json::Value,
    ) -> Self {
        self.replies
            .lock()
            .unwrap()
            .push_back((path_end, answer(status, &body)));
        self
    }

    pub(super) async fn connect(self) -> (Connection, Arc<Self>) {
        let service = Arc::new(self);
        let config =
            Config::parse(&json!({ "apiKey": "ak_0123456789abcdef" }), &json!({})).unwrap();
        let connection = Connection::over(service.clone(), config, &Call::default())
            .await
            .unwrap();
        service.journal.lock().unwrap().clear();
        (connection, service)
    }

    pub(super) fn requests(&self, part: &str) -> Vec<String> {
        let journal = self.journal.lock().unwrap();
        journal
            .iter()
            .filter(|line| line.contains(part))
            .cloned()
            .collect()
    }

    /// Streams whose body somebody holds.
    pub(super) fn open_streams(&self) -> usize {
        Arc::strong_count(&self.open_streams) - 1
    }

    fn view(&self, is_known: bool) -> Response {
        if !is_known {
            return answer(404, &json!({ "message": "no such execution" }));
        }
        let id = self.execution_id.clone();
        let id = id.or_else(|| self.command_id.lock().unwrap().clone());
        match *self.exit.borrow() {
            Some((at, code)) if at <= Instant::now() => answer(
                200,
                &json!({
                    "execution_id": id, "status": "completed", "exit_status": code,
                    "stdout": self.written(Output::Stdout),
                    "stderr": self.refusal.map_or_else(
                        || self.written(Output::Stderr),
                        |refusal| self.record(refusal),
                    ),
                }),
            ),
            _ => answer(200, &json!({ "execution_id": id, "status": "running" })),
        }
    }

    fn written(&self, output: Output) -> String {
        let is_there = |at: Duration| !self.view_is_early || self.started + at <= Instant::now();
        let written = self.writes.iter();
        written
            .filter(|(at, to, _)| *to == output && is_there(*at))
            .map(|(_, _, text)| text.as_str())
            .collect()
    }

    /// The record of a refusal, with the nonce that stands in the command.
    fn record(&self, refusal: &str) -> String {
        let command = self.command.lock().unwrap();
        let mut words = command.split(|character: char| !character.is_ascii_hexdigit());
        let nonce = words.find(|word| word.len() == 32).unwrap();
        format!("hello\nbeachside:{nonce}:refused:{refusal}:end:{nonce}\n")
    }

    async fn reply(&self, request: &Request) -> Response {
        let path = request.path.split('?').next().unwrap();
        let mut optimistic = Duration::ZERO;
        if path.ends_with("/execute") {
            let Body::Json(body) = &request.body else {
                unreachable!()
            };
            let body: serde_json::Value = serde_json::from_slice(body).unwrap();
            *self.command_id.lock().unwrap() = body["command_id"].as_str().map(str::to_owned);
            *self.command.lock().unwrap() = body["command"].as_str().unwrap().to_owned();
            optimistic = Duration::from_secs(body["optimistic_timeout"].as_u64().unwrap());
        }
        {
            let mut replies = self.replies.lock().unwrap();
            if let Some(found) = replies.iter().position(|(end, _)| path.ends_with(end)) {
                return replies.remove(found).unwrap().1;
            }
        }
        let known_id = self
            .execution_id
            .clone()
            .or_else(|| self.command_id.lock().unwrap().clone());
        let is_known = known_id.is_some_and(|id| path.contains(&id));
        if path.ends_with("/me") {
            let account = json!({ "id": "acct_1", "account_status": "ACCOUNT_STATUS_ENABLED" });
            return answer(200, &account);
        }
        if path.ends_with("/execute") {
            let _ = tokio::time::timeout(optimistic, ended(&self.exit)).await;
            return self.view(true);
        }
        if path.ends_with("/wait_for_status") {
            return match tokio::time::timeout(Duration::from_secs(25), ended(&self.exit)).await {
                Ok(()) => self.view(is_known),
                Err(_) => answer(408, &json!({ "message": "still running" })),
            };
        }
        if path.ends_with("/kill") {
            self.exit
                .send_replace(Some((Instant::now() + Duration::from_secs(1), 137)));
        }
        self.view(is_known)
    }

    fn chunks(&self, output: Output, offset: u64) -> VecDeque<(Instant, String, usize)> {
        let mut end = 0;
        let written = self.writes.iter().filter(|(_, to, _)| *to == output);
        written
            .filter_map(|(at, _, text)| {
                let start = end;
                end += text.len();
                if end as u64 <= offset {
                    return None;
                }
                let cut = (offset as usize).saturating_sub(start);
                let shown = match self.mode {
                    OffsetMode::Start => start + cut,
                    OffsetMode::End => end,
                };
                let json = serde_json::to_string(&text[cut..]).unwrap();
                let event = format!("data: {{\"output\":{json},\"offset\":{shown}}}\n\n");
                Some((self.started + *at, event, text.len() - cut))
            })
            .collect()
    }
}

async fn ended(exit: &watch::Sender<Option<(Instant, i32)>>) {
    let mut exit = exit.subscribe();
    loop {
        let at = exit.borrow_and_update().map(|(at, _)| at);
        let over = async {
            match at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => return,
            changed = exit.changed() => changed.unwrap(),
        }
    }
}

fn answer(status: u16, body: &serde_json::Value) -> Response {
    let head = Head {
        status,
        content_type: "application/json".into(),
        attempts: 1,
        ..Head::default()
    };
    Response {
        head,
        body: body.to_string().into(),
    }
}

fn reset() -> Failure {
    Failure::new(Sent::Maybe, What::Reset, "connection reset")
}

/// The pieces of one stream's body.
struct Pieces {
    exit: watch::Sender<Option<(Instant, i32)>>,
    idle: Duration,
    chunks: VecDeque<(Instant, String, usize)>,
    behaviour: Option<Behaviour>,
    sent: usize,
    is_over: bool,
    _open: Arc<()>,
}

impl Pieces {
    async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        if self.is_over {
            return None;
        }
        match self.behaviour {
            Some(Behaviour::CutClean(count)) if self.sent >= count => return None,
            Some(Behaviour::Broken(count)) if self.sent >= count => {
                self.is_over = true;
                let half = self.chunks.front().map(|(_, event, _)| event.len() / 2);
                return match half {
                    Some(half) if self.sent == count => {
                        self.is_over = false;
                        self.sent += 1;
                        let (_, event, _) = self.chunks.pop_front()?;
                        Some(Ok(Bytes::from(event.into_bytes()).slice(..half)))
                    }
                    _ => Some(Err(reset())),
                };
            }
            Some(Behaviour::ErrorEvent(count, code)) if self.sent >= count => {
                self.is_over = true;
                let data = json!({ "code": code.to_string(), "message": "as scripted" });
                return Some(Ok(format!("event: error\ndata: {data}\n\n").into()));
            }
            Some(Behaviour::Raw(text)) => {
                self.is_over = true;
                return Some(Ok(Bytes::from_static(text.as_bytes())));
            }
            _ => {}
        }
        let idle = Instant::now() + self.idle;
        if let Some(Behaviour::LateTail(late)) = self.behaviour
            && self.chunks.len() == 1
        {
            ended(&self.exit).await;
            tokio::time::sleep(late).await;
            return self
                .chunks
                .pop_front()
                .map(|(_, event, _)| Ok(event.into()));
        }
        if let Some((at, _, _)) = self.chunks.front() {
            let at = *at;
            if at <= idle {
                sleep_until(at).await;
                self.sent += 1;
                return self
                    .chunks
                    .pop_front()
                    .map(|(_, event, _)| Ok(event.into()));
            }
        } else if matches!(self.behaviour, Some(Behaviour::StaysOpen)) {
            return std::future::pending().await;
        } else if tokio::time::timeout_at(idle, ended(&self.exit))
            .await
            .is_ok()
        {
            return None;
        }
        sleep_until(idle).await;
        self.is_over = true;
        Some(Ok(
            "event: error\ndata: {\"code\":\"408\",\"message\":\"idle\"}\n\n".into(),
        ))
    }
}

/// The transport over a shared service.
impl Transport for Service {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, Failure>> {
        self.journal
            .lock()
            .unwrap()
            .push(format!("{:?} {}", request.method, request.path));
        async move { Ok(self.reply(request).await) }.boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<StreamResponse, Failure>> {
        self.journal
            .lock()
            .unwrap()
            .push(format!("{:?} {}", request.method, request.path));
        let (path, offset) = request.path.split_once("?offset=").unwrap();
        let output = if path.ends_with("stdout_updates") {
            Output::Stdout
        } else {
            Output::Stderr
        };
        let behaviour = self.script.lock().unwrap().pop_front();
        let chunks = self.chunks(output, offset.parse().unwrap());
        async move {
            let mut head = Head {
                status: 200,
                attempts: 1,
                ..Head::default()
            };
            match behaviour {
                Some(Behaviour::Reset) => return Err(reset()),
                Some(Behaviour::Refused(status, retry_after_seconds)) => {
                    head.status = status;
                    head.retry_after_seconds = retry_after_seconds;
                    let body = futures::stream::empty().boxed();
                    return Ok(StreamResponse { head, body });
                }
                _ => {}
            }
            let body = Pieces {
                exit: self.exit.clone(),
                idle: self.idle,
                chunks,
                behaviour,
                sent: 0,
                is_over: false,
                _open: Arc::clone(&self.open_streams),
            };
            let body = futures::stream::unfold(body, |mut body| async {
                let piece = body.next().await?;
                Some((piece, body))
            });
            Ok(StreamResponse {
                head,
                body: body.boxed(),
            })
        }
        .boxed()
    }
}
