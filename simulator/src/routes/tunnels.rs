//! `…/enable_tunnel` and `…/remove_tunnel`: the record of a box's tunnel.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::post;
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Value, json};

use super::Lenient;
use crate::error::{ApiError, ApiResult};
use crate::faults::Faulted;
use crate::layers::Caller;
use crate::state::World;
use crate::state::tunnels::{Tunnel, TunnelConfig};

pub(super) fn router() -> Router<Arc<World>> {
    Router::new()
        .route("/v1/devboxes/{id}/enable_tunnel", post(enable))
        .route("/v1/devboxes/{id}/remove_tunnel", post(remove))
}

/// Certain: 400 on a box that is not running, and on one that has a tunnel.
async fn enable(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
    faulted: Faulted,
    Lenient(config): Lenient<TunnelConfig>,
) -> ApiResult<Json<Value>> {
    let devbox = world.devboxes.get(&caller.account_id, &id)?;
    devbox.running_guest(400)?;
    let tunnel = Tunnel::new(config, world.clock.now_ms());
    let view = tunnel.view();
    if !faulted.has_no_effect() {
        devbox.change(|record| match record.tunnel {
            Some(_) => Err(ApiError::bad_request(format!(
                "devbox {id} already has a tunnel"
            ))),
            None => {
                record.tunnel = Some(tunnel);
                Ok(())
            }
        })?;
    }
    Ok(Json(view))
}

/// What removing none gives is unknown: a switch.
async fn remove(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
    faulted: Faulted,
) -> ApiResult<Json<Value>> {
    let devbox = world.devboxes.get(&caller.account_id, &id)?;
    if faulted.has_no_effect() {
        return Ok(Json(json!({})));
    }
    let status = world.settings.get().no_tunnel_status;
    if devbox.change(|record| record.tunnel.take()).is_none() && status != 200 {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        return Err(ApiError::new(status, format!("devbox {id} has no tunnel")));
    }
    Ok(Json(json!({})))
}
