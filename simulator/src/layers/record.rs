//! Fills the journal: one entry a request, from its head to its last byte.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, StatusCode, Version};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;

use crate::error::ApiError;
use crate::journal::{Entry, MAX_BODY_BYTES, Outcome, Slot, lock_entry};
use crate::server::{Connection, Hangup};
use crate::state::World;

/// Set on the answer of the fallback route: nothing of the API matched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unexpected;

/// Records the request and its answer.
pub(crate) async fn record(
    State(world): State<Arc<World>>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let slot = world.journal.open(
        opening(&parts, world.clock.now_ms()),
        world.settings.get().journal_max_entries,
    );
    // From here on an early end of this future still completes the entry.
    let mut completion = Completion {
        world: Arc::clone(&world),
        slot: Arc::clone(&slot),
    };
    let body = if is_json(&parts.headers) {
        let Ok(bytes) = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes)
        else {
            return ApiError::bad_request("the request body could not be read").into_response();
        };
        note_body(&slot, &bytes);
        Body::from(bytes)
    } else {
        count_request_bytes(body, Arc::clone(&slot))
    };
    let mut request = Request::from_parts(parts, body);
    request.extensions_mut().insert(Arc::clone(&slot));
    let response = next.run(request).await;

    if response.extensions().get::<Unexpected>().is_some() {
        world.journal.mark_unexpected(&slot);
    }
    if response.extensions().get::<Hangup>().is_some() {
        completion.finish(Outcome::HungUp);
        return response;
    }
    lock_entry(&slot).status = Some(response.status().as_u16());
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        // The answer's body is the upgraded connection, which is not counted.
        completion.finish(Outcome::Answered);
        return response;
    }
    response.map(|body| {
        Body::new(Recorded {
            body,
            completion: Some(completion),
        })
    })
}

fn opening(parts: &Parts, time_ms: i64) -> Entry {
    Entry {
        sequence: 0,
        time_ms,
        duration_ms: None,
        connection: parts
            .extensions
            .get::<Arc<Connection>>()
            .map_or(0, |found| found.id),
        http_version: match parts.version {
            Version::HTTP_2 => "2",
            Version::HTTP_10 => "1.0",
            _ => "1.1",
        },
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: crate::routes::query_pairs(parts.uri.query()).collect(),
        headers: visible_headers(&parts.headers),
        body: None,
        request_bytes: 0,
        status: None,
        response_bytes: 0,
        outcome: Outcome::Pending,
        faults: Vec::new(),
        unexpected: false,
    }
}

fn visible_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    headers
        .iter()
        .map(|(name, value)| {
            let shown = if name == AUTHORIZATION || name.as_str().ends_with("authorization") {
                "(replaced)".to_owned()
            } else {
                String::from_utf8_lossy(value.as_bytes()).into_owned()
            };
            (name.to_string(), shown)
        })
        .collect()
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"))
}

fn note_body(slot: &Slot, bytes: &Bytes) {
    let parsed = (bytes.len() <= MAX_BODY_BYTES)
        .then(|| serde_json::from_slice(bytes).ok())
        .flatten();
    let mut entry = lock_entry(slot);
    entry.request_bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    entry.body = parsed;
}

fn count_request_bytes(body: Body, slot: Slot) -> Body {
    Body::new(body.map_frame(move |frame| {
        if let Some(data) = frame.data_ref() {
            lock_entry(&slot).request_bytes += u64::try_from(data.len()).unwrap_or(0);
        }
        frame
    }))
}

/// Completes the entry, as cut unless told otherwise, exactly once.
struct Completion {
    world: Arc<World>,
    slot: Slot,
}

impl Completion {
    fn finish(&mut self, outcome: Outcome) {
        let now_ms = self.world.clock.now_ms();
        let mut entry = lock_entry(&self.slot);
        if entry.outcome == Outcome::Pending {
            entry.outcome = outcome;
            entry.duration_ms = Some(now_ms - entry.time_ms);
            tracing::info!(
                sequence = entry.sequence,
                method = %entry.method,
                path = %entry.path,
                status = entry.status,
                milliseconds = entry.duration_ms,
                faults = ?entry.faults,
                "{}", if entry.unexpected { "unexpected request" } else { "request" },
            );
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        self.finish(Outcome::Cut);
    }
}

/// A response body that completes the journal entry at its end.
struct Recorded {
    body: Body,
    completion: Option<Completion>,
}

impl Recorded {
    fn complete(&mut self) {
        if let Some(mut completion) = self.completion.take() {
            completion.finish(Outcome::Answered);
        }
    }
}

impl HttpBody for Recorded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(data), Some(completion)) = (frame.data_ref(), &self.completion) {
                    lock_entry(&completion.slot).response_bytes +=
                        u64::try_from(data.len()).unwrap_or(0);
                }
                // hyper does not poll again once the length is reached.
                if self.body.is_end_stream() {
                    self.complete();
                }
            }
            Poll::Ready(None) => self.complete(),
            Poll::Ready(Some(Err(_))) => self.completion = None,
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        // An empty body is still polled once, so that its entry completes.
        self.completion.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
