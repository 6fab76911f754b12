//! Carrying out the actions that concern any request.
//!
//! First every action that comes before the route, then the route, then every
//! action that comes after, each in the order of its rule. The first answer
//! that is made before the route is final.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, LOCATION};
use http::{HeaderValue, StatusCode, Uri};

use super::cut::End;
use super::reply;
use super::rule::{Action, Drop, Redirect};
use super::store::Hits;
use crate::error::ApiError;
use crate::journal::{Slot, lock_entry};
use crate::server::{Connection, Hangup};
use crate::state::World;

/// Lets the rules that match act on the request.
pub(crate) async fn apply(
    State(world): State<Arc<World>>,
    request: Request,
    next: Next,
) -> Response {
    let slot = request.extensions().get::<Slot>().cloned();
    let hits = {
        let entry = slot.as_ref().map(lock_entry);
        let body = entry.as_ref().and_then(|entry| entry.body.as_ref());
        Arc::new(world.faults.hits(request.method(), request.uri(), body))
    };
    if hits.is_empty() {
        return next.run(request).await;
    }
    if let Some(slot) = &slot {
        lock_entry(slot).faults = hits.ids().map(str::to_owned).collect();
    }
    let authorization = request.headers().get(AUTHORIZATION).cloned();
    let connection = request.extensions().get::<Arc<Connection>>().cloned();
    let sender = Sender {
        connection,
        authorization,
    };
    // What a rule delays still acts when the client has left meanwhile.
    let carried_out = tokio::spawn(carry_out(world, hits, sender, request, next));
    carried_out
        .await
        .unwrap_or_else(|error| ApiError::internal(error.to_string()).into_response())
}

async fn carry_out(
    world: Arc<World>,
    hits: Arc<Hits>,
    sender: Sender,
    mut request: Request,
    next: Next,
) -> Response {
    if let Some(response) = before(&world, &hits, &sender, request.uri()).await {
        return after(&world, &hits, &sender, response, Acted::No).await;
    }
    for action in hits.actions() {
        if let Action::List(fault) = action {
            fault.spoil_query(request.uri_mut());
        }
    }
    request.extensions_mut().insert(Arc::clone(&hits));
    let response = next.run(request).await;
    after(&world, &hits, &sender, response, Acted::Yes).await
}

/// Who sent the request, as far as an action needs it.
struct Sender {
    connection: Option<Arc<Connection>>,
    authorization: Option<HeaderValue>,
}

#[derive(PartialEq, Eq)]
enum Acted {
    Yes,
    No,
}

async fn before(world: &World, hits: &Hits, sender: &Sender, uri: &Uri) -> Option<Response> {
    for action in hits.actions() {
        match action {
            Action::Latency(wait) => {
                tokio::time::sleep(Duration::from_millis(wait.milliseconds)).await;
            }
            Action::Refuse(reply) => return Some(reply.respond(sender.authorization.as_ref())),
            Action::RateLimit(limit) => {
                let refusal = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate limit exceeded");
                let retry_after = limit.retry_after.as_deref();
                return Some(match retry_after {
                    Some(value) => refusal.header("retry-after", value).into_response(),
                    None => refusal.into_response(),
                });
            }
            Action::Redirect(redirect) => return Some(redirect_to(redirect, uri)),
            Action::DropRequest(how) => return Some(drop_connection(*how)),
            Action::ResetRequest(reset) => {
                return Some(hang_up(Hangup::ResetStream(reset.code as u32)));
            }
            Action::GoawayRequest(_) => return Some(hang_up(Hangup::GoawayBefore)),
            Action::HoldRequest(_) => {
                world.stopping.cancelled().await;
                return Some(hang_up(Hangup::Close));
            }
            _ => {}
        }
    }
    None
}

/// What shapes the sending holds for every answer; what replaces the answer
/// only for one that the route gave.
async fn after(
    world: &World,
    hits: &Hits,
    sender: &Sender,
    mut response: Response,
    acted: Acted,
) -> Response {
    for action in hits.actions() {
        response = match action {
            Action::DelayReply(wait) => {
                tokio::time::sleep(Duration::from_millis(wait.milliseconds)).await;
                response
            }
            Action::ReplaceReply(reply) if acted == Acted::Yes => {
                reply.respond(sender.authorization.as_ref())
            }
            Action::EditReply(edit) => reply::edit(response, edit).await,
            Action::List(fault) => {
                reply::rewrite_json(response, |page| fault.spoil_page(page)).await
            }
            Action::HalveReply(_) => reply::halve(response).await,
            Action::DropReply(how) if acted == Acted::Yes => drop_connection(*how),
            Action::ResetReply(reset) if acted == Acted::Yes => {
                hang_up(Hangup::ResetStream(reset.code as u32))
            }
            Action::GoawayReply(goaway) if acted == Acted::Yes => {
                hang_up(Hangup::Goaway(goaway.code as u32))
            }
            Action::Goaway(_) => {
                if let Some(connection) = &sender.connection {
                    connection.retire();
                }
                response
            }
            Action::HoldReply(_) if acted == Acted::Yes => {
                world.stopping.cancelled().await;
                hang_up(Hangup::Close)
            }
            Action::TruncateReply(cut) => reply::truncate(response, cut.bytes, End::Broken),
            Action::StallReply(cut) => reply::truncate(response, cut.bytes, End::Stalled),
            Action::SlowReply(slow) => reply::slow_down(response, *slow),
            Action::CloseIdle(limit) => {
                if let Some(connection) = &sender.connection {
                    connection.close_when_idle_for(Duration::from_millis(limit.milliseconds));
                }
                response
            }
            _ => response,
        };
    }
    response
}

fn drop_connection(how: Drop) -> Response {
    hang_up(if how.reset {
        Hangup::Reset
    } else {
        Hangup::Close
    })
}

fn hang_up(how: Hangup) -> Response {
    let mut response = StatusCode::BAD_GATEWAY.into_response();
    response.extensions_mut().insert(how);
    response
}

fn redirect_to(redirect: &Redirect, uri: &Uri) -> Response {
    let path = uri
        .path_and_query()
        .map_or("/", http::uri::PathAndQuery::as_str);
    let location = redirect
        .location
        .clone()
        .unwrap_or_else(|| format!("{}{path}", redirect.origin.as_deref().unwrap_or_default()));
    let status = StatusCode::from_u16(redirect.status).unwrap_or(StatusCode::TEMPORARY_REDIRECT);
    let mut response = status.into_response();
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
