//! Reads one JSON object field by field and refuses what is left.

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The fields of one object, by name; the path is for messages.
pub(super) struct Fields<'a> {
    path: &'static str,
    object: Option<&'a Map<String, Value>>,
}

impl<'a> Fields<'a> {
    /// The object at `path`, whose keys must all be `known`; absent counts as empty.
    pub(super) fn of(
        path: &'static str,
        value: Option<&'a Value>,
        known: &[&'static str],
    ) -> Result<Self> {
        let object = match value {
            None => None,
            Some(Value::Object(object)) => Some(object),
            Some(other) => return Err(not_an_object(path, other)),
        };
        for key in object.into_iter().flat_map(Map::keys) {
            if !known.contains(&key.as_str()) {
                return Err(unknown_key(path, key, known));
            }
        }
        Ok(Self { path, object })
    }

    /// The value, which may be of any type.
    pub(super) fn any(&self, key: &str) -> Option<&'a Value> {
        self.object?.get(key)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>> {
        self.any(key)
            .map(|value| {
                value
                    .as_str()
                    .ok_or_else(|| self.wrong(key, "a string", value))
            })
            .transpose()
    }

    /// A number above 0.
    pub(super) fn positive(&self, key: &str) -> Result<Option<f64>> {
        self.any(key)
            .map(|value| {
                value
                    .as_f64()
                    .filter(|number| number.is_finite() && *number > 0.0)
                    .ok_or_else(|| self.wrong(key, "a number above 0", value))
            })
            .transpose()
    }

    /// A whole number within bounds, both included.
    pub(super) fn whole(&self, key: &str, least: u32, most: u32) -> Result<Option<u32>> {
        let expected = || format!("a whole number from {least} to {most}");
        self.any(key)
            .map(|value| {
                value
                    .as_f64()
                    .filter(|number| number.fract() == 0.0)
                    .filter(|number| (f64::from(least)..=f64::from(most)).contains(number))
                    .map(as_u32)
                    .ok_or_else(|| self.wrong(key, &expected(), value))
            })
            .transpose()
    }

    /// The error for a field of a wrong type or value.
    pub(super) fn wrong(&self, key: &str, expected: &str, found: &Value) -> Error {
        wrong_type(&format!("{}.{key}", self.path), expected, found)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the caller checked that it is whole and within bounds that are u32"
)]
fn as_u32(number: f64) -> u32 {
    number as u32
}

/// Numbers and booleans are shown, because they help; text is not, because it may be a key.
pub(super) fn wrong_type(path: &str, expected: &str, found: &Value) -> Error {
    let found = match found {
        Value::Null => "null (or a number that is not finite)".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(_) => "another string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    // Where strings are expected, it is another one.
    let found = match found.as_str() {
        "another string" if !expected.starts_with('"') => "a string".to_owned(),
        _ => found,
    };
    Error::invalid_argument(format!("{path} must be {expected}, not {found}"))
}

/// What does not stand in `config`, where people put it.
pub(super) const CREDENTIALS: [&str; 3] = ["apiKey", "baseUrl", "tunnelDomain"];

/// Our keys, and the names that the same thing has in other libraries, in lower case and without `_`.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    (
        "apiKey",
        &["apikey", "bearertoken", "token", "accesstoken", "key"],
    ),
    ("baseUrl", &["baseurl", "apiurl", "endpoint", "url", "host"]),
    (
        "image",
        &[
            "template",
            "templateid",
            "blueprint",
            "blueprintid",
            "blueprintname",
        ],
    ),
    ("vcpus", &["cpu", "cpus", "cores"]),
    (
        "memoryMiB",
        &["memory", "memorymb", "memorygb", "memorygib", "ram"],
    ),
    (
        "lifetimeSeconds",
        &[
            "timeout",
            "timeoutms",
            "lifetime",
            "ttl",
            "keepalivetimeseconds",
            "duration",
        ],
    ),
    (
        "idleSeconds",
        &[
            "idle",
            "idletimeout",
            "idletimeseconds",
            "sleepafter",
            "autostopinterval",
        ],
    ),
];

/// What to write where something else than an object stands.
const EXAMPLES: &[(&str, &str)] = &[
    ("credentials", "{ apiKey }"),
    ("config.resources", "{ vcpus: 2, memoryMiB: 4096 }"),
    ("config.lifecycle", "{ lifetimeSeconds: 900 }"),
    ("config.preview", "{ access: \"public\" }"),
    ("config.snapshots", "{ preserve: \"filesystem\" }"),
    ("config.timeouts", "{ startSeconds: 600 }"),
];

fn not_an_object(path: &str, found: &Value) -> Error {
    let example = EXAMPLES.iter().find(|(name, _)| *name == path);
    let expected = example.map_or_else(
        || "an object".to_owned(),
        |(_, example)| format!("an object such as {example}"),
    );
    wrong_type(path, &expected, found)
}

