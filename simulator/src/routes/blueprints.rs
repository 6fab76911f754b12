//! `/v1/blueprints`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::snapshots::repeated_delete;
use super::{Lenient, Query, list};
use crate::error::{ApiError, ApiResult};
use crate::faults::Faulted;
use crate::layers::Caller;
use crate::state::World;
use crate::state::blueprints::Blueprint;
use crate::state::build;
use crate::state::choices::NameMatch;

pub(super) fn router() -> Router<Arc<World>> {
    Router::new()
        .route("/v1/blueprints", get(page).post(create))
        .route("/v1/blueprints/list_public", get(public_page))
        .route("/v1/blueprints/{id}", get(retrieve))
        .route("/v1/blueprints/{id}/logs", get(logs))
        .route("/v1/blueprints/{id}/delete", post(delete))
}

async fn create(
    State(world): State<Arc<World>>,
    caller: Caller,
    faulted: Faulted,
    Lenient(parameters): Lenient<Map<String, Value>>,
) -> ApiResult<Json<Value>> {
    let outcome = faulted.build_outcome();
    Ok(Json(
        build::create(&world, &caller.account_id, parameters, outcome)?.view(),
    ))
}

/// By id only (certain); a deleted one is still found.
async fn retrieve(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    Ok(Json(world.blueprints.get(&caller.account_id, &id)?.view()))
}

async fn page(
    State(world): State<Arc<World>>,
    caller: Caller,
    query: Query,
) -> ApiResult<Json<Value>> {
    filtered_page(&world, world.blueprints.list(&caller.account_id), &query)
}

async fn public_page(State(world): State<Arc<World>>, query: Query) -> ApiResult<Json<Value>> {
    filtered_page(&world, world.blueprints.list_public(), &query)
}

fn filtered_page(
    world: &World,
    mut blueprints: Vec<Blueprint>,
    query: &Query,
) -> ApiResult<Json<Value>> {
    if let Some(name) = query.get("name") {
        let how = world.settings.get().blueprint_name_match;
        blueprints.retain(|blueprint| match how {
            NameMatch::Partial => blueprint.name.contains(name),
            NameMatch::Exact => blueprint.name == name,
        });
    }
    if let Some(status) = query.get("status") {
        blueprints.retain(|blueprint| json!(blueprint.status) == status);
    }
    list::page(
        world,
        "blueprints",
        blueprints,
        query,
        |blueprint| &blueprint.id,
        Blueprint::view,
    )
}

async fn logs(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let blueprint = world.blueprints.get(&caller.account_id, &id)?;
    Ok(Json(json!({ "blueprint_id": id, "logs": blueprint.logs })))
}

/// Certain: 400 while snapshots of its boxes are there, and the body lists
/// them.
async fn delete(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
    faulted: Faulted,
) -> ApiResult<Json<Value>> {
    let blueprint = world.blueprints.get(&caller.account_id, &id)?;
    if blueprint.is_public() {
        return Err(ApiError::bad_request(format!("blueprint {id} is public")));
    }
    let snapshots = world.snapshots.list(&caller.account_id);
    let dependents: Vec<&str> = snapshots
        .iter()
        .filter(|snapshot| snapshot.source_blueprint_id.as_deref() == Some(&id))
        .map(|snapshot| snapshot.id.as_str())
        .collect();
    if !dependents.is_empty() {
        return Err(ApiError::bad_request(format!(
            "blueprint {id} has dependent snapshots: {}",
            dependents.join(", ")
        )));
    }
    if faulted.has_no_effect() {
        return Ok(Json(json!({})));
    }
    let layer = world.blueprints.change(&id, |blueprint| {
        blueprint.is_deleted = true;
        blueprint.layer.take()
    });
    if let Some(layer) = layer.flatten() {
        layer
            .delete()
            .await
            .map_err(crate::state::executions::guest_failed)?;
    }
    repeated_delete(&world, !blueprint.is_deleted, "blueprint", &id)
}
