//! Network policies: find, read, create, and tell whether one denies everything.

use serde_json::Value;

use super::json;
use super::path::{path, query};
use crate::error::Result;
use crate::message::Request;
use crate::wire::policies::{CreateNetworkPolicy, NetworkPolicy};

/// `GET /v1/network-policies?name=`: a partial match (certain), so the caller compares.
#[must_use]
pub fn find(name: &str, limit: u32, after: Option<&str>) -> Request {
    let mut path = path(["network-policies"]);
    query(&mut path, "name", name);
    query(&mut path, "limit", &limit.to_string());
    if let Some(after) = after {
        query(&mut path, "starting_after", after);
    }
    Request::get(path)
}

/// `GET /v1/network-policies/{id}`. 404 after its deletion.
#[must_use]
pub fn get(id: &str) -> Request {
    Request::get(path(["network-policies", id]))
}

/// `POST /v1/network-policies`. A name that is taken is a 400 (certain), not a 409.
///
/// # Errors
/// `INTERNAL` when the body cannot be written.
pub fn create(body: &CreateNetworkPolicy<'_>) -> Result<Request> {
    Ok(Request::mutation(path(["network-policies"]), json(body)?))
}

/// The first field of the policy's egress that opens something, or that should
/// close it and is missing. `None` means that it denies everything.
///
/// Fails closed: a field that nobody here knows counts as an opening unless it
/// is false, empty or null, because the service adds fields.
#[must_use]
pub fn opening(policy: &NetworkPolicy) -> Option<String> {
    let Some(egress) = &policy.egress else {
        return Some("egress is not reported".to_owned());
    };
    if !egress.get("allow_all").is_some_and(Value::is_boolean) {
        return Some("egress.allow_all is not reported".to_owned());
    }
    let field = egress.iter().find(|(_, value)| !is_empty(value));
    field.map(|(name, _)| format!("egress.{name} is set"))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn opening_of(egress: Value) -> Option<String> {
        let policy = json!({ "id": "np_1", "name": "x", "egress": egress });
        opening(&serde_json::from_value(policy).unwrap())
    }

    #[test]
    fn r5_a_policy_that_denies_everything_has_no_opening() {
        for egress in [
            json!({ "allow_all": false, "allowed_hostnames": [] }),
            json!({ "allow_all": false }),
            json!({
                "allow_all": false, "allowed_hostnames": [], "allowed_cidrs": null,
                "allow_devbox_to_devbox": false, "allow_agent_gateway": false,
                "allow_mcp_gateway": false, "some_day": { "inner": [] },
            }),
        ] {
            assert_eq!(opening_of(egress.clone()), None, "{egress}");
        }
    }

    #[test]
    fn r5_every_field_that_opens_or_is_not_known_to_close_is_named() {
        for (egress, field) in [
            (json!(null), "egress is not reported"),
            (json!({}), "egress.allow_all is not reported"),
            (
                json!({ "allow_all": null }),
                "egress.allow_all is not reported",
            ),
            (json!({ "allow_all": true }), "egress.allow_all is set"),
            (
                json!({ "allow_all": false, "allowed_hostnames": ["x.com"] }),
                "egress.allowed_hostnames is set",
            ),
            (
                json!({ "allow_all": false, "allowed_cidrs": [{ "cidr": "10.0.0.0/8" }] }),
                "egress.allowed_cidrs is set",
            ),
            (
                json!({ "allow_all": false, "allow_devbox_to_devbox": true }),
                "egress.allow_devbox_to_devbox is set",
            ),
            (
                json!({ "allow_all": false, "allow_runloop_mirrors": true }),
                "egress.allow_runloop_mirrors is set",
            ),
            (
                json!({ "allow_all": false, "some_day": "yes" }),
                "egress.some_day is set",
            ),
            (
                json!({ "allow_all": false, "some_day": { "x": [1] } }),
                "egress.some_day is set",
            ),
        ] {
            assert_eq!(
                opening_of(egress.clone()).as_deref(),
                Some(field),
                "{egress}"
            );
        }
    }
}
