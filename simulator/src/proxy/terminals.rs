//! The terminals behind `http://13-{tunnel_key}.tunnel.{domain}`.
//!
//! Certain: `GET /pty/{session}` makes or finds a session, its `connect_url` is
//! a WebSocket of raw frames whose one client at a time names the tunnel's
//! token as its subprotocol, `POST /pty/{session}/control` resizes, signals and
//! closes, and close code 4000 says that the shell has ended. The values of
//! `status` and the text that comes with 4000 are unknown.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::{SinkExt, StreamExt};
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::TUNNEL_AUTHORIZATION;
use crate::error::{ApiError, ApiResult};
use crate::routes::{Lenient, Query};
use crate::state::World;
use crate::state::devboxes::Devbox;
use crate::state::terminals::{Attachment, Size};

/// The port of a tunnel under which its box's terminals are (certain).
pub(super) const PORT: u16 = 13;

/// The shell has ended.
const ENDED: u16 = 4000;

/// How long a client may take to answer the end of a session.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

const MAX_NAME_BYTES: usize = 256;

/// A box whose tunnel's token the request has shown.
#[derive(Clone)]
struct Guarded {
    world: Arc<World>,
    devbox: Arc<Devbox>,
    token: String,
}

/// Serves one request to a box's terminals.
pub(super) async fn serve(
    world: &Arc<World>,
    devbox: Arc<Devbox>,
    token: String,
    request: Request,
) -> ApiResult<Response> {
    if !shows(request.headers(), &token) {
        return Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "this tunnel wants its token in X-Runloop-Tunnel-Authorization",
        ));
    }
    devbox.touch(world.clock.now_ms());
    let guarded = Guarded {
        world: Arc::clone(world),
        devbox,
        token,
    };
    let router = Router::new()
        .route("/pty/{session}", get(bootstrap))
        .route("/pty/{session}/attach", get(attach))
        .route("/pty/{session}/control", post(control))
        .fallback(async || ApiError::new(StatusCode::NOT_FOUND, "only terminals are here"))
        .with_state(guarded);
    match router.oneshot(request).await {
        Ok(response) => Ok(response),
        Err(never) => match never {},
    }
}

/// Whether the tunnel's token is in its own header, in `Authorization` as
/// official clients send it, or among the WebSocket's subprotocols.
fn shows(headers: &HeaderMap, token: &str) -> bool {
    let bearer = format!("Bearer {token}");
    let in_header = [TUNNEL_AUTHORIZATION, AUTHORIZATION]
        .iter()
        .filter_map(|name| headers.get(name))
        .any(|value| value.as_bytes() == bearer.as_bytes());
    let mut offers = headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    in_header || offers.any(|offer| offer.trim() == token)
}

fn check_name(name: &str) -> ApiResult<()> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_legal) {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "a session name is 1 to 256 of [A-Za-z0-9_-]",
    ))
}

/// A size counts only where both numbers are given and legal (certain).
async fn bootstrap(
    State(of): State<Guarded>,
    Path(name): Path<String>,
    query: Query,
) -> ApiResult<Json<Value>> {
    check_name(&name)?;
    let asked = |name: &str| query.get(name).and_then(|value| value.parse().ok());
    let size = asked("cols")
        .zip(asked("rows"))
        .and_then(|(columns, rows)| Size::new(columns, rows));
    let guest = of.devbox.running_guest(503)?;
    let (session, created) = of
        .devbox
        .terminals
        .open(
            &guest,
            &name,
            size,
            &of.world.settings.get(),
            of.world.clock.now_ms(),
        )
        .await?;
    let size = session.size();
    Ok(Json(json!({
        "session_name": name,
        "status": "active",
        "protocol_version": "1",
        "connect_url": format!("/pty/{name}/attach?token={}", session.token),
        "created": created,
        "attached": session.is_attached(),
        "cols": size.columns,
        "rows": size.rows,
        "idle_ttl_seconds": session.idle_ttl_seconds,
    })))
}

/// A second client is refused here and not at the bootstrap (certain).
async fn attach(
    State(of): State<Guarded>,
    Path(name): Path<String>,
    query: Query,
    upgrade: WebSocketUpgrade,
) -> ApiResult<Response> {
    let session = of.devbox.terminals.get(&name)?;
    if query.get("token") != Some(session.token.as_str()) {
        return Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "the token is not that of the session's connect_url",
        ));
    }
    let world = Arc::clone(&of.world);
    let attachment = session.attach(Box::new(move || world.clock.now_ms()))?;
    // A client that offered a subprotocol takes no answer without one.
    Ok(upgrade
        .protocols([Cow::Owned::<'static, str>(of.token.clone())])
        .on_upgrade(async move |socket| carry(socket, attachment, &of).await))
}

/// Carries both ways until the client leaves or the session ends.
async fn carry(socket: WebSocket, mut attachment: Attachment, of: &Guarded) {
    let (mut to_client, mut from_client) = socket.split();
    let session = Arc::clone(&attachment.session);
    let typed = async {
        while let Some(Ok(message)) = from_client.next().await {
            let bytes = match message {
                Message::Binary(bytes) => bytes,
                Message::Text(text) => text.into(),
                Message::Ping(_) | Message::Pong(_) => continue,
                Message::Close(_) => return,
            };
            of.devbox.touch(of.world.clock.now_ms());
            if session.write(&bytes).await.is_err() {
                // The end of the output follows.
                std::future::pending::<()>().await;
            }
        }
    };
    let shown = async {
        while let Some(bytes) = attachment.output.recv().await {
            if to_client.send(Message::Binary(bytes)).await.is_err() {
                return false;
            }
        }
        true
    };
    let has_ended = tokio::select! {
        () = typed => false,
        has_ended = shown => has_ended,
        () = of.devbox.ended.cancelled() => true,
    };
    if has_ended {
        let reason = session
            .exit_code()
            .map_or_else(|| "closed".to_owned(), |code| format!("exit status {code}"));
        let frame = CloseFrame {
            code: ENDED,
            reason: reason.into(),
        };
        // The client answers the close, unless it has left.
        let farewell = async {
            if to_client.send(Message::Close(Some(frame))).await.is_ok() {
                while let Some(Ok(_)) = from_client.next().await {}
            }
        };
        tokio::time::timeout(CLOSE_LIMIT, farewell)
            .await
            .unwrap_or_default();
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Resize,
    Signal,
    Close,
}

#[derive(Debug, Deserialize)]
struct Control {
    action: Action,
    cols: Option<i64>,
    rows: Option<i64>,
    signal: Option<String>,
}

async fn control(
    State(of): State<Guarded>,
    Path(name): Path<String>,
    Lenient(request): Lenient<Control>,
) -> ApiResult<Json<Value>> {
    let session = of.devbox.terminals.get(&name)?;
    let status = match request.action {
        Action::Resize => {
            let (columns, rows) = request.cols.zip(request.rows).unwrap_or_default();
            let size = Size::new(columns, rows)
                .ok_or_else(|| ApiError::bad_request("cols and rows must be 1 to 1000"))?;
            session.resize(size).await?;
            "active"
        }
        Action::Signal => {
            let name = request.signal.unwrap_or_default();
            let signal = name
                .parse()
                .map_err(|error| ApiError::bad_request(format!("{name}: {error}")))?;
            session.signal(signal).await?;
            "active"
        }
        Action::Close => {
            of.devbox.terminals.close(&name)?;
            "closed"
        }
    };
    Ok(Json(json!({ "session_name": name, "status": status })))
}
