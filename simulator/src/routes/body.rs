//! Reading JSON bodies the way a lenient server does.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ApiError;

/// A JSON body in which `null` is absent and nothing at all is `{}`. The
/// content type is not looked at: official clients send `application/json`
/// with an empty body. Anything that does not fit `T` is a 400.
#[derive(Debug)]
pub(crate) struct Lenient<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Lenient<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|error| ApiError::bad_request(error.body_text()))?;
        let mut value = if bytes.iter().all(u8::is_ascii_whitespace) {
            Value::Object(serde_json::Map::new())
        } else {
            serde_json::from_slice(&bytes)
                .map_err(|error| ApiError::bad_request(format!("malformed JSON body: {error}")))?
        };
        drop_nulls(&mut value);
        serde_json::from_value(value)
            .map(Self)
            .map_err(|error| ApiError::bad_request(format!("invalid request body: {error}")))
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_name, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
