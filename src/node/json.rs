//! JSON text across the boundary: requests in, records out.
//!
//! `JSON.parse` of a text is several times faster than making the same object
//! value by value through N-API, and the text is made off the JavaScript thread.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Reads what the loader made with `JSON.stringify`.
///
/// Strict about text, as [`arguments`](super::arguments) is. An error never
/// quotes the text, which may hold environment values or a key.
///
/// # Errors
/// `INVALID_ARGUMENT`.
pub(super) fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    if has_nul(text) {
        return Err(Error::invalid_argument(format!(
            "{what}: no string may hold a NUL character"
        )));
    }
    serde_json::from_str(text).map_err(|error| {
        let shown = error.to_string();
        let reason = if error.is_syntax() {
            // `JSON.stringify` makes no other text that is refused here.
            "a string holds half of a surrogate pair, or it is nested too deeply"
        } else if shown.starts_with("missing field") {
            // Names the field only; every other message quotes what it found.
            shown.split(" at line").next().unwrap_or_default()
        } else {
            "a field is not of the type it should be"
        };
        Error::invalid_argument(format!("{what}: {reason}"))
    })
}

/// The text of a record.
///
/// # Errors
/// `INTERNAL`: a record of ours is always JSON.
pub(super) fn write(record: &impl Serialize) -> Result<String> {
    serde_json::to_string(record)
        .map_err(|error| Error::internal(format!("a record is not JSON ({:?})", error.classify())))
}

/// Whether a JSON text holds the escape of NUL, the only way in which it can hold one.
fn has_nul(text: &str) -> bool {
    text.match_indices("\\u0000").any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        // An odd number of backslashes before it would escape its own backslash.
        before
            .bytes()
            .rev()
            .take_while(|byte| *byte == b'\\')
            .count()
            % 2
            == 0
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn refused(text: &str) -> String {
        read::<Vec<String>>("request", text)
            .unwrap_err()
            .message()
            .to_owned()
    }

    #[test]
    fn e8_nul_and_half_a_surrogate_pair_are_refused_wherever_they_stand() {
        assert!(refused(r#"["a\u0000b"]"#).contains("NUL"));
        assert!(refused(r#"["a\\\u0000b"]"#).contains("NUL"));
        assert!(refused(r#"["a\ud800"]"#).contains("surrogate"));
        assert!(refused(r#"["\udc00a"]"#).contains("surrogate"));
        let kept: Value = read("request", r#"["a\\u0000b", "\ud83d\ude00"]"#).unwrap();
        assert_eq!(kept, serde_json::json!(["a\\u0000b", "😀"]));
    }

    #[test]
    fn a_wrong_type_is_refused_without_its_value() {
        let shown = refused(r#"[{"env":"hunter22"}]"#);
        assert_eq!(shown, "request: a field is not of the type it should be");
    }

    #[test]
    fn a_missing_field_is_named() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Of {
            #[expect(dead_code, reason = "only its absence matters here")]
            sandbox_id: String,
        }
        let error = read::<Of>("inspectSandbox", "{}").unwrap_err();
        assert_eq!(error.message(), "inspectSandbox: missing field `sandboxId`");
    }
}
