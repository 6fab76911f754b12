//! Tunnels: one a box, for all its ports. The records only; what carries
//! traffic through them is the server's business.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ids;
use super::view::{maybe, with_optional};

/// Who may use a tunnel; "public" is not a legal value (certain).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuthMode {
    #[default]
    Open,
    Authenticated,
}

/// The body of `enable_tunnel` and the `tunnel` of a create.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct TunnelConfig {
    pub(crate) auth_mode: Option<AuthMode>,
    pub(crate) http_keep_alive: Option<bool>,
    pub(crate) wake_on_http: Option<bool>,
}

/// A tunnel of one box.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tunnel {
    pub(crate) key: String,
    /// Only for `authenticated`.
    pub(crate) auth_token: Option<String>,
    create_time_ms: i64,
    /// Traffic resets the box's idle timer.
    pub(crate) http_keep_alive: bool,
    /// Traffic resumes a suspended box.
    pub(crate) wake_on_http: bool,
}

impl Tunnel {
    pub(crate) fn new(config: TunnelConfig, now_ms: i64) -> Self {
        let is_open = config.auth_mode.unwrap_or_default() == AuthMode::Open;
        Self {
            // A host name does not tell upper case from lower case.
            key: ids::token(32).to_ascii_lowercase(),
            auth_token: (!is_open).then(|| ids::token(43)),
            create_time_ms: now_ms,
            http_keep_alive: config.http_keep_alive.unwrap_or(true),
            wake_on_http: config.wake_on_http.unwrap_or(false),
        }
    }

    /// The TunnelView, with the token also inside a DevboxView (certain).
    pub(crate) fn view(&self) -> Value {
        let mode = if self.auth_token.is_some() {
            AuthMode::Authenticated
        } else {
            AuthMode::Open
        };
        let required = json!({
            "tunnel_key": self.key,
            "auth_mode": mode,
            "create_time_ms": self.create_time_ms,
            "http_keep_alive": self.http_keep_alive,
            "wake_on_http": self.wake_on_http,
        });
        with_optional(required, [("auth_token", maybe(self.auth_token.as_ref()))])
    }
}
