//! The error body of the API and the one way to make it.
//!
//! The service publishes no error schema; official clients read `message` and
//! tolerate anything. `{"code": "<status>", "message": "…"}` is inferred.
//! Route code returns [`ApiError`]; nothing else here knows a route.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;

use crate::state::settings::Settings;

/// A refusal with its status, its sentence and the headers that go with it.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// What every route returns.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            headers: Vec::new(),
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn not_found(kind: &str, id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("{kind} {id} not found"))
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// The 408 that ends a long poll. `x-should-retry` is certain (the official
    /// TypeScript client documents it); `retry-after-ms: 1` keeps clients that
    /// apply their back-off to it from sleeping.
    pub(crate) fn hold_expired() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "timed out waiting for the requested status",
        )
        .header("x-should-retry", "true")
        .header("retry-after-ms", "1")
    }

    /// The `retry-after` that the settings ask for, sensible or not.
    pub(crate) fn retry_after(self, settings: &Settings) -> Self {
        match &settings.retry_after {
            Some(value) => self.header("retry-after", value),
            None => self,
        }
    }

    /// Adds a header; one that is not a legal header is left out.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            self.headers.push((name, value));
        }
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "code": self.status.as_u16().to_string(), "message": self.message });
        let mut response = (self.status, Json(body)).into_response();
        response.headers_mut().extend(self.headers);
        response
    }
}
