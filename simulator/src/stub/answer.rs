//! Which request gets which answer, whatever version of HTTP it came by.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::body::StubBody;
use super::command::number_field;
use super::events::{Ended, Events};
use super::execution::Execution;
use super::status::{Status, Written};
use super::{files, payload};

/// Longest hold of an execution where the request names none, and at all.
const MAX_HOLD_SECONDS: u64 = 25;

pub(super) type Answer = Response<StubBody>;

/// Answers one request.
pub(super) async fn answer(request: Request<Incoming>, status: &Arc<Status>) -> Answer {
    status.count_request();
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let mut segments = [""; 7];
    for (place, segment) in segments.iter_mut().zip(path.split('/').skip(1)) {
        *place = segment;
    }
    let is_read = parts.method == Method::GET;
    match (is_read, segments) {
        (false, ["v1", "devboxes", id, "execute", "", ..]) => {
            execute(id, &whole(body).await, Reply::Optimistic, status).await
        }
        (false, ["v1", "devboxes", id, "execute_async", "", ..]) => {
            execute(id, &whole(body).await, Reply::AtOnce, status).await
        }
        (false, ["v1", "devboxes", id, "execute_sync", "", ..]) => {
            execute(id, &whole(body).await, Reply::AtTheEnd, status).await
        }
        (false, ["v1", "devboxes", id, "upload_file", ..]) => {
            let mut request = Request::from_parts(parts.clone(), Body::new(body));
            DefaultBodyLimit::disable().apply(&mut request);
            upload(id, request, status).await
        }
        (false, ["v1", "devboxes", _, "download_file", ..]) => {
            let body = whole(body).await;
            file(files::size_of_download(&body), "application/octet-stream")
        }
        (false, ["v1", "devboxes", _, "read_file_contents", ..]) => {
            let body = whole(body).await;
            file(files::size_in_path(&body), "text/plain; charset=utf-8")
        }
        (false, ["v1", "devboxes", id, "write_file_contents", ..]) => {
            write(id, &whole(body).await, status)
        }
        (_, ["v1", "devboxes", id, "executions", execution, action, ..]) => {
            let Some(execution) = Execution::from_id(execution) else {
                return missing("execution");
            };
            let query = parts.uri.query().unwrap_or_default();
            match (is_read, action) {
                (true, "") => view(id, &execution, query, status),
                (true, "stream_stdout_updates") => {
                    stream(execution.orders.stdout_bytes, &execution, query, status)
                }
                (true, "stream_stderr_updates") => {
                    stream(execution.orders.stderr_bytes, &execution, query, status)
                }
                (false, "wait_for_status") => {
                    let body = whole(body).await;
                    wait(id, &execution, &body, query, status).await
                }
                (false, "kill") => text(execution.completed(id, None)),
                _ => unexpected(&parts.method, path, status),
            }
        }
        (false, ["v1", "devboxes", "", ..]) => {
            let number = status.number();
            match status.boxes.create(&whole(body).await, number) {
                Some(view) => value(&view),
                None => error(StatusCode::BAD_REQUEST, "the body is not JSON"),
            }
        }
        (true, ["v1", "devboxes", "", ..]) => value(&status.boxes.list()),
        (true, ["v1", "devboxes", id, "", ..])
        | (false, ["v1", "devboxes", id, "wait_for_status", ..]) => devbox(status.boxes.get(id)),
        (false, ["v1", "devboxes", id, "shutdown", ..]) => devbox(status.boxes.shut_down(id)),
        (true, ["v1", "accounts", "me", ..]) => value(&json!({
            "id": "acc_stub",
            "name": "stub",
            "account_status": "ACCOUNT_STATUS_ENABLED",
        })),
        (true, ["_simulator", "journal", ..]) => value(&status.journal()),
        (true, ["_simulator", "stub", ..]) => value(&status.report()),
        (false, ["_simulator", "stub", "release", ..]) => {
            status.release();
            value(&json!({}))
        }
        _ => unexpected(&parts.method, path, status),
    }
}

/// How long the answer to a start waits for the end of the command.
enum Reply {
    AtOnce,
    /// As long as the request says.
    Optimistic,
    AtTheEnd,
}

async fn execute(id: &str, body: &[u8], reply: Reply, status: &Status) -> Answer {
    let execution = Execution::find(body, status.number(), status.releases());
    if execution.left(status.releases()) != Some(Duration::ZERO) {
        status.count_held();
    }
    let has_ended = match reply {
        Reply::AtOnce => false,
        Reply::Optimistic => {
            let asked = number_field(body, "optimistic_timeout").unwrap_or(MAX_HOLD_SECONDS);
            ends_within(&execution, Duration::from_secs(asked), status).await
        }
        Reply::AtTheEnd => ends_within(&execution, Duration::MAX, status).await,
    };
    text(if has_ended {
        execution.completed(id, None)
    } else {
        execution.running(id)
    })
}

