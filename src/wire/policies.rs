//! `/v1/network-policies`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::many;

/// A policy for what Devboxes may reach. It says nothing of what reaches them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct NetworkPolicy {
    /// Opaque.
    pub id: String,
    /// Unique in the account.
    pub name: String,
    /// Every field as it came: one that nobody here knows may open the network.
    pub egress: Option<Map<String, Value>>,
}

/// A page of policies.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct NetworkPolicyPage {
    /// The items.
    #[serde(deserialize_with = "many::read")]
    pub network_policies: Vec<NetworkPolicy>,
    /// Whether another page follows.
    pub has_more: Option<bool>,
}

/// Body of `POST /v1/network-policies`: flat, unlike the view.
#[derive(Debug, Clone, Serialize)]
pub struct CreateNetworkPolicy<'a> {
    /// Unique in the account.
    pub name: &'a str,
    /// For people.
    pub description: &'a str,
    /// Unrestricted.
    pub allow_all: bool,
    /// Names that may be reached.
    pub allowed_hostnames: &'a [&'a str],
    /// The account's other Devboxes, through their tunnels.
    pub allow_devbox_to_devbox: bool,
    /// Runloop's agent gateway.
    pub allow_agent_gateway: bool,
    /// Runloop's MCP gateway.
    pub allow_mcp_gateway: bool,
}