fn unknown_key(path: &str, key: &str, known: &[&'static str]) -> Error {
    let shown = if key.chars().count() > 60 {
        "a very long key"
    } else {
        key
    };
    let plain = key.to_lowercase().replace(['_', '-'], "");
    let same = OTHER_NAMES
        .iter()
        .find(|(ours, theirs)| known.contains(ours) && theirs.contains(&plain.as_str()))
        .map(|(ours, _)| *ours);
    let credential = CREDENTIALS.iter().find(|ours| {
        let called = OTHER_NAMES.iter().find(|(name, _)| name == *ours);
        path == "config"
            && (plain == ours.to_lowercase()
                || called.is_some_and(|(_, theirs)| theirs.contains(&plain.as_str())))
    });
    let nearest = known
        .iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&key.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .min_by_key(|(distance, _)| *distance);
    let hint = match (same, credential, nearest) {
        (Some(ours), _, _) => format!("did you mean {ours:?}?"),
        (None, Some(ours), _) if ours == &key => {
            "it stands in credentials, or beside the settings in runloop({ … })".to_owned()
        }
        (None, Some(ours), _) => format!(
            "did you mean {ours:?}? It stands in credentials, or beside the settings in runloop({{ … }})"
        ),
        (None, None, Some((distance, candidate)))
            if distance <= 3 && distance < candidate.len() =>
        {
            format!("did you mean {candidate:?}?")
        }
        _ => format!("known are {}", known.join(", ")),
    };
    Error::invalid_argument(format!("{path} has the unknown key {shown:?}; {hint}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::Code;

    #[test]
    fn an_unknown_key_is_named_with_the_nearest_known_one() {
        let value = json!({ "newtork": "blocked" });
        let error = Fields::of("config", Some(&value), &["network", "image"])
            .err()
            .unwrap();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(
            error.message(),
            r#"config has the unknown key "newtork"; did you mean "network"?"#
        );
    }

    #[test]
    fn an_unknown_key_that_is_near_to_nothing_lists_what_is_known() {
        let value = json!({ "wallpaper": 1 });
        let error = Fields::of("config", Some(&value), &["network", "image"])
            .err()
            .unwrap();
        assert!(
            error.message().ends_with("known are network, image"),
            "{error}"
        );
    }

    #[test]
    fn a_key_that_is_called_otherwise_elsewhere_is_named_as_it_is_here() {
        let hint = |path, key: &str, known: &[&'static str]| {
            let value = json!({ key: 1 });
            let error = Fields::of(path, Some(&value), known).err().unwrap();
            let (_, hint) = error.message().split_once("; ").unwrap();
            hint.to_owned()
        };
        let lifecycle = ["lifetimeSeconds", "idleSeconds"];
        assert_eq!(
            hint("config.lifecycle", "timeoutMs", &lifecycle),
            r#"did you mean "lifetimeSeconds"?"#
        );
        assert_eq!(
            hint("config.lifecycle", "idle_timeout", &lifecycle),
            r#"did you mean "idleSeconds"?"#
        );
        assert_eq!(
            hint("config.resources", "memory", &["vcpus", "memoryMiB"]),
            r#"did you mean "memoryMiB"?"#
        );
        for (key, ours) in [
            ("apikey", "apiKey"),
            ("bearerToken", "apiKey"),
            ("baseURL", "baseUrl"),
        ] {
            let hint = hint("config", key, &["network", "image"]);
            assert!(
                hint.starts_with(&format!("did you mean {ours:?}? It stands in credentials")),
                "{hint}"
            );
        }
        assert!(hint("config", "apiKey", &["network"]).starts_with("it stands in credentials"));
        assert_eq!(
            hint("config", "retries", &["network", "image"]),
            "known are network, image"
        );
    }

    #[test]
    fn something_else_than_an_object_is_named_with_how_to_write_it() {
        let error = Fields::of("config.preview", Some(&json!("public")), &["access"])
            .err()
            .unwrap();
        assert_eq!(
            error.message(),
            r#"config.preview must be an object such as { access: "public" }, not a string"#
        );
    }

    #[test]
    fn a_wrong_type_is_named_without_the_text_it_holds() {
        let value = json!({ "a": "ak_secret_value" });
        let fields = Fields::of("config", Some(&value), &["a"]).unwrap();
        let error = fields.positive("a").unwrap_err();
        assert_eq!(
            error.message(),
            "config.a must be a number above 0, not a string"
        );
    }

    #[test]
    fn null_is_no_way_to_leave_a_field_out() {
        let value = json!({ "a": null });
        let fields = Fields::of("config", Some(&value), &["a"]).unwrap();
        assert!(fields.text("a").unwrap_err().message().contains("not null"));
    }

    #[test]
    fn whole_numbers_have_inclusive_bounds_and_no_fraction() {
        let value = json!({ "a": 60, "b": 60.5, "c": 59, "d": 61.0 });
        let fields = Fields::of("x", Some(&value), &["a", "b", "c", "d"]).unwrap();
        assert_eq!(fields.whole("a", 60, 61).unwrap(), Some(60));
        assert!(fields.whole("b", 60, 61).is_err());
        assert!(fields.whole("c", 60, 61).is_err());
        assert_eq!(fields.whole("d", 60, 61).unwrap(), Some(61));
    }
}
