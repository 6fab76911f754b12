//! `/v1/accounts`.

use serde::Deserialize;

/// Answer of `GET /v1/accounts/me`.
#[derive(Debug, Clone, Deserialize)]
pub struct Account {
    /// Opaque id; the scope of every resource.
    pub id: String,
    /// `ACCOUNT_STATUS_ENABLED` and others.
    #[serde(default)]
    pub account_status: Option<String>,
}
