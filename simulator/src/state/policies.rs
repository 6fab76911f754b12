//! Network policies: egress rules by name.
//!
//! Certain: an update merges by field, the name filter is a partial match, a
//! policy in use by a live Devbox cannot go. Whether two may have one name
//! depends on whom one asks: a switch.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ids;
use super::view::{maybe, with_optional};
use crate::error::{ApiError, ApiResult};

/// Policies an account may hold (documented by the service).
const MAX_POLICIES: usize = 100;

/// One CIDR with its ports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AllowedCidr {
    pub(crate) cidr: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<AllowedPorts>,
}

/// A port, or the range up to `end_port`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AllowedPorts {
    pub(crate) port: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end_port: Option<u16>,
    pub(crate) protocol: String,
}

/// The fields of create and update; on update an absent one keeps its value.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PolicyFields {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) allow_all: Option<bool>,
    pub(crate) allowed_hostnames: Option<Vec<String>>,
    pub(crate) allowed_cidrs: Option<Vec<AllowedCidr>>,
    pub(crate) allow_devbox_to_devbox: Option<bool>,
    pub(crate) allow_agent_gateway: Option<bool>,
    pub(crate) allow_mcp_gateway: Option<bool>,
    pub(crate) allow_runloop_mirrors: Option<bool>,
}

/// A policy as it stands.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Policy {
    pub(crate) id: String,
    account_id: String,
    pub(crate) name: String,
    description: Option<String>,
    pub(crate) allow_all: bool,
    pub(crate) allowed_hostnames: Vec<String>,
    pub(crate) allowed_cidrs: Vec<AllowedCidr>,
    allow_devbox_to_devbox: bool,
    allow_agent_gateway: bool,
    allow_mcp_gateway: bool,
    allow_runloop_mirrors: bool,
    pub(crate) create_time_ms: i64,
    update_time_ms: i64,
}

/// Whether two policies of an account may have one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Unique,
    Reusable,
}

/// All policies, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Policies(Mutex<Vec<Policy>>);

impl Policies {
    pub(crate) fn create(
        &self,
        account_id: &str,
        fields: PolicyFields,
        names: Names,
        now_ms: i64,
    ) -> ApiResult<Policy> {
        let name = fields.name.clone().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| ApiError::bad_request("name is required"))?;
        let mut policies = self.lock();
        let mine = policies
            .iter()
            .filter(|policy| policy.account_id == account_id);
        if mine.clone().count() >= MAX_POLICIES {
            return Err(ApiError::bad_request(format!(
                "an account holds at most {MAX_POLICIES} network policies"
            )));
        }
        let mut policy = Policy {
            id: ids::fresh("npol"),
            account_id: account_id.to_owned(),
            create_time_ms: now_ms,
            ..Policy::default()
        };
        if names == Names::Unique {
            policy.refuse_taken_name(&name, &policies)?;
        }
        policy.apply(fields, now_ms);
        policies.push(policy.clone());
        Ok(policy)
    }

    pub(crate) fn get(&self, account_id: &str, id: &str) -> ApiResult<Policy> {
        self.lock()
            .iter()
            .find(|policy| policy.id == id && policy.account_id == account_id)
            .cloned()
            .ok_or_else(|| ApiError::not_found("network policy", id))
    }

    /// The account's policies, newest first.
    pub(crate) fn list(&self, account_id: &str) -> Vec<Policy> {
        let policies = self.lock();
        policies
            .iter()
            .rev()
            .filter(|policy| policy.account_id == account_id)
            .cloned()
            .collect()
    }

    pub(crate) fn update(
        &self,
        account_id: &str,
        id: &str,
        fields: PolicyFields,
        names: Names,
        now_ms: i64,
    ) -> ApiResult<Policy> {
        // One lock from the look-up to the change, or of two updates that meet
        // one would lay the other's fields back to what they were.
        let mut policies = self.lock();
        let index = position(&policies, account_id, id)?;
        if let (Some(name), Names::Unique, Some(policy)) =
            (&fields.name, names, policies.get(index))
        {
            policy.refuse_taken_name(name, &policies)?;
        }
        let policy = policies
            .get_mut(index)
            .ok_or_else(|| ApiError::not_found("network policy", id))?;
        policy.apply(fields, now_ms);
        Ok(policy.clone())
    }

    /// Removes a policy that the caller has found to be unused.
    pub(crate) fn delete(&self, account_id: &str, id: &str) -> ApiResult<Policy> {
        let mut policies = self.lock();
        let index = position(&policies, account_id, id)?;
        Ok(policies.remove(index))
    }

    pub(super) fn saved(&self) -> Vec<Policy> {
        self.lock().clone()
    }

    pub(super) fn restore(&self, policies: Vec<Policy>) {
        *self.lock() = policies;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Policy>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn position(policies: &[Policy], account_id: &str, id: &str) -> ApiResult<usize> {
    policies
        .iter()
        .position(|policy| policy.id == id && policy.account_id == account_id)
        .ok_or_else(|| ApiError::not_found("network policy", id))
}

impl Policy {
    fn refuse_taken_name(&self, name: &str, policies: &[Policy]) -> ApiResult<()> {
        let taken = policies.iter().any(|other| {
            other.name == name && other.id != self.id && other.account_id == self.account_id
        });
        if taken {
            return Err(ApiError::bad_request(format!(
                "a network policy named {name} exists"
            )));
        }
        Ok(())
    }

    fn apply(&mut self, fields: PolicyFields, now_ms: i64) {
        self.name = fields.name.unwrap_or(std::mem::take(&mut self.name));
        self.description = fields.description.or(self.description.take());
        self.allow_all = fields.allow_all.unwrap_or(self.allow_all);
        if let Some(hostnames) = fields.allowed_hostnames {
            self.allowed_hostnames = hostnames;
        }
        if let Some(cidrs) = fields.allowed_cidrs {
            self.allowed_cidrs = cidrs;
        }
        self.allow_devbox_to_devbox = fields
            .allow_devbox_to_devbox
            .unwrap_or(self.allow_devbox_to_devbox);
        self.allow_agent_gateway = fields
            .allow_agent_gateway
            .unwrap_or(self.allow_agent_gateway);
        self.allow_mcp_gateway = fields.allow_mcp_gateway.unwrap_or(self.allow_mcp_gateway);
        self.allow_runloop_mirrors = fields
            .allow_runloop_mirrors
            .unwrap_or(self.allow_runloop_mirrors);
        self.update_time_ms = now_ms;
    }

    /// The NetworkPolicyView: the request is flat, the view nests `egress`.
    pub(crate) fn view(&self) -> Value {
        let required = json!({
            "id": self.id,
            "name": self.name,
            "egress": {
                "allow_all": self.allow_all,
                "allowed_hostnames": self.allowed_hostnames,
                "allowed_cidrs": self.allowed_cidrs,
                // allow_all implies it (certain).
                "allow_devbox_to_devbox": self.allow_devbox_to_devbox || self.allow_all,
                "allow_agent_gateway": self.allow_agent_gateway,
                "allow_mcp_gateway": self.allow_mcp_gateway,
                "allow_runloop_mirrors": self.allow_runloop_mirrors,
            },
            "create_time_ms": self.create_time_ms,
            "update_time_ms": self.update_time_ms,
        });
        with_optional(
            required,
            [("description", maybe(self.description.as_ref()))],
        )
    }
}
