//! `…/stream_stdout_updates` and `…/stream_stderr_updates`.
//!
//! A stream replays an output from the asked offset, follows it and ends
//! cleanly with it; it can be opened again after the end. One that has nothing
//! to tell for a while ends with a 408 error event.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::json;
use tokio::sync::watch;

use super::Query;
use super::addressed::OfExecution;
use crate::error::ApiResult;
use crate::faults::Faulted;
use crate::faults::sse::{self, Event, LateTail};
use crate::state::World;
use crate::state::executions::{ExecutionStatus, Output};
use crate::state::follow::Follower;

pub(super) fn router() -> Router<Arc<World>> {
    let route = "/v1/devboxes/{id}/executions/{execution_id}";
    Router::new()
        .route(&format!("{route}/stream_stdout_updates"), get(stdout))
        .route(&format!("{route}/stream_stderr_updates"), get(stderr))
}

async fn stdout(
    world: State<Arc<World>>,
    of: OfExecution,
    query: Query,
    faulted: Faulted,
) -> ApiResult<Response> {
    stream(Output::Stdout, world, of, &query, &faulted)
}

async fn stderr(
    world: State<Arc<World>>,
    of: OfExecution,
    query: Query,
    faulted: Faulted,
) -> ApiResult<Response> {
    stream(Output::Stderr, world, of, &query, &faulted)
}

fn stream(
    output: Output,
    State(world): State<Arc<World>>,
    OfExecution { execution, .. }: OfExecution,
    query: &Query,
    faulted: &Faulted,
) -> ApiResult<Response> {
    let settings = world.settings.get();
    let fault = faulted.sse();
    let mut offset = query.number::<u64>("offset")?.unwrap_or(0);
    if let Some(fault) = &fault {
        offset = offset.saturating_sub(fault.overlap_bytes);
        if let Some(window) = fault.window_bytes {
            offset = offset.max(execution.output(output).len().saturating_sub(window));
        }
    }
    let late_tail = fault.as_ref().and_then(|fault| fault.late_tail);
    let idle = Duration::try_from_secs_f64(settings.stream_idle_seconds).unwrap_or(Duration::MAX);
    let status = execution.watch();
    let mut follower = Follower::new(execution, output, offset, settings);
    follower.hold_back(late_tail.map_or(0, |tail| tail.bytes));
    let events = events(Following {
        follower,
        status,
        idle,
        late_tail,
        is_over: false,
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
    ];
    Ok((headers, sse::body(events, fault)).into_response())
}

struct Following {
    follower: Follower,
    status: watch::Receiver<ExecutionStatus>,
    idle: Duration,
    late_tail: Option<LateTail>,
    is_over: bool,
}

fn events(following: Following) -> impl Stream<Item = Event> {
    futures::stream::unfold(following, |mut following| async {
        let event = following.next_event().await?;
        Some((event, following))
    })
}

impl Following {
    async fn next_event(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        let idle_end = tokio::time::sleep(self.idle);
        tokio::pin!(idle_end);
        loop {
            let is_settled = self.follower.is_settled();
            let has_completed = self.status.borrow_and_update().exit_status().is_some();
            match self.follower.next() {
                Ok(Some(chunk)) => {
                    let data = json!({ "output": chunk.text, "offset": chunk.offset });
                    return Some(Event {
                        name: None,
                        data: data.to_string(),
                    });
                }
                Ok(None) if self.follower.is_over() => return None,
                Ok(None) => {}
                Err(error) => return self.end_with("500", &format!("output lost: {error}")),
            }
            if has_completed && let Some(tail) = self.late_tail.take() {
                tokio::time::sleep(Duration::from_millis(tail.milliseconds)).await;
                self.follower.hold_back(0);
                continue;
            }
            tokio::select! {
                () = self.follower.grown(), if self.follower.can_grow() => {}
                () = self.follower.settled(), if !is_settled => {}
                changed = self.status.changed() => if changed.is_err() { return None },
                () = &mut idle_end => return self.end_with("408", "nothing new for a while"),
            }
        }
    }

    fn end_with(&mut self, code: &str, message: &str) -> Option<Event> {
        self.is_over = true;
        let data = json!({ "code": code, "message": message }).to_string();
        Some(Event {
            name: Some("error"),
            data,
        })
    }
}
