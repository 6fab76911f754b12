//! A Devbox's view as a sandbox record.

use std::collections::BTreeMap;

use super::records::{LifecycleRecord, Markers, NetworkRecord, SandboxRecord, SandboxState};
use crate::error::{Error, Result};
use crate::wire::devboxes::Devbox;

/// Metadata key of [`Markers::operation`].
pub(super) const OPERATION: &str = "beachside_operation";

/// Metadata key of [`Markers::submission`].
pub(super) const SUBMISSION: &str = "beachside_submission";

/// The contract's word for a provider's. The service adds words; one that is
/// not known is neither an end nor a success.
pub(super) fn state(status: &str) -> SandboxState {
    match status {
        "scheduled" | "queued" | "provisioning" | "initializing" => SandboxState::Starting,
        "running" => SandboxState::Running,
        "suspending" => SandboxState::Suspending,
        "suspended" => SandboxState::Suspended,
        "resuming" => SandboxState::Resuming,
        "failure" => SandboxState::Failed,
        "shutdown" => SandboxState::Destroyed,
        _ => SandboxState::Unknown,
    }
}

pub(super) fn markers(metadata: Option<&BTreeMap<String, String>>) -> Option<Markers> {
    let metadata = metadata?;
    let operation = metadata.get(OPERATION)?.clone();
    Some(Markers {
        operation,
        submission: metadata.get(SUBMISSION)?.clone(),
    })
}

/// The record, without differences and with the policy's kind still to be told by its id.
pub(super) fn record(view: Devbox) -> SandboxRecord {
    let provider_state = view.status.unwrap_or_default();
    let launch = view.launch_parameters.unwrap_or_default();
    let idle_seconds = launch.idle().and_then(|idle| idle.idle_time_seconds);
    SandboxRecord {
        id: view.id,
        state: state(&provider_state),
        provider_state,
        created_at_ms: view.create_time_ms,
        markers: markers(view.metadata.as_ref()),
        reason: view.failure_reason.or(view.shutdown_reason),
        image: view.blueprint_id,
        lifecycle: LifecycleRecord {
            // Runloop ignores the lifetime of a Devbox that sleeps when idle.
            lifetime_seconds: launch
                .keep_alive_time_seconds
                .filter(|_| idle_seconds.is_none()),
            idle_seconds,
        },
        network: NetworkRecord {
            policy: "unknown",
            policy_id: launch.network_policy_id,
        },
        differences: Vec::new(),
        snapshot_id: view.snapshot_id,
    }
}

/// Refuses a view of another Devbox than the one that was asked for.
pub(super) fn expect_id(view: &Devbox, id: &str, operation: &'static str) -> Result<()> {
    if view.id == id {
        return Ok(());
    }
    let message = format!("Runloop answered with another Devbox than {id:?}");
    Err(Error::protocol(message)
        .during(operation)
        .with_resource("sandbox", id))
}
