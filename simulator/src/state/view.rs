//! Building the JSON objects that clients see.

use serde::Serialize;
use serde_json::{Map, Value};

/// `required` with those optional fields that have a value. Whether the
/// service leaves absent fields out or sends `null` is unknown; they are left
/// out unless the specification requires them.
pub(crate) fn with_optional<const N: usize>(
    required: Value,
    optional: [(&str, Option<Value>); N],
) -> Value {
    let mut fields = match required {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    for (name, value) in optional {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    }
    Value::Object(fields)
}

/// The JSON of a value that may be absent.
pub(crate) fn maybe(value: Option<impl Serialize>) -> Option<Value> {
    value.and_then(|value| serde_json::to_value(value).ok())
}
