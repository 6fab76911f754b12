//! Answering a repeated `x-request-id` with the first answer.
//!
//! Off unless `dedupe_request_ids` is set: official clients send the same id
//! with every automatic retry, but nothing public says that the service looks
//! at it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http::{Method, response};
use http_body_util::BodyExt;

use crate::state::World;

/// What was answered to an id; held while the first request is being served.
type Answer = Arc<tokio::sync::Mutex<Option<(response::Parts, Bytes)>>>;

/// Answers by path and request id.
#[derive(Debug, Default)]
pub(crate) struct Replays(Mutex<HashMap<(String, String), Answer>>);

impl Replays {
    fn entry(&self, path: &str, id: &str) -> Answer {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(answers.entry((path.to_owned(), id.to_owned())).or_default())
    }
}

/// Gives the first answer again; answers of 408, 409, 429 and 5xx, which ask
/// for a retry, are not kept.
pub(crate) async fn replay(
    State(world): State<Arc<World>>,
    request: Request,
    next: Next,
) -> Response {
    let id = request
        .headers()
        .get("x-request-id")
        .and_then(|value| value.to_str().ok());
    let id =
        id.filter(|_| request.method() == Method::POST && world.settings.get().dedupe_request_ids);
    let Some(id) = id else {
        return next.run(request).await;
    };
    let answer = world.replays.entry(request.uri().path(), id);
    let mut answer = answer.lock().await;
    if let Some((parts, bytes)) = &*answer {
        return Response::from_parts(parts.clone(), Body::from(bytes.clone()));
    }
    let (parts, body) = next.run(request).await.into_parts();
    let Ok(bytes) = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
    else {
        return Response::from_parts(parts, Body::empty());
    };
    let status = parts.status.as_u16();
    if !matches!(status, 408 | 409 | 429 | 500..) {
        *answer = Some((parts.clone(), bytes.clone()));
    }
    Response::from_parts(parts, Body::from(bytes))
}
