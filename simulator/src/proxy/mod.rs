//! The way into a box from outside: `http://{port}-{key}.tunnel.{domain}`.
//!
//! A request whose host names a tunnel never reaches the API: it is checked
//! against the tunnel, wakes or keeps alive the box where the tunnel says so,
//! and is carried to the port as seen from inside the box (`forward.rs`), so
//! two boxes may serve the same port; behind port 13 of a PTY tunnel are the
//! simulator's own terminals (`terminals.rs`). Requests through tunnels are not in the
//! journal, which is the API's.
//!
//! Certain: the form of the host, one tunnel for all ports, the header. What
//! the service answers when it cannot carry a request is unknown; here 404
//! for an unknown key, 401 without the token, 503 for a box that is not
//! running and 502 where nobody listens.

mod forward;
mod host;
mod terminals;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, HeaderName, StatusCode};

use self::host::TunnelHost;
use crate::error::{ApiError, ApiResult};
use crate::state::World;
use crate::state::devboxes::Devbox;
use crate::state::lifecycle;
use crate::state::status::DevboxStatus;

/// How long a request waits for the box that it woke.
const WAKE_LIMIT: Duration = Duration::from_secs(30);

const TUNNEL_AUTHORIZATION: HeaderName = HeaderName::from_static("x-runloop-tunnel-authorization");

/// Takes requests to tunnel hosts out of the API's way.
pub(crate) async fn divert(
    State(world): State<Arc<World>>,
    request: Request,
    next: Next,
) -> Response {
    let authority = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok());
    match authority.or(host).and_then(TunnelHost::parse) {
        Some(target) => carry(&world, &target, request)
            .await
            .unwrap_or_else(IntoResponse::into_response),
        None => next.run(request).await,
    }
}

async fn carry(
    world: &Arc<World>,
    target: &TunnelHost,
    mut request: Request,
) -> ApiResult<Response> {
    if target.port == terminals::PORT
        && let Some((devbox, token)) = find_terminals(world, &target.key)
    {
        return terminals::serve(world, devbox, token, request).await;
    }
    let devbox = find(world, &target.key)?;
    authorize(&devbox, request.headers_mut())?;
    wake(world, &devbox).await?;
    if keeps_alive(&devbox) {
        devbox.touch(world.clock.now_ms());
    }
    let guest = devbox.running_guest(503)?;
    let stream = guest.connect(target.port).await.map_err(|error| {
        ApiError::new(
            StatusCode::BAD_GATEWAY,
            format!(
                "nothing answers on port {} of {}: {error}",
                target.port,
                devbox.id()
            ),
        )
    })?;
    forward::forward(request, stream, devbox.ended.clone())
        .await
        .map_err(|error| {
            ApiError::new(
                StatusCode::BAD_GATEWAY,
                format!("port {} of {} broke off: {error}", target.port, devbox.id()),
            )
        })
}

fn find(world: &World, key: &str) -> ApiResult<Arc<Devbox>> {
    let has_key = |devbox: &Arc<Devbox>| {
        devbox
            .read()
            .tunnel
            .as_ref()
            .is_some_and(|tunnel| tunnel.key == key)
    };
    world
        .devboxes
        .all()
        .into_iter()
        .find(has_key)
        .ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "no tunnel has this name"))
}

/// The box to whose terminals a key leads, and the tunnel's token.
fn find_terminals(world: &World, key: &str) -> Option<(Arc<Devbox>, String)> {
    world.devboxes.all().into_iter().find_map(|devbox| {
        let token = devbox.terminals.tunnel_token(key)?;
        Some((devbox, token))
    })
}

/// Checks the token and takes it off the request: it is between the client
/// and the service. Older examples send it as plain `Authorization`
/// (inferred), which is accepted where the tunnel's own header is missing.
fn authorize(devbox: &Devbox, headers: &mut HeaderMap) -> ApiResult<()> {
    let own = headers.remove(TUNNEL_AUTHORIZATION);
    let Some(token) = devbox
        .read()
        .tunnel
        .as_ref()
        .and_then(|tunnel| tunnel.auth_token.clone())
    else {
        return Ok(());
    };
    let expected = format!("Bearer {token}");
    let holds = |value: &http::HeaderValue| value.as_bytes() == expected.as_bytes();
    match own {
        Some(value) if holds(&value) => Ok(()),
        None if headers.get(AUTHORIZATION).is_some_and(holds) => {
            headers.remove(AUTHORIZATION);
            Ok(())
        }
        _ => Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "this tunnel wants its token in X-Runloop-Tunnel-Authorization",
        )),
    }
}

fn keeps_alive(devbox: &Devbox) -> bool {
    devbox
        .read()
        .tunnel
        .as_ref()
        .is_some_and(|tunnel| tunnel.http_keep_alive)
}

/// Resumes a suspended box whose tunnel says so, and waits for it.
async fn wake(world: &Arc<World>, devbox: &Arc<Devbox>) -> ApiResult<()> {
    if !devbox.wakes_on_http() {
        return Ok(());
    }
    let mut changes = devbox.watch();
    let deadline = tokio::time::Instant::now() + WAKE_LIMIT;
    loop {
        match devbox.status() {
            // Another request may have been quicker; then there is nothing to resume.
            DevboxStatus::Suspended => lifecycle::resume(world, devbox).unwrap_or_default(),
            DevboxStatus::Suspending | DevboxStatus::Resuming => {}
            _ => return Ok(()),
        }
        match tokio::time::timeout_at(deadline, changes.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return Ok(()),
        }
    }
}
