//! Connections over a scripted transport, for the tests of the verbs.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Call, Connection};
use crate::config::Config;
use crate::transport::scripted::{Scripted, Step};

/// The key of every scripted connection.
pub(super) const KEY: &str = "ak_0123456789abcdef";

/// A connection with these settings whose requests meet these answers.
pub(super) async fn connect_with(
    config: Value,
    steps: impl IntoIterator<Item = Step>,
) -> (Connection, Arc<Scripted>) {
    let account = json!({ "id": "acct_1", "account_status": "ACCOUNT_STATUS_ENABLED" });
    let first = Step::json(200, &account.to_string());
    let script = Arc::new(Scripted::new([first].into_iter().chain(steps)));
    let credentials = json!({ "apiKey": KEY, "baseUrl": "http://127.0.0.1:1" });
    let config = Config::parse(&credentials, &config).unwrap();
    let connection = Connection::over(script.clone(), config, &Call::default())
        .await
        .unwrap();
    script.forget();
    (connection, script)
}

/// A connection with default settings.
pub(super) async fn connect(steps: impl IntoIterator<Item = Step>) -> (Connection, Arc<Scripted>) {
    connect_with(json!({}), steps).await
}

/// The view of `dbx_1` in this status.
pub(super) fn devbox(status: &str) -> Step {
    Step::json(200, &json!({ "id": "dbx_1", "status": status }).to_string())
}

/// A page of policies that holds the deny-all one, as `np_1`.
pub(super) fn policy() -> Step {
    let egress = json!({ "allow_all": false, "allowed_hostnames": [] });
    let policy = json!({ "id": "np_1", "name": "beachside-blocked", "egress": egress });
    Step::json(
        200,
        &json!({ "network_policies": [policy], "has_more": false }).to_string(),
    )
}
