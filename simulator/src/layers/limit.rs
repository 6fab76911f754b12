//! How many requests are served at once, and the latency of every one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http_body_util::BodyExt;

use crate::error::ApiError;
use crate::server::Connection;
use crate::state::World;

/// Requests whose answer has not been sent to its end.
#[derive(Debug, Default)]
pub(crate) struct InFlight(AtomicUsize);

struct Counted(Arc<World>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.in_flight.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Refuses what is over the limit; long polls and streams count while they
/// last.
pub(crate) async fn limit(
    State(world): State<Arc<World>>,
    request: Request,
    next: Next,
) -> Response {
    let settings = world.settings.get();
    if let Some(seconds) = settings.keep_alive_seconds
        && let Some(connection) = request.extensions().get::<Arc<Connection>>()
        && let Ok(idle) = Duration::try_from_secs_f64(seconds)
    {
        connection.close_when_idle_for(idle);
    }
    let before = world.in_flight.0.fetch_add(1, Ordering::Relaxed);
    let counted = Counted(Arc::clone(&world));
    if settings
        .max_concurrent_requests
        .is_some_and(|limit| before >= limit)
    {
        return ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too many requests at once")
            .retry_after(&settings)
            .into_response();
    }
    if settings.latency_ms > 0 {
        tokio::time::sleep(Duration::from_millis(settings.latency_ms)).await;
    }
    next.run(request).await.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _until_sent = &counted;
            frame
        }))
    })
}
