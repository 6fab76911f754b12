//! `GET /v1/devboxes/evictions/watch`: notices that boxes will be suspended.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::{Stream, StreamExt, stream};
use http::HeaderMap;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::faults::Faulted;
use crate::faults::sse::{self, Event};
use crate::layers::Caller;
use crate::state::World;
use crate::state::evictions::Eviction;

pub(super) fn router() -> Router<Arc<World>> {
    Router::new().route("/v1/devboxes/evictions/watch", get(watch))
}

/// Certain: without `Accept: text/event-stream` the answer is empty plain text.
async fn watch(
    State(world): State<Arc<World>>,
    caller: Caller,
    faulted: Faulted,
    headers: HeaderMap,
) -> Response {
    let accept = headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if !accept.contains("text/event-stream") {
        return ([(CONTENT_TYPE, "text/plain")], "").into_response();
    }
    let (pending, announced) = world.evictions.watch(&caller.account_id);
    let account_id = caller.account_id.clone();
    let stopping = world.stopping.clone();
    let events = stream::iter(pending)
        .chain(live(announced))
        .filter(move |eviction| {
            let is_mine = eviction.account_id == account_id;
            async move { is_mine }
        })
        .map(|eviction| event(&eviction))
        .take_until(async move { stopping.cancelled().await });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, sse::body(events, faulted.sse())).into_response()
}

/// Notices that a slow reader missed are lost: there is no promise of delivery.
fn live(announced: broadcast::Receiver<Eviction>) -> impl Stream<Item = Eviction> {
    stream::unfold(announced, |mut announced| async {
        loop {
            match announced.recv().await {
                Ok(eviction) => return Some((eviction, announced)),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    })
}

fn event(eviction: &Eviction) -> Event {
    let data = json!({
        "devbox_id": eviction.devbox_id,
        "eviction_deadline_ms": eviction.deadline_ms,
    });
    Event {
        name: None,
        data: data.to_string(),
    }
}
