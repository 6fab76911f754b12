//! Lists that do not keep their promises.

use http::Uri;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The parameters that are not filters.
const PAGING: [&str; 3] = ["limit", "starting_after", "include_total_count"];

/// A cursor that no item has.
const NOBODY: &str = "vanished";

/// Everything that can be wrong with a page; each field by itself or with
/// others.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ListFault {
    /// Filters are not looked at.
    pub(crate) ignore_filters: bool,
    /// Every item has the same creation time.
    pub(crate) identical_timestamps: bool,
    /// The item that the cursor names is gone.
    pub(crate) vanished_cursor: bool,
    /// The page is empty and says that there is more.
    pub(crate) empty_page_with_more: bool,
    /// The cursor is not looked at: the first page again, which says that
    /// there is more.
    pub(crate) repeated_cursor: bool,
}

impl ListFault {
    /// Changes what the route is asked.
    pub(super) fn spoil_query(self, uri: &mut Uri) {
        let Some(query) = uri.query() else { return };
        let name_of = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
        let kept: Vec<String> = query
            .split('&')
            .filter(|pair| !self.ignore_filters || PAGING.contains(&name_of(pair).as_str()))
            .filter(|pair| !self.repeated_cursor || name_of(pair) != "starting_after")
            .map(|pair| match name_of(pair).as_str() {
                "starting_after" if self.vanished_cursor => format!("starting_after={NOBODY}"),
                _ => pair.to_owned(),
            })
            .collect();
        let mut parts = uri.clone().into_parts();
        let path_and_query = format!("{}?{}", uri.path(), kept.join("&"));
        parts.path_and_query = path_and_query.parse().ok();
        if let Ok(changed) = Uri::from_parts(parts) {
            *uri = changed;
        }
    }

    /// Changes what the route answers.
    pub(super) fn spoil_page(self, page: &mut Value) {
        let Some(fields) = page.as_object_mut() else {
            return;
        };
        if let Some(items) = fields.values_mut().find_map(Value::as_array_mut) {
            if self.empty_page_with_more {
                items.clear();
            }
            if self.identical_timestamps {
                let time = items
                    .first()
                    .and_then(|item| item.get("create_time_ms"))
                    .cloned();
                for item in items.iter_mut().filter_map(Value::as_object_mut) {
                    item.insert("create_time_ms".to_owned(), json!(time));
                }
            }
        }
        if self.empty_page_with_more || self.repeated_cursor {
            fields.insert("has_more".to_owned(), json!(true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(fault: ListFault, uri: &str) -> String {
        let mut uri: Uri = uri.parse().unwrap();
        fault.spoil_query(&mut uri);
        uri.to_string()
    }

    #[test]
    fn the_query_is_spoiled_as_the_rule_says() {
        let ignore = ListFault {
            ignore_filters: true,
            ..Default::default()
        };
        assert_eq!(
            asked(ignore, "/v1/x?name=a&limit=2&metadata%5Bk%5D=v"),
            "/v1/x?limit=2"
        );
        let repeat = ListFault {
            repeated_cursor: true,
            ..Default::default()
        };
        assert_eq!(
            asked(repeat, "/v1/x?name=a&starting_after=b"),
            "/v1/x?name=a"
        );
        let vanish = ListFault {
            vanished_cursor: true,
            ..Default::default()
        };
        assert_eq!(
            asked(vanish, "/v1/x?starting_after=b"),
            "/v1/x?starting_after=vanished"
        );
        assert_eq!(asked(vanish, "/v1/x"), "/v1/x");
    }
}
