//! `/v1/network-policies`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;

use super::{Lenient, Query, list};
use crate::error::{ApiError, ApiResult};
use crate::faults::Faulted;
use crate::layers::Caller;
use crate::state::World;
use crate::state::policies::{Names, Policy, PolicyFields};

pub(super) fn router() -> Router<Arc<World>> {
    Router::new()
        .route("/v1/network-policies", get(page).post(create))
        .route("/v1/network-policies/{id}", get(retrieve).post(update))
        .route("/v1/network-policies/{id}/delete", post(delete))
}

async fn create(
    State(world): State<Arc<World>>,
    caller: Caller,
    Lenient(fields): Lenient<PolicyFields>,
) -> ApiResult<Json<Value>> {
    let policy = world.policies.create(
        &caller.account_id,
        fields,
        names(&world),
        world.clock.now_ms(),
    )?;
    Ok(Json(policy.view()))
}

fn names(world: &World) -> Names {
    if world.settings.get().unique_policy_names {
        Names::Unique
    } else {
        Names::Reusable
    }
}

async fn retrieve(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    Ok(Json(world.policies.get(&caller.account_id, &id)?.view()))
}

/// `name` and `search` are partial matches, `id` an exact one.
async fn page(
    State(world): State<Arc<World>>,
    caller: Caller,
    query: Query,
) -> ApiResult<Json<Value>> {
    let mut policies = world.policies.list(&caller.account_id);
    policies.retain(|policy| {
        query
            .get("name")
            .is_none_or(|part| policy.name.contains(part))
            && query
                .get("search")
                .is_none_or(|part| policy.name.contains(part))
            && query.get("id").is_none_or(|id| policy.id == id)
    });
    list::page(
        &world,
        "network_policies",
        policies,
        &query,
        |policy| &policy.id,
        Policy::view,
    )
}

async fn update(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
    faulted: Faulted,
    Lenient(fields): Lenient<PolicyFields>,
) -> ApiResult<Json<Value>> {
    let policy = if faulted.has_no_effect() {
        world.policies.get(&caller.account_id, &id)?
    } else {
        world.policies.update(
            &caller.account_id,
            &id,
            fields,
            names(&world),
            world.clock.now_ms(),
        )?
    };
    Ok(Json(policy.view()))
}

/// Certain: 400 while a live Devbox uses it. Whether a suspended one counts is
/// unknown: a switch.
async fn delete(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
    faulted: Faulted,
) -> ApiResult<Json<Value>> {
    let policy = world.policies.get(&caller.account_id, &id)?;
    let users = world.users_of_policy(&caller.account_id, &id);
    if !users.is_empty() {
        return Err(ApiError::bad_request(format!(
            "network policy {id} is in use by {}",
            users.join(", ")
        )));
    }
    if !faulted.has_no_effect() {
        world.policies.delete(&caller.account_id, &id)?;
    }
    Ok(Json(policy.view()))
}
