//! `GET /v1/accounts/me`.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::Value;

use crate::error::{ApiError, ApiResult};
use crate::layers::Caller;
use crate::state::World;

pub(super) fn router() -> Router<Arc<World>> {
    Router::new().route("/v1/accounts/me", get(me))
}

async fn me(State(world): State<Arc<World>>, caller: Caller) -> ApiResult<Json<Value>> {
    world
        .accounts
        .view(&caller.account_id)
        .map(Json)
        .ok_or_else(|| ApiError::not_found("account", &caller.account_id))
}
