//! Blueprints: read one, and find the builds of a name.

use super::path::{path, query};
use crate::message::Request;

/// `GET /v1/blueprints/{id}`. An id only; a deleted one still answers 200.
#[must_use]
pub fn get(id: &str) -> Request {
    Request::get(path(["blueprints", id]))
}

/// `GET /v1/blueprints?name=`. Exact or partial is unknown, so the caller compares.
#[must_use]
pub fn find(name: &str) -> Request {
    let mut path = path(["blueprints"]);
    query(&mut path, "name", name);
    query(&mut path, "limit", "100");
    Request::get(path)
}

/// `GET /v1/blueprints/list_public?name=`.
#[must_use]
pub fn find_public(name: &str) -> Request {
    let mut path = path(["blueprints", "list_public"]);
    query(&mut path, "name", name);
    query(&mut path, "limit", "100");
    Request::get(path)
}
