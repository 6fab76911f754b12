//! No web page but our own: a browser on this machine reaches the simulator
//! for any page that it shows, and a simulated Devbox runs real commands.
//!
//! Browsers put `Origin` on every request of a page that could change
//! something. It must be where the request goes, and that must be this
//! machine by name, so that a name that was made to point here does not count.
//! Requests through tunnels do not come here: previews are for pages.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri};

use crate::error::ApiError;

/// Refuses what a page of another origin sends.
pub(crate) async fn own_pages_only(request: Request, next: Next) -> Response {
    if is_foreign(request.headers(), request.uri()) {
        let message = "requests of web pages are taken from the simulator's own page only";
        return ApiError::new(StatusCode::FORBIDDEN, message).into_response();
    }
    next.run(request).await
}

fn is_foreign(headers: &HeaderMap, uri: &Uri) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return false;
    };
    let origin = origin.to_str().ok().and_then(|origin| {
        let (_, authority) = origin.split_once("://")?;
        authority.parse::<Authority>().ok()
    });
    // HTTP/2 has the authority in the URI, HTTP/1.1 in a header.
    let target = uri.authority().cloned().or_else(|| {
        let host = headers.get(HOST)?.to_str().ok()?;
        host.parse().ok()
    });
    match (origin, target) {
        (Some(origin), Some(target)) => origin != target || !is_this_machine(target.host()),
        _ => true,
    }
}

fn is_this_machine(host: &str) -> bool {
    matches!(host, "127.0.0.1" | "[::1]" | "localhost")
}
