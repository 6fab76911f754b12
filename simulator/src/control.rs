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
use crate::routes::{Lenient, Query};
use crate::state::World;
use crate::state::accounts::AccountChange;

/// Mounted under `/_simulator`.
pub(crate) fn router(world: Arc<World>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/journal", get(journal).delete(clear_journal))
        .route("/faults", get(faults).post(add_fault).delete(clear_faults))
        .route("/faults/{id}", delete(remove_fault))
        .route("/settings", get(settings).post(change_settings))
        .route("/accounts", post(change_account))
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

async fn add_fault(State(world): State<Arc<World>>, Lenient(rule): Lenient<Rule>) -> Json<Value> {
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
    Lenient(patch): Lenient<Value>,
) -> ApiResult<Json<Value>> {
    let changed = world
        .settings
        .patch(&patch)
        .map_err(ApiError::bad_request)?;
    Ok(Json(json!(*changed)))
}

async fn change_account(
    State(world): State<Arc<World>>,
    Lenient(change): Lenient<AccountChange>,
) -> Json<Value> {
    Json(world.accounts.change(change, world.clock.now_ms()))
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
    Lenient(step): Lenient<Advance>,
) -> ApiResult<Json<Value>> {
    let step = std::time::Duration::try_from_secs_f64(step.advance_seconds)
        .map_err(|_error| ApiError::bad_request("advance_seconds must not be negative"))?;
    world
        .clock
        .advance_ms(i64::try_from(step.as_millis()).unwrap_or(i64::MAX));
    Ok(Json(world.clock_view()))
}
