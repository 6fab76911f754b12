//! `…/logs` and `…/logs/tail`: what happened on a box.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures::{Stream, StreamExt, stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::{Value, json};

use super::Query;
use super::addressed::OfDevbox;
use crate::error::ApiResult;
use crate::faults::Faulted;
use crate::faults::sse::{self, Event};
use crate::state::World;
use crate::state::devboxes::Devbox;
use crate::state::logs::LogFilter;

pub(super) fn router() -> Router<Arc<World>> {
    Router::new()
        .route("/v1/devboxes/{id}/logs", get(lines))
        .route("/v1/devboxes/{id}/logs/tail", get(tail))
}

fn filter(query: &Query) -> LogFilter {
    LogFilter {
        execution_id: query.get("execution_id").map(str::to_owned),
        shell_name: query.get("shell_name").map(str::to_owned),
    }
}

async fn lines(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    query: Query,
) -> ApiResult<Json<Value>> {
    let delay_ms = i64::try_from(world.settings.get().logs_delay_ms).unwrap_or(i64::MAX);
    let until_ms = world.clock.now_ms().saturating_sub(delay_ms);
    Ok(Json(
        json!({ "logs": devbox.log.view(until_ms, &filter(&query)) }),
    ))
}

/// Past lines, then each new one, until the box or the simulator ends. Only in
/// the specification, which does not say what an event holds: one line each.
async fn tail(OfDevbox(devbox): OfDevbox, query: Query, faulted: Faulted) -> ApiResult<Response> {
    let events = events(devbox, filter(&query));
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
    ];
    Ok((headers, sse::body(events, faulted.sse())).into_response())
}

fn events(devbox: Arc<Devbox>, filter: LogFilter) -> impl Stream<Item = Event> {
    let batches = stream::unfold(
        (devbox, filter, 0),
        |(devbox, filter, position)| async move {
            let is_new = tokio::select! {
                // What was written before the end is still told.
                biased;
                () = devbox.log.grown_past(position) => true,
                () = devbox.ended.cancelled() => false,
            };
            let (lines, next) = is_new.then(|| devbox.log.view_from(position, &filter))?;
            Some((stream::iter(lines), (devbox, filter, next)))
        },
    );
    batches.flatten().map(|line| Event {
        name: None,
        data: line.to_string(),
    })
}
