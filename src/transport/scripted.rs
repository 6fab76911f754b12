//! A transport that follows a script, for tests without a server.
//!
//! Answers are given in order, whatever is asked; what was asked is kept.
//! A test that runs out of answers fails with a sentence that names the request.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::Transport;
use crate::message::{Body, Failure, Head, Request, Response, Sent, StreamResponse, What};

/// One scripted answer.
pub(crate) enum Step {
    /// A whole answer.
    Answer(Response),
    /// No answer.
    Fail(Failure),
    /// A pause in (paused) time, then the next step.
    After(Duration, Box<Step>),
    /// Never answers.
    Hang,
    /// Whatever this makes of the request.
    Asked(Box<dyn FnOnce(&Request) -> Step + Send>),
    /// An open stream: a head, then pieces and failures.
    Stream(Head, Vec<Result<Bytes, Failure>>),
}

impl Step {
    /// A JSON answer.
    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::Answer(Response {
            head: Head {
                status,
                content_type: "application/json".into(),
                attempts: 1,
                ..Head::default()
            },
            body: Bytes::copy_from_slice(body.as_bytes()),
        })
    }

    /// The connection broke after the request may have arrived.
    pub(crate) fn reset() -> Self {
        Self::Fail(Failure::new(Sent::Maybe, What::Reset, "connection reset"))
    }

    /// There was no connection.
    pub(crate) fn refused() -> Self {
        Self::Fail(Failure::new(Sent::No, What::Connect, "connection refused"))
    }

    /// An answer that depends on what was asked.
    pub(crate) fn asked(answer: impl FnOnce(&Request) -> Self + Send + 'static) -> Self {
        Self::Asked(Box::new(answer))
    }

    fn about(self, request: &Request) -> Self {
        match self {
            Self::Asked(answer) => answer(request).about(request),
            Self::After(pause, next) => next.about(request).after(pause),
            step => step,
        }
    }

    /// This step after a pause.
    pub(crate) fn after(self, pause: Duration) -> Self {
        Self::After(pause, Box::new(self))
    }
}

/// The transport. Shared as `Arc<Scripted>` between the test and the code under test.
#[derive(Default)]
pub(crate) struct Scripted {
    steps: Mutex<VecDeque<Step>>,
    seen: Mutex<Vec<Request>>,
}

impl Scripted {
    /// A transport with these answers.
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: Mutex::new(steps.into_iter().collect()),
            seen: Mutex::default(),
        }
    }

    /// Forgets what was asked so far.
    pub(crate) fn forget(&self) {
        self.seen.lock().unwrap().clear();
    }

    /// Everything that was asked so far.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// `METHOD path` of everything that was asked so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |request: &Request| format!("{:?} {}", request.method, request.path);
        self.seen.lock().unwrap().iter().map(line).collect()
    }

    /// The JSON body of request number `index`.
    pub(crate) fn json(&self, index: usize) -> serde_json::Value {
        match &self.seen.lock().unwrap()[index].body {
            Body::Json(text) => serde_json::from_slice(text).unwrap(),
            _ => serde_json::Value::Null,
        }
    }

    fn take(&self, request: &Request) -> Step {
        self.seen.lock().unwrap().push(request.clone());
        let step = self.steps.lock().unwrap().pop_front();
        let step = step.unwrap_or_else(|| panic!("the script has no answer for {request:?}"));
        step.about(request)
    }
}

/// Gives the answer, unless the deadline of the request comes first.
async fn settle(step: Step, deadline: Option<Instant>) -> Result<StreamResponse, Failure> {
    let Some(deadline) = deadline else {
        return play(step).await;
    };
    let overdue = |_| Failure::new(Sent::Maybe, What::Timeout, "the deadline came first");
    tokio::time::timeout_at(deadline, play(step))
        .await
        .map_err(overdue)?
}

async fn play(mut step: Step) -> Result<StreamResponse, Failure> {
    loop {
        match step {
            Step::After(pause, next) => {
                tokio::time::sleep(pause).await;
                step = *next;
            }
            Step::Asked(_) => unreachable!("an answer was made of it when it was taken"),
            Step::Hang => return futures::future::pending().await,
            Step::Fail(failure) => return Err(failure),
            Step::Answer(Response { head, body }) => {
                let body = futures::stream::iter([Ok(body)]).boxed();
                return Ok(StreamResponse { head, body });
            }
            Step::Stream(head, pieces) => {
                return Ok(StreamResponse {
                    head,
                    body: futures::stream::iter(pieces).boxed(),
                });
            }
        }
    }
}

impl Transport for Scripted {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, Failure>> {
        async move {
            settle(self.take(request), request.deadline)
                .await?
                .collect(request.max_body_bytes)
                .await
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<StreamResponse, Failure>> {
        async move { settle(self.take(request), request.deadline).await }.boxed()
    }
}
