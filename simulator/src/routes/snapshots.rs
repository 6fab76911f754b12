//! `…/snapshot_disk*` and `/v1/devboxes/disk_snapshots/*`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Value, json};

use super::addressed::OfDevbox;
use super::{Lenient, Query, list};
use crate::error::{ApiError, ApiResult};
use crate::faults::Faulted;
use crate::layers::Caller;
use crate::state::World;
use crate::state::snapshots::{self, Snapshot, SnapshotFields, SnapshotStatus};

pub(super) fn router() -> Router<Arc<World>> {
    let one = "/v1/devboxes/disk_snapshots/{id}";
    Router::new()
        .route("/v1/devboxes/{id}/snapshot_disk", post(take_and_wait))
        .route("/v1/devboxes/{id}/snapshot_disk_async", post(take))
        .route("/v1/devboxes/disk_snapshots", get(page))
        .route(one, post(update))
        .route(&format!("{one}/status"), get(status))
        .route(&format!("{one}/delete"), post(delete))
}

async fn take(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    faulted: Faulted,
    Lenient(fields): Lenient<SnapshotFields>,
) -> ApiResult<Json<Value>> {
    let snapshot = snapshots::take(&world, &devbox, fields, faulted.snapshot_outcome())?;
    Ok(Json(snapshot.view()))
}

/// The work goes on when the client leaves. What a failed snapshot answers
/// here is unknown: 500 with its message.
async fn take_and_wait(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    faulted: Faulted,
    Lenient(fields): Lenient<SnapshotFields>,
) -> ApiResult<Json<Value>> {
    let begun = snapshots::take(&world, &devbox, fields, faulted.snapshot_outcome())?;
    let snapshot = world
        .snapshots
        .settled(&devbox.origin.account_id, &begun.id)
        .await?;
    match (snapshot.status, &snapshot.error_message) {
        (SnapshotStatus::Error, message) => {
            Err(ApiError::internal(message.clone().unwrap_or_default()))
        }
        _ => Ok(Json(snapshot.view())),
    }
}

async fn status(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    Ok(Json(
        world.snapshots.get(&caller.account_id, &id)?.status_view(),
    ))
}

/// Filters: `devbox_id` (404 if there is no such box, by the specification),
/// `source_blueprint_id`, `metadata[key]=value`, `metadata[key][in]=a,b`.
async fn page(
    State(world): State<Arc<World>>,
    caller: Caller,
    query: Query,
) -> ApiResult<Json<Value>> {
    let mut found = world.snapshots.list(&caller.account_id);
    if let Some(id) = query.get("devbox_id") {
        world.devboxes.get(&caller.account_id, id)?;
        found.retain(|snapshot| snapshot.source_devbox_id == id);
    }
    if let Some(id) = query.get("source_blueprint_id") {
        found.retain(|snapshot| snapshot.source_blueprint_id.as_deref() == Some(id));
    }
    for (name, value) in query.iter() {
        if let Some(filter) = name.strip_prefix("metadata[") {
            found.retain(|snapshot| metadata_fits(snapshot, filter, value));
        }
    }
    list::page(
        &world,
        "snapshots",
        found,
        &query,
        |snapshot| &snapshot.id,
        Snapshot::view,
    )
}

/// `filter` is `key]` or `key][in]`.
fn metadata_fits(snapshot: &Snapshot, filter: &str, value: &str) -> bool {
    match filter.strip_suffix("][in]") {
        Some(key) => {
            let found = snapshot.metadata.get(key);
            found.is_some_and(|found| value.split(',').any(|wanted| wanted == found))
        }
        None => {
            let key = filter.strip_suffix(']').unwrap_or(filter);
            snapshot
                .metadata
                .get(key)
                .is_some_and(|found| found == value)
        }
    }
}

async fn update(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
    faulted: Faulted,
    Lenient(fields): Lenient<SnapshotFields>,
) -> ApiResult<Json<Value>> {
    let snapshot = if faulted.has_no_effect() {
        world.snapshots.get(&caller.account_id, &id)?
    } else {
        fields.check(&world)?;
        world.snapshots.update(&caller.account_id, &id, fields)?
    };
    Ok(Json(snapshot.view()))
}

async fn delete(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
    faulted: Faulted,
) -> ApiResult<Json<Value>> {
    if faulted.has_no_effect() {
        world.snapshots.get(&caller.account_id, &id)?;
        return Ok(Json(json!({})));
    }
    let was_there = world.snapshots.delete(&caller.account_id, &id).await?;
    repeated_delete(&world, was_there, "snapshot", &id)
}

/// What a second delete gives is inferred (200) for clients clean up that way:
/// a switch.
pub(super) fn repeated_delete(
    world: &World,
    was_there: bool,
    kind: &str,
    id: &str,
) -> ApiResult<Json<Value>> {
    let status = world.settings.get().repeated_delete_status;
    if was_there || status == 200 {
        return Ok(Json(json!({})));
    }
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::NOT_FOUND);
    Err(ApiError::new(
        status,
        format!("{kind} {id} was deleted before"),
    ))
}