/// Waits for the end of an execution, but no longer than `limit`.
async fn ends_within(execution: &Execution, limit: Duration, status: &Status) -> bool {
    match execution.left(status.releases()) {
        Some(Duration::ZERO) => true,
        Some(left) => {
            tokio::time::sleep(left.min(limit)).await;
            left <= limit
        }
        None => {
            let mut releases = status.watch_releases();
            let released =
                releases.wait_for(|releases| execution.left(*releases) == Some(Duration::ZERO));
            matches!(tokio::time::timeout(limit, released).await, Ok(Ok(_)))
        }
    }
}

fn view(id: &str, execution: &Execution, query: &str, status: &Status) -> Answer {
    text(match execution.left(status.releases()) {
        Some(Duration::ZERO) => execution.completed(id, parameter(query, "last_n")),
        _ => execution.running(id),
    })
}

async fn wait(
    id: &str,
    execution: &Execution,
    body: &[u8],
    query: &str,
    status: &Status,
) -> Answer {
    let asked = number_field(body, "timeout_seconds").unwrap_or(MAX_HOLD_SECONDS);
    let limit = Duration::from_secs(asked.min(MAX_HOLD_SECONDS));
    if ends_within(execution, limit, status).await {
        text(execution.completed(id, parameter(query, "last_n")))
    } else {
        error(StatusCode::REQUEST_TIMEOUT, "not yet")
    }
}

fn stream(bytes: u64, execution: &Execution, query: &str, status: &Arc<Status>) -> Answer {
    let at = parameter(query, "offset").unwrap_or(0).min(bytes);
    let ended = execution.left(status.releases()) != Some(Duration::ZERO);
    let ended = ended.then(|| -> Ended {
        let (execution, status) = (execution.clone(), Arc::clone(status));
        Box::pin(async move {
            ends_within(&execution, Duration::MAX, &status).await;
        })
    });
    let events = Events::new(at, bytes, execution.orders.event_bytes, ended)
        .paced(execution.orders.bytes_per_second);
    with_type(StubBody::Events(Box::new(events)), "text/event-stream")
}

fn file(size: Option<u64>, content_type: &'static str) -> Answer {
    match size {
        Some(end) => with_type(StubBody::File { at: 0, end }, content_type),
        None => missing("file"),
    }
}

fn write(id: &str, body: &[u8], status: &Status) -> Answer {
    let Ok(request) = serde_json::from_slice::<Value>(body) else {
        return error(StatusCode::BAD_REQUEST, "the body is not JSON");
    };
    let field = |name: &str| {
        request
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let contents = field("contents").as_bytes();
    status.wrote(Written {
        path: field("file_path").to_owned(),
        bytes: contents.len() as u64,
        is_payload: payload::is_plain(0, contents),
    });
    value(&json!({ "devbox_id": id, "exit_status": 0, "stdout": "", "stderr": "" }))
}

/// Takes the form piece by piece and checks what comes.
async fn upload(id: &str, request: axum::extract::Request, status: &Status) -> Answer {
    let taken: Result<Option<Written>, axum::extract::multipart::MultipartError> = async {
        let Ok(mut form) = Multipart::from_request(request, &()).await else {
            return Ok(None);
        };
        let mut written = Written {
            is_payload: true,
            ..Written::default()
        };
        while let Some(mut field) = form.next_field().await? {
            if field.name() == Some("path") {
                written.path = field.text().await?;
                continue;
            }
            while let Some(piece) = field.chunk().await? {
                written.is_payload &= payload::is_plain(written.bytes, &piece);
                written.bytes += piece.len() as u64;
            }
        }
        Ok(Some(written))
    }
    .await;
    match taken {
        Ok(Some(written)) => {
            status.wrote(written);
            value(&json!({ "devbox_id": id }))
        }
        Ok(None) | Err(_) => error(StatusCode::BAD_REQUEST, "not a form with path and file"),
    }
}

/// A number in a query.
fn parameter(query: &str, name: &str) -> Option<u64> {
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// The whole body; what a client cuts off is answered as far as it came.
async fn whole(body: Incoming) -> Bytes {
    body.collect()
        .await
        .map_or_else(|_cut| Bytes::new(), http_body_util::Collected::to_bytes)
}

fn devbox(view: Option<Value>) -> Answer {
    view.map_or_else(|| missing("devbox"), |view| value(&view))
}

fn value(value: &Value) -> Answer {
    text(value.to_string())
}

fn text(text: String) -> Answer {
    with_type(StubBody::whole(text), "application/json")
}

fn with_type(body: StubBody, content_type: &'static str) -> Answer {
    let mut answer = Response::new(body);
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

fn missing(what: &str) -> Answer {
    error(StatusCode::NOT_FOUND, &format!("{what} not found"))
}

fn unexpected(method: &Method, path: &str, status: &Status) -> Answer {
    let line = format!("{method} {path}");
    let message = format!("the stub has no answer for {line}");
    status.unexpected(line);
    error(StatusCode::NOT_FOUND, &message)
}

fn error(code: StatusCode, message: &str) -> Answer {
    let mut answer = value(&json!({ "code": code.as_u16().to_string(), "message": message }));
    *answer.status_mut() = code;
    answer
}
