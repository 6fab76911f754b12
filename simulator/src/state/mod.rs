//! Everything the simulated service remembers, one file a resource.
//!
//! State knows nothing of HTTP beyond the status of a refusal. Routes and the
//! control surface reach all of it through [`World`].

pub(crate) mod accounts;
mod clock;
pub(crate) mod devboxes;
pub(crate) mod executions;
mod ids;
pub(crate) mod lifecycle;
mod machine;
mod output;
pub(crate) mod policies;
pub(crate) mod settings;
pub(crate) mod status;
mod time;
pub(crate) mod view;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::accounts::Accounts;
use self::clock::Clock;
use self::devboxes::Devboxes;
use self::policies::Policies;
use self::settings::{CurrentSettings, Settings};
use crate::faults::Faults;
use crate::journal::Journal;

/// One simulated service.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) settings: CurrentSettings,
    pub(crate) accounts: Accounts,
    pub(crate) policies: Policies,
    pub(crate) devboxes: Devboxes,
    pub(crate) journal: Journal,
    pub(crate) faults: Faults,
    /// Fires when the simulator ends: every long hold ends with it.
    pub(crate) stopping: CancellationToken,
}

impl World {
    pub(crate) fn new(settings: Settings, api_key: Option<String>) -> Arc<Self> {
        let clock = Clock::default();
        let accounts = Accounts::new(api_key, clock.now_ms());
        Arc::new(Self {
            clock,
            settings: CurrentSettings::new(settings),
            accounts,
            policies: Policies::default(),
            devboxes: Devboxes::default(),
            journal: Journal::new(),
            faults: Faults::default(),
            stopping: CancellationToken::new(),
        })
    }

    /// Ends every box, as when the service itself goes away, and waits until
    /// the machines are given back.
    pub(crate) async fn shut_down_all(&self) {
        let mut guests = Vec::new();
        for devbox in self.devboxes.all() {
            devbox.ended.cancel();
            guests.extend(devbox.set_guest(None));
        }
        for guest in guests {
            guest.destroy().await;
        }
    }

    /// How boxes are kept apart on this machine.
    pub(crate) fn isolation(&self) -> &'static str {
        "processes"
    }

    pub(crate) fn health(&self) -> Value {
        json!({
            "status": "ok",
            "version": env!("CARGO_PKG_VERSION"),
            "isolation": self.isolation(),
            "devboxes": self.devboxes.all().len(),
            "time_ms": self.clock.now_ms(),
        })
    }

    pub(crate) fn clock_view(&self) -> Value {
        json!({ "now_ms": self.clock.now_ms(), "offset_ms": self.clock.offset_ms() })
    }
}
