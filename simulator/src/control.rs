//! `/_simulator/*`: what tests and people ask of the simulator itself.
//!
//! Needs no key and is not in the journal.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::error::{ApiError, ApiResult};
use crate::faults::Rule;
use crate::routes::{Exact, Query};
use crate::state::World;
use crate::state::accounts::AccountChange;
use crate::state::evictions::Eviction;
use crate::state::script::Script;

/// Mounted under `/_simulator`.
pub(crate) fn router(world: Arc<World>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/journal", get(journal).delete(clear_journal))
        .route("/faults", get(faults).post(add_fault).delete(clear_faults))
        .route("/faults/{id}", delete(remove_fault))
        .route("/settings", get(settings).post(change_settings))
        .route("/accounts", post(change_account))
        .route("/devboxes", get(devboxes))
        .route("/devboxes/{id}/script", post(play_script))
        .route("/evictions", post(announce_eviction))
        .route("/clock", get(clock).post(advance_clock))
        .with_state(world)
}

async fn health(State(world): State<Arc<World>>) -> Json<Value> {
    Json(world.health())
}

/// `since`, `method` and `path` (a prefix) narrow the list.
async fn journal(State(world): State<Arc<World>>, query: Query) -> ApiResult<Json<Value>> {
    let (mut entries, dropped) = world.journal.snapshot();
    let since = query.number::<u64>("since")?.unwrap_or(0);
    entries.retain(|entry| {
        entry.sequence > since
            && query
                .get("method")
                .is_none_or(|method| entry.method == method)
            && query
                .get("path")
                .is_none_or(|path| entry.path.starts_with(path))
    });
    Ok(Json(json!({
        "entries": entries,
        "dropped": dropped,
        "unexpected": world.journal.unexpected(),
    })))
}

async fn clear_journal(State(world): State<Arc<World>>) -> Json<Value> {
    world.journal.clear();
    Json(json!({}))
}

async fn faults(State(world): State<Arc<World>>) -> Json<Value> {
    Json(json!({ "faults": world.faults.view() }))
}

async fn add_fault(State(world): State<Arc<World>>, Exact(rule): Exact<Rule>) -> Json<Value> {
    Json(json!({ "id": world.faults.add(rule) }))
}

async fn clear_faults(State(world): State<Arc<World>>) -> Json<Value> {
    world.faults.remove(None);
    Json(json!({}))
}

async fn remove_fault(
    State(world): State<Arc<World>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    if world.faults.remove(Some(&id)) {
        Ok(Json(json!({})))
    } else {
        Err(ApiError::not_found("fault", &id))
    }
}

async fn settings(State(world): State<Arc<World>>) -> Json<Value> {
    Json(json!(*world.settings.get()))
}

async fn change_settings(
    State(world): State<Arc<World>>,
    Exact(patch): Exact<Value>,
) -> ApiResult<Json<Value>> {
    let changed = world
        .settings
        .patch(&patch)
        .map_err(ApiError::bad_request)?;
    Ok(Json(json!(*changed)))
}

async fn change_account(
    State(world): State<Arc<World>>,
    Exact(change): Exact<AccountChange>,
) -> Json<Value> {
    Json(world.accounts.change(change, world.clock.now_ms()))
}

/// Every box of every account, newest first, with what ran on it.
async fn devboxes(State(world): State<Arc<World>>) -> Json<Value> {
    let boxes: Vec<Value> = world
        .devboxes
        .all()
        .iter()
        .map(|devbox| {
            let executions: Vec<Value> = devbox
                .executions
                .all()
                .iter()
                .map(|execution| {
                    let status = execution.status();
                    json!({
                        "execution_id": execution.id,
                        "shell_name": execution.shell_name,
                        "command": execution.command,
                        "status": status.as_str(),
                        "exit_status": status.exit_status(),
                    })
                })
                .collect();
            json!({
                "id": devbox.id(),
                "account_id": &*devbox.origin.account_id,
                "true_status": devbox.status().as_str(),
                "shown_status": devbox.shown_status(),
                "wakes_on_http": devbox.wakes_on_http(),
                "executions": executions,
                "terminals": devbox.terminals.view(),
            })
        })
        .collect();
    Json(json!({ "devboxes": boxes }))
}

/// Lets a box that is already there play a script.
async fn play_script(
    State(world): State<Arc<World>>,
    Path(id): Path<String>,
    Exact(script): Exact<Script>,
) -> ApiResult<Json<Value>> {
    let devbox = world
        .devboxes
        .find(&id)
        .ok_or_else(|| ApiError::not_found("devbox", &id))?;
    devbox.play(script);
    Ok(Json(json!({})))
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Evict {
    devbox_id: String,
    /// Virtual seconds until the box is suspended.
    in_seconds: f64,
}

async fn announce_eviction(
    State(world): State<Arc<World>>,
    Exact(request): Exact<Evict>,
) -> ApiResult<Json<Value>> {
    let id = request.devbox_id;
    let devbox = world
        .devboxes
        .find(&id)
        .ok_or_else(|| ApiError::not_found("devbox", &id))?;
    let wait = std::time::Duration::try_from_secs_f64(request.in_seconds)
        .map_err(|_error| ApiError::bad_request("in_seconds must not be negative"))?;
    let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    let deadline_ms = world.clock.now_ms().saturating_add(wait_ms);
    world.evictions.announce(Eviction {
        account_id: devbox.origin.account_id.clone(),
        devbox_id: id,
        deadline_ms,
    });
    world.deadline_changed.notify_one();
    Ok(Json(json!({ "eviction_deadline_ms": deadline_ms })))
}

async fn clock(State(world): State<Arc<World>>) -> Json<Value> {
    Json(world.clock_view())
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    advance_seconds: f64,
}

async fn advance_clock(
    State(world): State<Arc<World>>,
    Exact(step): Exact<Advance>,
) -> ApiResult<Json<Value>> {
    let step = std::time::Duration::try_from_secs_f64(step.advance_seconds)
        .map_err(|_error| ApiError::bad_request("advance_seconds must not be negative"))?;
    world.advance_clock(i64::try_from(step.as_millis()).unwrap_or(i64::MAX));
    Ok(Json(world.clock_view()))
}
