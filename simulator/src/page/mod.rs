//! `/_simulator`: the simulator for people, in a browser.
//!
//! The page is three files in the binary and asks for two things: an overview
//! of everything and the growing output of one execution. Neither holds a
//! header, a body, a key or a token. Its policy lets the browser load and run
//! those files only and keeps text from becoming markup.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use serde_json::{Value, json};

use crate::error::{ApiError, ApiResult};
use crate::routes::Query;
use crate::state::World;
use crate::state::choices::{ChunkOffset, OffsetUnit};
use crate::state::devboxes::Devbox;
use crate::state::executions::{Execution, Output};
use crate::state::follow::Follower;
use crate::state::settings::Settings;

/// Boxes, executions of each and requests that the page shows, the newest.
const MAX_DEVBOXES: usize = 200;
const MAX_EXECUTIONS: usize = 20;
const MAX_REQUESTS: usize = 200;

/// Characters of a command that the page shows.
const MAX_COMMAND_CHARACTERS: usize = 500;

/// Bytes of one output that one answer carries.
const MAX_OUTPUT_BYTES: u64 = 128 * 1024;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Mounted at the root: the page's own paths and what it asks for.
pub(crate) fn router(world: Arc<World>) -> Router {
    let output = "/_simulator/devboxes/{id}/executions/{execution_id}/output";
    Router::new()
        .route("/_simulator", get(async || html(include_str!("page.html"))))
        .route("/_simulator/", get(async || Redirect::to("/_simulator")))
        .route(
            "/_simulator/page.mjs",
            get(async || file("text/javascript; charset=utf-8", include_str!("page.mjs"))),
        )
        .route(
            "/_simulator/page.css",
            get(async || file("text/css; charset=utf-8", include_str!("page.css"))),
        )
        .route("/_simulator/overview", get(overview))
        .route(output, get(read_output))
        .with_state(world)
}

fn html(text: &'static str) -> Response {
    file("text/html; charset=utf-8", text)
}

fn file(content_type: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}

async fn overview(State(world): State<Arc<World>>) -> Json<Value> {
    let boxes = world.devboxes.all();
    let boxes: Vec<Value> = boxes
        .iter()
        .take(MAX_DEVBOXES)
        .map(|each| devbox(each))
        .collect();
    let requests = world.journal.newest(MAX_REQUESTS, |entry| {
        json!({
            "sequence": entry.sequence,
            "time_ms": entry.time_ms,
            "duration_ms": entry.duration_ms,
            "method": entry.method,
            "path": entry.path,
            "status": entry.status,
            "outcome": entry.outcome,
            "unexpected": entry.unexpected,
            "faults": entry.faults,
        })
    });
    Json(json!({
        "health": world.health(),
        "devboxes": boxes,
        "faults": world.faults.view(),
        "requests": requests,
    }))
}

fn devbox(devbox: &Devbox) -> Value {
    let executions = devbox.executions.all();
    let shown: Vec<Value> = executions
        .iter()
        .rev()
        .take(MAX_EXECUTIONS)
        .map(|each| execution(each))
        .collect();
    let name = devbox.read().name.clone();
    json!({
        "id": devbox.id(),
        "name": name,
        "true_status": devbox.status().as_str(),
        "shown_status": devbox.shown_status(),
        "more_executions": executions.len() - shown.len(),
        "executions": shown,
        "terminals": devbox.terminals.view(),
    })
}

fn execution(execution: &Execution) -> Value {
    let status = execution.status();
    let command: String = execution
        .command
        .chars()
        .take(MAX_COMMAND_CHARACTERS)
        .collect();
    json!({
        "execution_id": execution.id,
        "shell_name": execution.shell_name,
        "command": command,
        "status": status.as_str(),
        "exit_status": status.exit_status(),
    })
}

/// What an execution wrote past the offsets `stdout` and `stderr`, in bytes as
/// written; without one the newest of that output.
async fn read_output(
    State(world): State<Arc<World>>,
    Path((id, execution_id)): Path<(String, String)>,
    query: Query,
) -> ApiResult<Json<Value>> {
    let devbox = world
        .devboxes
        .find(&id)
        .ok_or_else(|| ApiError::not_found("devbox", &id))?;
    let execution = devbox.executions.get(&execution_id)?;
    // Asked before reading: nothing can come after it.
    let is_over = execution.status().exit_status().is_some();
    let stdout = part(&execution, Output::Stdout, query.number("stdout")?)?;
    let stderr = part(&execution, Output::Stderr, query.number("stderr")?)?;
    let has_more = stdout.has_more || stderr.has_more;
    Ok(Json(json!({
        "stdout": { "text": stdout.text, "next": stdout.next },
        "stderr": { "text": stderr.text, "next": stderr.next },
        "has_more": has_more,
        "is_whole": is_over && !has_more,
    })))
}

struct Part {
    text: String,
    next: u64,
    has_more: bool,
}

fn part(execution: &Arc<Execution>, output: Output, offset: Option<u64>) -> ApiResult<Part> {
    let settings = Settings {
        stream_offset: ChunkOffset::End,
        stream_unit: OffsetUnit::Raw,
        ..Settings::default()
    };
    let newest = || {
        execution
            .output(output)
            .len()
            .saturating_sub(MAX_OUTPUT_BYTES)
    };
    let begin = offset.unwrap_or_else(newest);
    let mut follower = Follower::new(Arc::clone(execution), output, begin, Arc::new(settings));
    let mut part = Part {
        text: String::new(),
        next: begin,
        has_more: false,
    };
    while let Some(chunk) = follower
        .next()
        .map_err(|error| ApiError::internal(format!("the output was lost: {error}")))?
    {
        part.text.push_str(&chunk.text);
        part.next = chunk.offset;
        if part.next - begin >= MAX_OUTPUT_BYTES {
            part.has_more = true;
            break;
        }
    }
    Ok(part)
}
