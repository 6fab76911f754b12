//! `…/create_ssh_key`: a fresh key. Nothing listens for it: the simulator has
//! no SSH.

use std::sync::Arc;

use axum::routing::post;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use uuid::Uuid;

use super::addressed::OfDevbox;
use crate::state::World;

/// PKCS#8 of an Ed25519 private key up to its 32 bytes of seed.
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

pub(super) fn router() -> Router<Arc<World>> {
    Router::new().route("/v1/devboxes/{id}/create_ssh_key", post(create))
}

async fn create(OfDevbox(devbox): OfDevbox) -> Json<Value> {
    let mut key = PKCS8_PREFIX.to_vec();
    key.extend(Uuid::new_v4().into_bytes());
    key.extend(Uuid::new_v4().into_bytes());
    let body = STANDARD.encode(key);
    let id = devbox.id();
    Json(json!({
        "id": id,
        "url": format!("{id}.ssh.localhost"),
        "ssh_private_key":
            format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"),
        "ssh_user": devbox.origin.launch.user.name,
    }))
}
