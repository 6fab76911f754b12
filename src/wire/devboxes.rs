//! `/v1/devboxes`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{many, number};

/// A Devbox, as far as the adapter looks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Devbox {
    /// Opaque.
    pub id: String,
    /// `running` and others; unknown words occur.
    pub status: Option<String>,
    /// Milliseconds since the epoch.
    pub create_time_ms: Option<f64>,
    /// What was given at creation.
    pub metadata: Option<BTreeMap<String, String>>,
    /// Echo of what was asked, with the provider's defaults filled in.
    pub launch_parameters: Option<LaunchParameters>,
    /// The blueprint, resolved where it was given by name.
    pub blueprint_id: Option<String>,
    /// The snapshot it was made from.
    pub snapshot_id: Option<String>,
    /// Why it is in `failure`.
    pub failure_reason: Option<String>,
    /// Why it is in `shutdown`.
    pub shutdown_reason: Option<String>,
    /// Its tunnel; absent where there is none.
    pub tunnel: Option<Tunnel>,
}

/// The tunnel of a Devbox. `Debug` shows no token.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct Tunnel {
    /// Names the tunnel in its host name.
    pub tunnel_key: Option<String>,
    /// `open` or `authenticated`.
    pub auth_mode: Option<String>,
    /// Only where `authenticated`.
    pub auth_token: Option<String>,
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tunnel")
            .field("auth_mode", &self.auth_mode)
            .finish_non_exhaustive()
    }
}

/// `launch_parameters`, as sent and as echoed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaunchParameters {
    /// `SMALL` and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_size_request: Option<String>,
    /// Only with `CUSTOM_SIZE`; the service knows 0.5.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "number::write"
    )]
    pub custom_cpu_cores: Option<f64>,
    /// GiB, only with `CUSTOM_SIZE`.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "number::write"
    )]
    pub custom_gb_memory: Option<f64>,
    /// Lifetime in seconds, not an idle time.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "number::write"
    )]
    pub keep_alive_time_seconds: Option<f64>,
    /// What happens when it is idle. Overrides the lifetime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_idle: Option<AfterIdle>,
    /// The other place where `after_idle` may be echoed. Never sent.
    #[serde(skip_serializing)]
    pub lifecycle: Option<Lifecycle>,
    /// Egress policy; absent is no restriction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_policy_id: Option<String>,
}

impl LaunchParameters {
    /// `after_idle` from either of its places.
    #[must_use]
    pub fn idle(&self) -> Option<&AfterIdle> {
        let nested = || {
            self.lifecycle
                .as_ref()
                .and_then(|lifecycle| lifecycle.after_idle.as_ref())
        };
        self.after_idle.as_ref().or_else(nested)
    }
}

/// `lifecycle`, as echoed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Lifecycle {
    /// What happens when it is idle.
    pub after_idle: Option<AfterIdle>,
}

/// `after_idle`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AfterIdle {
    /// Idle seconds.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "number::write"
    )]
    pub idle_time_seconds: Option<f64>,
    /// `suspend` or `shutdown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_idle: Option<String>,
}

/// Body of `POST /v1/devboxes`.
#[derive(Clone, Default, Serialize)]
pub struct CreateDevbox<'a> {
    /// One of these three, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blueprint_id: Option<&'a str>,
    /// The newest successful build of that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blueprint_name: Option<&'a str>,
    /// A disk snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<&'a str>,
    /// Visible to every command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_variables: Option<&'a BTreeMap<String, String>>,
    /// Returned by every view.
    pub metadata: BTreeMap<&'a str, &'a str>,
    /// Size, lifetime, network.
    pub launch_parameters: LaunchParameters,
    /// Made with the Devbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<CreateTunnel>,
}

/// `tunnel` of a create.
#[derive(Debug, Clone, Serialize)]
pub struct CreateTunnel {
    /// `open` or `authenticated`.
    pub auth_mode: &'static str,
}

/// Body of `POST /v1/devboxes/{id}/wait_for_status`.
#[derive(Debug, Clone, Serialize)]
pub struct WaitForStatus<'a> {
    /// Answers with 200 as soon as the status is one of these.
    pub statuses: &'a [&'a str],
    /// How long the server holds, at most 30.
    pub timeout_seconds: u32,
}

/// A page of Devboxes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DevboxPage {
    /// The items.
    #[serde(deserialize_with = "many::read")]
    pub devboxes: Vec<Devbox>,
    /// Whether another page follows.
    pub has_more: Option<bool>,
}
