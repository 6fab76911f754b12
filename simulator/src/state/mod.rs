//! Everything the simulated service remembers, one file a resource.
//!
//! State knows nothing of HTTP beyond the status of a refusal. Routes and the
//! control surface reach all of it through [`World`].

pub(crate) mod accounts;
pub(crate) mod blueprints;
pub(crate) mod build;
pub(crate) mod choices;
mod clock;
pub(crate) mod create;
pub(crate) mod devboxes;
pub(crate) mod evictions;
pub(crate) mod executions;
pub(crate) mod follow;
pub(crate) mod ids;
mod launch;
pub(crate) mod lifecycle;
pub(crate) mod logs;
mod output;
pub(crate) mod persist;
pub(crate) mod policies;
pub(crate) mod script;
pub(crate) mod secrets;
pub(crate) mod settings;
pub(crate) mod snapshots;
pub(crate) mod status;
pub(crate) mod terminals;
mod time;
pub(crate) mod timers;
pub(crate) mod tunnels;
mod usage;
pub(crate) mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::accounts::Accounts;
use self::blueprints::Blueprints;
use self::clock::Clock;
use self::devboxes::Devboxes;
use self::evictions::Evictions;
use self::policies::Policies;
use self::secrets::Secrets;
use self::settings::{CurrentSettings, Settings};
use self::snapshots::Snapshots;
use crate::error::{ApiError, ApiResult};
use crate::faults::Faults;
use crate::guest::{Isolation, Machine};
use crate::journal::Journal;
use crate::layers::{InFlight, Replays};

/// One simulated service.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) settings: CurrentSettings,
    pub(crate) accounts: Accounts,
    pub(crate) policies: Policies,
    pub(crate) secrets: Secrets,
    pub(crate) blueprints: Blueprints,
    pub(crate) snapshots: Snapshots,
    pub(crate) devboxes: Devboxes,
    pub(crate) evictions: Evictions,
    pub(crate) machine: Machine,
    pub(crate) journal: Journal,
    pub(crate) faults: Faults,
    pub(crate) in_flight: InFlight,
    pub(crate) replays: Replays,
    /// A deadline may have come nearer than the timers think.
    pub(crate) deadline_changed: Notify,
    /// Fires when the simulator ends: every long hold ends with it.
    pub(crate) stopping: CancellationToken,
}

impl World {
    pub(crate) fn new(
        settings: Settings,
        api_key: Option<String>,
        machine: Machine,
        stopping: CancellationToken,
    ) -> Arc<Self> {
        let clock = Clock::default();
        let now_ms = clock.now_ms();
        Arc::new(Self {
            clock,
            settings: CurrentSettings::new(settings),
            accounts: Accounts::new(api_key, now_ms),
            policies: Policies::default(),
            secrets: Secrets::default(),
            blueprints: Blueprints::new(now_ms),
            snapshots: Snapshots::default(),
            devboxes: Devboxes::default(),
            evictions: Evictions::default(),
            machine,
            journal: Journal::new(),
            faults: Faults::default(),
            in_flight: InFlight::default(),
            replays: Replays::default(),
            deadline_changed: Notify::new(),
            stopping,
        })
    }

    /// Moves virtual time forward and lets what is due then happen at once.
    pub(crate) fn advance_clock(self: &Arc<Self>, step_ms: i64) {
        self.clock.advance_ms(step_ms);
        timers::expire(self);
    }

    /// Ends every box, as when the service itself goes away, and waits until
    /// the machine is given back.
    pub(crate) async fn end(&self) {
        for devbox in self.devboxes.all() {
            devbox.ended.cancel();
        }
        self.machine.stop().await;
    }

    /// `namespaces` or `plain`: how boxes are kept apart on this machine.
    pub(crate) fn isolation(&self) -> &'static str {
        match self.machine.isolation() {
            Isolation::Namespaces => "namespaces",
            Isolation::Plain { .. } => "plain",
        }
    }

    pub(crate) fn health(&self) -> Value {
        let plain_reason = match self.machine.isolation() {
            Isolation::Namespaces => None,
            Isolation::Plain { reason } => Some(json!(reason)),
        };
        view::with_optional(
            json!({
                "status": "ok",
                "version": env!("CARGO_PKG_VERSION"),
                "isolation": self.isolation(),
                "devboxes": self.devboxes.all().len(),
                "time_ms": self.clock.now_ms(),
            }),
            [("plain_reason", plain_reason)],
        )
    }

    pub(crate) fn clock_view(&self) -> Value {
        json!({ "now_ms": self.clock.now_ms(), "offset_ms": self.clock.offset_ms() })
    }

    /// The refusal of one more than a quota allows (its status is unknown).
    pub(crate) fn refuse_over_quota(
        &self,
        kind: &str,
        count: usize,
        quota: impl Fn(&Settings) -> Option<usize>,
    ) -> ApiResult<()> {
        let settings = self.settings.get();
        match quota(&settings) {
            Some(quota) if count >= quota => Err(ApiError::new(
                StatusCode::from_u16(settings.quota_status)
                    .unwrap_or(StatusCode::TOO_MANY_REQUESTS),
                format!("the account's quota of {quota} {kind}s is reached"),
            )
            .retry_after(&settings)),
            _ => Ok(()),
        }
    }

    /// The refusal of metadata beyond the switches' limits.
    pub(crate) fn refuse_large_metadata(
        &self,
        metadata: &BTreeMap<String, String>,
    ) -> ApiResult<()> {
        let settings = self.settings.get();
        let most = settings.metadata_max_entries.unwrap_or(usize::MAX);
        if metadata.len() > most {
            return Err(ApiError::bad_request(format!(
                "metadata has at most {most} entries"
            )));
        }
        let longest = settings.metadata_max_bytes.unwrap_or(usize::MAX);
        let texts = metadata.iter().flat_map(|(key, value)| [key, value]);
        match texts.map(String::len).max() {
            Some(bytes) if bytes > longest => Err(ApiError::bad_request(format!(
                "a key or value of metadata has at most {longest} bytes"
            ))),
            _ => Ok(()),
        }
    }

    /// The boxes of an account that have not ended and were made with a policy.
    pub(crate) fn users_of_policy(&self, account_id: &str, policy_id: &str) -> Vec<String> {
        let counts_suspended = self.settings.get().suspended_uses_policy;
        self.devboxes
            .list(account_id)
            .iter()
            .filter(|devbox| devbox.origin.launch.network_policy_id.as_deref() == Some(policy_id))
            .filter(|devbox| match devbox.status() {
                status if status.is_final() => false,
                status::DevboxStatus::Suspended => counts_suspended,
                _ => true,
            })
            .map(|devbox| devbox.id().to_owned())
            .collect()
    }
}
