//! Reading JSON bodies.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{ApiError, ApiResult};

/// A JSON body in which `null` is absent and nothing at all is `{}`. The
/// content type is not looked at: official clients send `application/json`
/// with an empty body. Anything that does not fit `T` is a 400.
#[derive(Debug)]
pub(crate) struct Lenient<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Lenient<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let mut value = read(request, state).await?;
        drop_nulls(&mut value);
        fit(value).map(Self)
    }
}

/// The same with every `null` kept: for the control surface, where it is a
/// value.
#[derive(Debug)]
pub(crate) struct Exact<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Exact<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        fit(read(request, state).await?).map(Self)
    }
}

async fn read(request: Request, state: &(impl Send + Sync)) -> ApiResult<Value> {
    let bytes = Bytes::from_request(request, state)
        .await
        .map_err(|error| ApiError::bad_request(error.body_text()))?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::bad_request(format!("malformed JSON body: {error}")))
}

fn fit<T: DeserializeOwned>(value: Value) -> ApiResult<T> {
    serde_json::from_value(value)
        .map_err(|error| ApiError::bad_request(format!("invalid request body: {error}")))
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
