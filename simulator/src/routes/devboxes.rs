//! `/v1/devboxes`: the boxes themselves.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;

use super::hold::{self, WaitForStatus};
use super::{Lenient, Query, list};
use crate::error::{ApiError, ApiResult};
use crate::layers::Caller;
use crate::state::World;
use crate::state::devboxes::{CreateDevbox, UpdateDevbox};
use crate::state::lifecycle;
use crate::state::status::DevboxStatus;

pub(super) fn router() -> Router<Arc<World>> {
    Router::new()
        .route("/v1/devboxes", get(page).post(create))
        .route(
            "/v1/devboxes/create_and_await_running",
            post(create_and_await_running),
        )
        .route("/v1/devboxes/{id}", get(retrieve).post(update))
        .route("/v1/devboxes/{id}/wait_for_status", post(wait_for_status))
        .route("/v1/devboxes/{id}/shutdown", post(shutdown))
}

async fn create(
    State(world): State<Arc<World>>,
    caller: Caller,
    Lenient(request): Lenient<CreateDevbox>,
) -> ApiResult<Json<Value>> {
    Ok(Json(
        lifecycle::create(&world, caller.account_id, request)?.view(),
    ))
}

/// What the official clients' `createAndAwaitRunning` calls (certain). How long
/// the service waits is unknown; the answer is 200 with any status, because the
/// clients go on with `wait_for_status` and would repeat a create after a 408.
async fn create_and_await_running(
    State(world): State<Arc<World>>,
    caller: Caller,
    Lenient(request): Lenient<CreateDevbox>,
) -> ApiResult<Json<Value>> {
    let seconds = world.settings.get().create_hold_seconds;
    let hold = Duration::try_from_secs_f64(seconds)
        .map_err(|_error| ApiError::bad_request("create_hold_seconds must not be negative"))?;
    let devbox = lifecycle::create(&world, caller.account_id, request)?;
    let booted = hold::until(devbox.watch(), hold, || {
        let settled = matches!(
            devbox.status(),
            DevboxStatus::Running | DevboxStatus::Failure | DevboxStatus::Shutdown
        );
        settled.then_some(())
    });
    match booted.await {
        Ok(()) | Err(_) => Ok(Json(devbox.view())),
    }
}

async fn retrieve(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    Ok(Json(world.devboxes.get(&caller.account_id, &id)?.view()))
}

async fn page(
    State(world): State<Arc<World>>,
    caller: Caller,
    query: Query,
) -> ApiResult<Json<Value>> {
    let mut boxes = world.devboxes.list(&caller.account_id);
    if let Some(name) = query.get("status") {
        let status = DevboxStatus::parse(name)
            .ok_or_else(|| ApiError::bad_request(format!("invalid status {name}")))?;
        boxes.retain(|devbox| devbox.status() == status);
    }
    list::page(
        "devboxes",
        &boxes,
        &query,
        |devbox| &devbox.id,
        |devbox| devbox.view(),
    )
    .map(Json)
}

/// An empty name clears it (certain for the newer clients).
async fn update(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
    Lenient(request): Lenient<UpdateDevbox>,
) -> ApiResult<Json<Value>> {
    let devbox = world.devboxes.get(&caller.account_id, &id)?;
    devbox.change(|record| {
        if let Some(name) = request.name {
            record.name = Some(name).filter(|name| !name.is_empty());
        }
        if let Some(metadata) = request.metadata {
            record.metadata = metadata;
        }
    });
    Ok(Json(devbox.view()))
}

async fn wait_for_status(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
    Lenient(request): Lenient<WaitForStatus>,
) -> ApiResult<Json<Value>> {
    let devbox = world.devboxes.get(&caller.account_id, &id)?;
    request.check(|status| DevboxStatus::parse(status).is_some())?;
    let settings = world.settings.get();
    let hold = request.hold(
        settings.devbox_hold_default_seconds,
        settings.devbox_hold_max_seconds,
    )?;
    hold::until(devbox.watch(), hold, || {
        let view = devbox.view();
        let status = view.get("status").and_then(Value::as_str)?;
        request
            .statuses
            .iter()
            .any(|wanted| wanted == status)
            .then_some(Json(view))
    })
    .await
}

/// Repeating it on a box that has ended is 200 (certain).
async fn shutdown(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let devbox = world.devboxes.get(&caller.account_id, &id)?;
    lifecycle::shut_down(&world, &devbox, "api_shutdown");
    Ok(Json(devbox.view()))
}
