//! The statuses of a Devbox.

use serde::{Deserialize, Serialize};

/// `scheduled`, a deprecated alias of `queued`, is accepted and never shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DevboxStatus {
    #[serde(alias = "scheduled")]
    Queued,
    Provisioning,
    Initializing,
    Running,
    Suspending,
    Suspended,
    Resuming,
    Failure,
    Shutdown,
}

impl DevboxStatus {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Provisioning => "provisioning",
            Self::Initializing => "initializing",
            Self::Running => "running",
            Self::Suspending => "suspending",
            Self::Suspended => "suspended",
            Self::Resuming => "resuming",
            Self::Failure => "failure",
            Self::Shutdown => "shutdown",
        }
    }

    /// The name's status, if it is one.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }

    /// Nothing leads out of it.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Failure | Self::Shutdown)
    }
}
