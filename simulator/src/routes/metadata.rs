//! `…/metadata/keys` and `…/metadata/keys/{key}/values`: what is in use.
//!
//! Only in the specification; no official client of today calls them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::layers::Caller;
use crate::state::World;

type Metadata = BTreeMap<String, String>;

pub(super) fn router() -> Router<Arc<World>> {
    Router::new()
        .route("/v1/devboxes/metadata/keys", get(devbox_keys))
        .route(
            "/v1/devboxes/metadata/keys/{key}/values",
            get(devbox_values),
        )
        .route(
            "/v1/devboxes/disk_snapshots/metadata/keys",
            get(snapshot_keys),
        )
        .route(
            "/v1/devboxes/disk_snapshots/metadata/keys/{key}/values",
            get(snapshot_values),
        )
}

fn of_devboxes(world: &World, caller: &Caller) -> Vec<Metadata> {
    let boxes = world.devboxes.list(&caller.account_id);
    boxes
        .iter()
        .map(|devbox| devbox.read().metadata.clone())
        .collect()
}

fn of_snapshots(world: &World, caller: &Caller) -> Vec<Metadata> {
    let snapshots = world.snapshots.list(&caller.account_id);
    snapshots
        .into_iter()
        .map(|snapshot| snapshot.metadata)
        .collect()
}

fn keys(all: &[Metadata]) -> Json<Value> {
    let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    Json(json!({ "keys": keys }))
}

fn values(all: &[Metadata], key: &str) -> Json<Value> {
    let values: BTreeSet<&String> = all
        .iter()
        .filter_map(|metadata| metadata.get(key))
        .collect();
    Json(json!({ "key": key, "values": values }))
}

async fn devbox_keys(State(world): State<Arc<World>>, caller: Caller) -> Json<Value> {
    keys(&of_devboxes(&world, &caller))
}

async fn devbox_values(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(key): Path<String>,
) -> Json<Value> {
    values(&of_devboxes(&world, &caller), &key)
}

async fn snapshot_keys(State(world): State<Arc<World>>, caller: Caller) -> Json<Value> {
    keys(&of_snapshots(&world, &caller))
}

async fn snapshot_values(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(key): Path<String>,
) -> Json<Value> {
    values(&of_snapshots(&world, &caller), &key)
}
