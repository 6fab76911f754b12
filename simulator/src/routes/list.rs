//! Cursor pagination, the same for every list route.
//!
//! 20 items unless asked, at most 5000.

use axum::Json;
use serde_json::{Value, json};

use super::Query;
use crate::error::{ApiError, ApiResult};
use crate::state::World;
use crate::state::choices::{ListOrder, UnknownCursor};
use crate::state::view::with_optional;

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 5000;

/// Cuts one page out of `items` (newest first) and shows it under `key`.
pub(super) fn page<T>(
    world: &World,
    key: &str,
    mut items: Vec<T>,
    query: &Query,
    id_of: impl Fn(&T) -> &str,
    view_of: impl Fn(&T) -> Value,
) -> ApiResult<Json<Value>> {
    let settings = world.settings.get();
    if settings.list_order == ListOrder::Oldest {
        items.reverse();
    }
    let limit = query
        .number::<usize>("limit")?
        .unwrap_or(DEFAULT_LIMIT)
        .clamp(1, MAX_LIMIT);
    let start = match query.get("starting_after") {
        None => 0,
        Some(cursor) => {
            let position = items.iter().position(|item| id_of(item) == cursor);
            match (position, settings.unknown_cursor) {
                (Some(position), _) => position + 1,
                (None, UnknownCursor::EmptyPage) => items.len(),
                (None, UnknownCursor::BadRequest) => {
                    let message = format!("starting_after: there is no item {cursor}");
                    return Err(ApiError::bad_request(message));
                }
            }
        }
    };
    let rest = items.get(start..).unwrap_or_default();
    let shown: Vec<Value> = rest.iter().take(limit).map(view_of).collect();
    let counted = query
        .flag("include_total_count")
        .unwrap_or(true)
        .then(|| json!(items.len()));
    let required = json!({ key: shown, "has_more": rest.len() > limit });
    Ok(Json(with_optional(required, [("total_count", counted)])))
}
