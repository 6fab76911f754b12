//! `…/enable_tunnel`, `…/remove_tunnel` and `…/create_pty_tunnel`: the records of a
//! box's tunnels.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Value, json};

use super::Lenient;
use super::addressed::OfDevbox;
use crate::error::{ApiError, ApiResult};
use crate::faults::Faulted;
use crate::state::World;
use crate::state::tunnels::{Tunnel, TunnelConfig};

pub(super) fn router() -> Router<Arc<World>> {
    Router::new()
        .route("/v1/devboxes/{id}/enable_tunnel", post(enable))
        .route("/v1/devboxes/{id}/remove_tunnel", post(remove))
        .route("/v1/devboxes/{id}/create_pty_tunnel", post(create_pty))
}

/// Certain: 400 on a box that is not running, and on one that has a tunnel.
async fn enable(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    faulted: Faulted,
    Lenient(config): Lenient<TunnelConfig>,
) -> ApiResult<Json<Value>> {
    devbox.running_guest(400)?;
    let tunnel = Tunnel::new(config, world.clock.now_ms());
    let view = tunnel.view();
    if !faulted.has_no_effect() {
        devbox.change(|record| match record.tunnel {
            Some(_) => Err(ApiError::bad_request(format!(
                "devbox {} already has a tunnel",
                devbox.id()
            ))),
            None => {
                record.tunnel = Some(tunnel);
                Ok(())
            }
        })?;
    }
    Ok(Json(view))
}

/// Certain: 400 on a box that is not running; each call makes a fresh one.
async fn create_pty(OfDevbox(devbox): OfDevbox) -> ApiResult<Json<Value>> {
    devbox.running_guest(400)?;
    let tunnel = devbox.terminals.create_tunnel();
    Ok(Json(json!({
        "tunnel_key": tunnel.key,
        "auth_token": tunnel.auth_token,
    })))
}

/// What removing none gives is unknown: a switch.
async fn remove(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    faulted: Faulted,
) -> ApiResult<Json<Value>> {
    if faulted.has_no_effect() {
        return Ok(Json(json!({})));
    }
    let status = world.settings.get().no_tunnel_status;
    if devbox.change(|record| record.tunnel.take()).is_none() && status != 200 {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        return Err(ApiError::new(
            status,
            format!("devbox {} has no tunnel", devbox.id()),
        ));
    }
    Ok(Json(json!({})))
}
