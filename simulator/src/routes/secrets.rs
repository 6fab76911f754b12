//! `/v1/secrets`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;

use super::{Lenient, Query, list};
use crate::error::ApiResult;
use crate::faults::Faulted;
use crate::layers::Caller;
use crate::state::World;
use crate::state::secrets::{CreateSecret, Secret, UpdateSecret};

pub(super) fn router() -> Router<Arc<World>> {
    Router::new()
        .route("/v1/secrets", get(page).post(create))
        .route("/v1/secrets/{name}", get(retrieve).post(update))
        .route("/v1/secrets/{name}/delete", post(delete))
}

async fn create(
    State(world): State<Arc<World>>,
    caller: Caller,
    Lenient(request): Lenient<CreateSecret>,
) -> ApiResult<Json<Value>> {
    let secret = world
        .secrets
        .create(&caller.account_id, request, world.clock.now_ms())?;
    Ok(Json(secret.view()))
}

async fn retrieve(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<Json<Value>> {
    Ok(Json(world.secrets.get(&caller.account_id, &name)?.view()))
}

async fn page(
    State(world): State<Arc<World>>,
    caller: Caller,
    query: Query,
) -> ApiResult<Json<Value>> {
    let secrets = world.secrets.list(&caller.account_id);
    list::page(
        &world,
        "secrets",
        secrets,
        &query,
        |secret| &secret.id,
        Secret::view,
    )
}

async fn update(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(name): Path<String>,
    faulted: Faulted,
    Lenient(request): Lenient<UpdateSecret>,
) -> ApiResult<Json<Value>> {
    let secret = if faulted.has_no_effect() {
        world.secrets.get(&caller.account_id, &name)?
    } else {
        world
            .secrets
            .update(&caller.account_id, &name, request, world.clock.now_ms())?
    };
    Ok(Json(secret.view()))
}

async fn delete(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(name): Path<String>,
    faulted: Faulted,
) -> ApiResult<Json<Value>> {
    let secret = if faulted.has_no_effect() {
        world.secrets.get(&caller.account_id, &name)?
    } else {
        world.secrets.delete(&caller.account_id, &name)?
    };
    Ok(Json(secret.view()))
}
