//! The API key: `Authorization: Bearer ak_…`.
//!
//! Any key with that prefix is accepted unless one is pinned; each key belongs
//! to one account, and every resource belongs to the account that made it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::error::ApiError;
use crate::state::World;
use crate::state::accounts::AccountKey;

/// The account that a request acts for.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) account_id: AccountKey,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| ApiError::internal("the route stands outside the key check"))
    }
}

/// Lets a request with a known key through, as its account's.
pub(crate) async fn authenticate(
    State(world): State<Arc<World>>,
    mut request: Request,
    next: Next,
) -> Response {
    let key = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    match key.and_then(|key| world.accounts.for_api_key(key)) {
        Some(account_id) => {
            request.extensions_mut().insert(Caller { account_id });
            next.run(request).await
        }
        None => {
            let message = if key.is_some() {
                "the API key is invalid"
            } else {
                "authentication required: send `Authorization: Bearer <key>`"
            };
            ApiError::new(StatusCode::UNAUTHORIZED, message).into_response()
        }
    }
}
