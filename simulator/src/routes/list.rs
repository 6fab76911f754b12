//! Cursor pagination, the same for every list route.
//!
//! Newest first (inferred), 20 items unless asked, at most 5000. An unknown
//! `starting_after` is a 400 (the service's answer is unknown).

use serde_json::{Value, json};

use super::Query;
use crate::error::{ApiError, ApiResult};
use crate::state::view::with_optional;

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 5000;

/// Cuts one page out of `items` (newest first) and shows it under `key`.
pub(crate) fn page<T>(
    key: &str,
    items: &[T],
    query: &Query,
    id_of: impl Fn(&T) -> &str,
    view_of: impl Fn(&T) -> Value,
) -> ApiResult<Value> {
    let limit = query
        .number::<usize>("limit")?
        .unwrap_or(DEFAULT_LIMIT)
        .clamp(1, MAX_LIMIT);
    let start = match query.get("starting_after") {
        None => 0,
        Some(cursor) => items
            .iter()
            .position(|item| id_of(item) == cursor)
            .map(|position| position + 1)
            .ok_or_else(|| ApiError::bad_request(format!("starting_after: no item {cursor}")))?,
    };
    let rest = items.get(start..).unwrap_or_default();
    let shown: Vec<Value> = rest.iter().take(limit).map(view_of).collect();
    let counted = query
        .flag("include_total_count")
        .unwrap_or(true)
        .then(|| json!(items.len()));
    let required = json!({ key: shown, "has_more": rest.len() > limit });
    Ok(with_optional(required, [("total_count", counted)]))
}
