//! The HTTP surface: one file a resource, each with a `router()`.
//!
//! A route reads its request leniently (an explicit JSON `null` is an absent
//! field, an empty body is `{}`), asks `state` to act and shows the view that
//! `state` gives. Start reading in `devboxes.rs`.

mod accounts;
mod addressed;
mod blueprints;
mod body;
mod devboxes;
mod evictions;
mod executions;
mod files;
mod hold;
mod list;
mod logs;
mod metadata;
mod policies;
mod secrets;
mod snapshots;
mod ssh;
mod streams;
mod tunnels;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use percent_encoding::percent_decode_str;

use crate::error::ApiError;
use crate::faults;
use crate::layers::{Unexpected, authenticate, limit, own_pages_only, record, replay};
use crate::proxy;
use crate::state::World;

pub(crate) use body::{Exact, Lenient};

/// The whole API with its layers, and the simulator's own control surface.
pub(crate) fn router(world: Arc<World>) -> Router {
    let api = Router::new()
        .merge(accounts::router())
        .merge(devboxes::router())
        .merge(executions::router())
        .merge(streams::router())
        .merge(logs::router())
        .merge(files::router())
        .merge(snapshots::router())
        .merge(tunnels::router())
        .merge(ssh::router())
        .merge(evictions::router())
        .merge(policies::router())
        .merge(blueprints::router())
        .merge(secrets::router())
        .merge(metadata::router())
        .fallback(unexpected)
        .method_not_allowed_fallback(unexpected)
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::clone(&world), replay))
        .layer(from_fn_with_state(Arc::clone(&world), authenticate))
        .layer(from_fn_with_state(Arc::clone(&world), limit))
        .layer(from_fn_with_state(Arc::clone(&world), faults::apply))
        .layer(from_fn_with_state(Arc::clone(&world), record))
        .with_state(Arc::clone(&world));
    Router::new()
        .nest("/_simulator", crate::control::router(Arc::clone(&world)))
        .merge(crate::page::router(Arc::clone(&world)))
        .fallback_service(api)
        .layer(from_fn(own_pages_only))
        .layer(from_fn_with_state(world, proxy::divert))
}

async fn unexpected(request: Request) -> Response {
    let message = format!("no route for {} {}", request.method(), request.uri().path());
    let mut response = ApiError::new(StatusCode::NOT_FOUND, message).into_response();
    response.extensions_mut().insert(Unexpected);
    response
}

/// The decoded pairs of a query string; brackets may arrive percent-encoded.
pub(crate) fn query_pairs(query: Option<&str>) -> impl Iterator<Item = (String, String)> {
    query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
}

fn decode(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

/// Query parameters by name; unknown ones are ignored, as the service does.
#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// A parameter that is present and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// A number; what is not one is a 400.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        self.get(name)
            .map(|value| {
                value.parse().map_err(|_error| {
                    ApiError::bad_request(format!("query parameter {name} must be a number"))
                })
            })
            .transpose()
    }

    /// All pairs, for filters with free names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `true` and `1` are true, anything else is false.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.get(name)
            .map(|value| value.eq_ignore_ascii_case("true") || value == "1")
    }
}

impl<S: Sync> axum::extract::FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        _state: &S,
    ) -> Result<Self, ApiError> {
        Ok(Self(query_pairs(parts.uri.query()).collect()))
    }
}
