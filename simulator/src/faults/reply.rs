//! Answers that a rule makes up or spoils.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cut::{End, cut_after};
use super::rule::{Edit, Slow};

/// A made-up answer. Without `body` and `text` it is the API's own error shape
/// for the status.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// A JSON body.
    pub(crate) body: Option<Value>,
    /// Any other body, `""` for none; `text/plain` unless `headers` say
    /// otherwise. `{authorization}` in it is what the client sent as such.
    pub(crate) text: Option<String>,
    /// The body goes out compressed, whether or not the client takes it.
    #[serde(default)]
    pub(crate) gzip: bool,
}

impl Reply {
    pub(crate) fn respond(&self, authorization: Option<&HeaderValue>) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let mut response = match (&self.text, &self.body) {
            (Some(text), _) => {
                let sent = authorization.and_then(|value| value.to_str().ok());
                let text = text.replace("{authorization}", sent.unwrap_or_default());
                self.encoded("text/plain; charset=utf-8", text)
            }
            (None, Some(body)) => self.encoded("application/json", body.to_string()),
            (None, None) => {
                let reason = status.canonical_reason().unwrap_or("refused");
                let body = json!({ "code": self.status.to_string(), "message": reason });
                self.encoded("application/json", body.to_string())
            }
        };
        *response.status_mut() = status;
        for (name, value) in &self.headers {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }

    fn encoded(&self, content_type: &'static str, text: String) -> Response {
        if !self.gzip {
            return ([(CONTENT_TYPE, content_type)], text).into_response();
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        // Writing into memory does not fail.
        let zipped = encoder
            .write_all(text.as_bytes())
            .and_then(|()| encoder.finish());
        let headers = [(CONTENT_TYPE, content_type), (CONTENT_ENCODING, "gzip")];
        (headers, zipped.unwrap_or_default()).into_response()
    }
}

/// Changes the JSON of an answer as the rule says.
pub(super) async fn edit(response: Response, edit: &Edit) -> Response {
    rewrite_json(response, |value| {
        for pointer in &edit.remove {
            remove_at(value, pointer);
        }
        for (pointer, replacement) in &edit.set {
            set_at(value, pointer, replacement.clone());
        }
    })
    .await
}

/// Changes the JSON of an answer; one that is not JSON stays as it is.
pub(super) async fn rewrite_json(response: Response, change: impl FnOnce(&mut Value)) -> Response {
    rewrite(response, |bytes| {
        let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) else {
            return bytes;
        };
        change(&mut value);
        Bytes::from(value.to_string())
    })
    .await
}

/// The first half of the body, framed as if it were all of it.
pub(super) async fn halve(response: Response) -> Response {
    rewrite(response, |bytes| bytes.slice(..bytes.len() / 2)).await
}

/// Rewrites a whole body; one that fails on the way is left empty.
async fn rewrite(response: Response, change: impl FnOnce(Bytes) -> Bytes) -> Response {
    let (mut parts, body) = response.into_parts();
    let bytes = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(change(bytes)))
}

fn remove_at(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(name);
        }
        Some(Value::Array(items)) => {
            if let Some(index) = name
                .parse()
                .ok()
                .filter(|index: &usize| *index < items.len())
            {
                items.remove(index);
            }
        }
        _ => {}
    }
}

fn set_at(value: &mut Value, pointer: &str, replacement: Value) {
    if let Some(place) = value.pointer_mut(pointer) {
        *place = replacement;
    } else if let Some((parent, name)) = pointer.rsplit_once('/')
        && let Some(Value::Object(fields)) = value.pointer_mut(parent)
    {
        fields.insert(name.to_owned(), replacement);
    }
}

/// Sends `bytes` bytes, then ends so. The declared length stays, so the client
/// can tell.
pub(super) fn truncate(response: Response, bytes: usize, end: End) -> Response {
    response.map(|body| {
        let whole = body
            .into_data_stream()
            .filter_map(|chunk| async { chunk.ok() });
        Body::from_stream(cut_after(whole, bytes, end))
    })
}

/// Sends the body in pieces with a pause after each.
pub(super) fn slow_down(response: Response, slow: Slow) -> Response {
    response.map(|body| {
        let pieces = body.into_data_stream().flat_map(move |chunk| {
            let pieces: Vec<_> = match chunk {
                Ok(chunk) => {
                    let size = slow.chunk_bytes.max(1);
                    (0..chunk.len())
                        .step_by(size)
                        .map(|start| Ok(chunk.slice(start..chunk.len().min(start + size))))
                        .collect()
                }
                Err(error) => vec![Err(error)],
            };
            futures::stream::iter(pieces)
        });
        Body::from_stream(pieces.then(move |piece| async move {
            tokio::time::sleep(Duration::from_millis(slow.milliseconds)).await;
            piece
        }))
    })
}
