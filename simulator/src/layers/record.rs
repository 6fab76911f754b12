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
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use http::request::Parts;
use http::{HeaderMap, StatusCode, Version};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;

use crate::error::ApiError;
use crate::journal::{Entry, MAX_BODY_BYTES, MAX_KEPT_RESPONSE_BYTES, Outcome, Slot, lock_entry};
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
    let settings = world.settings.get();
    let slot = world.journal.open(
        opening(&parts, world.clock.now_ms()),
        settings.journal_max_entries,
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
    let content_type = header_text(response.headers(), CONTENT_TYPE);
    let kept =
        (settings.journal_response_bodies && is_text(content_type.as_deref())).then(Vec::new);
    {
        let mut entry = lock_entry(&slot);
        entry.status = Some(response.status().as_u16());
        entry.response_content_type = content_type;
    }
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        // The answer's body is the upgraded connection, which is not counted.
        completion.finish(Outcome::Answered);
        return response;
    }
    response.map(|body| {
        Body::new(Recorded {
            body,
            kept,
            completion: Some(completion),
        })
    })
}

fn opening(parts: &Parts, time_ms: i64) -> Entry {
    let connection = parts.extensions.get::<Arc<Connection>>();
    Entry {
        sequence: 0,
        time_ms,
        duration_ms: None,
        connection: connection.map_or(0, |found| found.id),
        tls: connection.is_some_and(|found| found.is_tls()),
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
        response_content_type: None,
        response_body: None,
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

fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

fn is_json(headers: &HeaderMap) -> bool {
    header_text(headers, CONTENT_TYPE).is_some_and(|value| is_json_type(&value))
}

fn is_json_type(content_type: &str) -> bool {
    content_type.starts_with("application/json")
}

fn is_text(content_type: Option<&str>) -> bool {
    content_type
        .is_some_and(|value| value.starts_with("application/json") || value.starts_with("text/"))
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
    /// What has been answered so far, if it is to be kept.
    kept: Option<Vec<u8>>,
    completion: Option<Completion>,
}

impl Recorded {
    fn note(&mut self, data: &Bytes) {
        if let Some(completion) = &self.completion {
            lock_entry(&completion.slot).response_bytes += u64::try_from(data.len()).unwrap_or(0);
        }
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(data);
            if kept.len() > MAX_KEPT_RESPONSE_BYTES {
                self.kept = None;
            }
        }
    }

    fn complete(&mut self) {
        if let Some(mut completion) = self.completion.take() {
            self.show(&completion);
            completion.finish(Outcome::Answered);
        }
    }

    /// The answer ends here, without its end.
    fn cut(&mut self) {
        if let Some(completion) = self.completion.take() {
            self.show(&completion);
        }
    }

    /// Puts what was kept into the entry.
    fn show(&mut self, completion: &Completion) {
        let Some(kept) = self.kept.take() else {
            return;
        };
        let mut entry = lock_entry(&completion.slot);
        let content_type = entry.response_content_type.as_deref();
        let parsed = content_type
            .is_some_and(is_json_type)
            .then(|| serde_json::from_slice(&kept).ok())
            .flatten();
        entry.response_body = Some(parsed.unwrap_or_else(|| String::from_utf8_lossy(&kept).into()));
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.cut();
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
                if let Some(data) = frame.data_ref() {
                    self.note(data);
                }
                // hyper does not poll again once the length is reached.
                if self.body.is_end_stream() {
                    self.complete();
                }
            }
            Poll::Ready(None) => self.complete(),
            Poll::Ready(Some(Err(_))) => self.cut(),
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
