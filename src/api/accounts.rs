//! The account behind a key.

use crate::message::Request;

/// `GET /v1/accounts/me`. Certain: it stands in the official TypeScript client.
#[must_use]
pub fn me() -> Request {
    Request::get("/v1/accounts/me".to_owned())
}
