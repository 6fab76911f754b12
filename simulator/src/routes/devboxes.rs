//! `/v1/devboxes`: the boxes themselves.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::addressed::OfDevbox;
use super::hold::{self, WaitForStatus};
use super::{Lenient, Query, list};
use crate::error::{ApiError, ApiResult};
use crate::faults::Faulted;
use crate::layers::Caller;
use crate::state::World;
use crate::state::create::CreateDevbox;
use crate::state::devboxes::Devbox;
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
        .route("/v1/devboxes/{id}/suspend", post(suspend))
        .route("/v1/devboxes/{id}/resume", post(resume))
        .route("/v1/devboxes/{id}/keep_alive", post(keep_alive))
        .route("/v1/devboxes/{id}/usage", get(usage))
}

/// The body of an update: an absent field keeps its value, an empty name
/// clears it, a given map replaces the whole map (certain for newer clients).
#[derive(Debug, Default, Deserialize)]
struct Update {
    name: Option<String>,
    metadata: Option<std::collections::BTreeMap<String, String>>,
}

async fn create(
    State(world): State<Arc<World>>,
    caller: Caller,
    faulted: Faulted,
    Lenient(request): Lenient<CreateDevbox>,
) -> ApiResult<Json<Value>> {
    Ok(Json(make(&world, &caller, &faulted, request)?.view()))
}

fn make(
    world: &Arc<World>,
    caller: &Caller,
    faulted: &Faulted,
    request: CreateDevbox,
) -> ApiResult<Arc<Devbox>> {
    let devbox = lifecycle::create(world, &caller.account_id, request)?;
    if let Some(script) = faulted.devbox_script() {
        devbox.play(script);
    }
    Ok(devbox)
}

/// What the official clients' `createAndAwaitRunning` calls (certain). How long
/// the service waits is unknown; the answer is 200 with any status, because the
/// clients go on with `wait_for_status` and would repeat a create after a 408.
async fn create_and_await_running(
    State(world): State<Arc<World>>,
    caller: Caller,
    faulted: Faulted,
    Lenient(request): Lenient<CreateDevbox>,
) -> ApiResult<Json<Value>> {
    let seconds = world.settings.get().create_hold_seconds;
    let hold = Duration::try_from_secs_f64(seconds)
        .map_err(|_error| ApiError::bad_request("create_hold_seconds must not be negative"))?;
    let devbox = make(&world, &caller, &faulted, request)?;
    let settled = || {
        let status = devbox.shown_status();
        matches!(status.as_str(), "running" | "failure" | "shutdown").then_some(())
    };
    let next_change = || devbox.next_script_change();
    let booted = hold::until_with(devbox.watch(), hold, settled, next_change);
    match booted.await {
        Ok(()) | Err(_) => Ok(Json(devbox.view())),
    }
}

async fn retrieve(OfDevbox(devbox): OfDevbox) -> Json<Value> {
    Json(devbox.view())
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
        boxes.retain(|devbox| devbox.shown_status() == status.as_str());
    }
    list::page(
        &world,
        "devboxes",
        boxes,
        &query,
        |devbox| devbox.id(),
        |devbox| devbox.view(),
    )
}

async fn update(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    faulted: Faulted,
    Lenient(request): Lenient<Update>,
) -> ApiResult<Json<Value>> {
    if let Some(metadata) = &request.metadata {
        world.refuse_large_metadata(metadata)?;
    }
    if !faulted.has_no_effect() {
        devbox.change(|record| {
            if let Some(name) = request.name {
                record.name = Some(name).filter(|name| !name.is_empty());
            }
            if let Some(metadata) = request.metadata {
                record.metadata = metadata;
            }
        });
    }
    Ok(Json(devbox.view()))
}

async fn wait_for_status(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    Lenient(request): Lenient<WaitForStatus>,
) -> ApiResult<Json<Value>> {
    request.check(|status| DevboxStatus::parse(status).is_some())?;
    let settings = world.settings.get();
    let hold = request.hold(
        settings.devbox_hold_default_seconds,
        settings.devbox_hold_max_seconds,
    )?;
    // `scheduled` is asked for by its old name and shown by its new one.
    let wanted = |status: &str| {
        request.statuses.iter().any(|asked| {
            asked == status || DevboxStatus::parse(asked).is_some_and(|it| it.as_str() == status)
        })
    };
    let seen = || wanted(&devbox.shown_status()).then(|| Json(devbox.view()));
    hold::until_with(devbox.watch(), hold, seen, || devbox.next_script_change()).await
}

/// Certain: 409 while a snapshot is being taken, unless forced by the query;
/// 200 on a box that has ended.
async fn shutdown(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    query: Query,
    faulted: Faulted,
) -> ApiResult<Json<Value>> {
    let is_forced = query.flag("force").unwrap_or(false);
    if devbox.read().snapshots_in_progress > 0 && !is_forced {
        return Err(ApiError::new(
            http::StatusCode::CONFLICT,
            format!(
                "devbox {} has snapshots in progress; use force=true to shut it down",
                devbox.id()
            ),
        ));
    }
    if !faulted.has_no_effect() {
        lifecycle::shut_down(&world, &devbox, "api_shutdown");
    }
    Ok(Json(devbox.view()))
}

async fn suspend(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    faulted: Faulted,
) -> ApiResult<Json<Value>> {
    if !faulted.has_no_effect() {
        lifecycle::suspend(&world, &devbox)?;
    }
    Ok(Json(devbox.view()))
}

async fn resume(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    faulted: Faulted,
) -> ApiResult<Json<Value>> {
    if !faulted.has_no_effect() {
        lifecycle::resume(&world, &devbox)?;
    }
    Ok(Json(devbox.view()))
}

/// Resets the idle timer, not the lifetime (certain).
async fn keep_alive(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    faulted: Faulted,
) -> ApiResult<Json<Value>> {
    if !faulted.has_no_effect() {
        devbox.touch(world.clock.now_ms());
    }
    Ok(Json(json!({})))
}

async fn usage(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
) -> ApiResult<Json<Value>> {
    Ok(Json(devbox.usage(world.clock.now_ms())))
}
