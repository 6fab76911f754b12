//! The headers that matter, read tolerantly. Pure.

use std::time::SystemTime;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use uuid::Uuid;

/// Correlation id of a request. The official clients repeat it when they
/// retry; nothing says that the server acts on it, so nothing here relies on it.
pub(super) const REQUEST_ID: &str = "x-request-id";

/// What this client calls itself.
pub(super) const USER_AGENT_VALUE: &str = concat!("beachside-runloop/", env!("CARGO_PKG_VERSION"));

pub(super) fn new_request_id() -> String {
    format!("beachside-{}", Uuid::new_v4())
}

pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(REQUEST_ID)?.to_str().ok()?;
    // It ends up in messages: an absurdly long one helps nobody.
    (!value.is_empty() && value.len() <= 200).then(|| value.to_owned())
}

pub(super) fn content_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    value
        .split(';')
        .next()
        .unwrap_or("")
        .trim()
        .to_ascii_lowercase()
}

/// `retry-after-ms`, else `retry-after` as seconds (a fraction is accepted) or as a date.
///
/// What is negative, not finite or not understood counts as absent; a date in the past is 0.
pub(super) fn retry_after_seconds(headers: &HeaderMap) -> Option<f64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| {
        let value: f64 = text.parse().ok()?;
        (value.is_finite() && value >= 0.0).then_some(value)
    };
    if let Some(milliseconds) = text("retry-after-ms").and_then(number) {
        return Some(milliseconds / 1000.0);
    }
    let value = text(RETRY_AFTER.as_str())?;
    number(value).or_else(|| {
        let date = httpdate::parse_http_date(value).ok()?;
        Some(
            date.duration_since(SystemTime::now())
                .map_or(0.0, |wait| wait.as_secs_f64()),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn retry_after_is_read_in_each_of_its_forms() {
        let seconds = |pairs: &[(&'static str, &str)]| retry_after_seconds(&headers(pairs));
        assert_eq!(seconds(&[("retry-after", "3")]), Some(3.0));
        assert_eq!(seconds(&[("retry-after", " 1.5 ")]), Some(1.5));
        assert_eq!(seconds(&[("retry-after", "0")]), Some(0.0));
        assert_eq!(
            seconds(&[("retry-after-ms", "250"), ("retry-after", "9")]),
            Some(0.25)
        );
        assert_eq!(
            seconds(&[("retry-after-ms", "soon"), ("retry-after", "9")]),
            Some(9.0)
        );
        for nonsense in ["-1", "NaN", "inf", "", "soon", "1e999", "Wed, 99 Foo"] {
            assert_eq!(seconds(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
        assert_eq!(seconds(&[]), None);
    }

    #[test]
    fn a_retry_after_date_counts_from_now_and_never_below_zero() {
        let at = |time| {
            retry_after_seconds(&headers(&[("retry-after", &httpdate::fmt_http_date(time))]))
        };
        let ahead = at(SystemTime::now() + Duration::from_secs(30)).unwrap();
        assert!((28.0..=30.0).contains(&ahead), "{ahead}");
        assert_eq!(at(SystemTime::now() - Duration::from_secs(30)), Some(0.0));
    }

    #[test]
    fn a_content_type_loses_its_parameters_and_its_case() {
        let read = |value| content_type(&headers(&[("content-type", value)]));
        assert_eq!(read("Application/JSON; charset=utf-8"), "application/json");
        assert_eq!(content_type(&HeaderMap::new()), "");
    }
}
