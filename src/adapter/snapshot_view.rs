//! A disk snapshot and its status as a snapshot record.

use std::collections::BTreeMap;

use super::records::{SnapshotRecord, SnapshotState};
use super::sandbox_view::{OPERATION, SUBMISSION, markers};
use crate::wire::snapshots::{Snapshot, SnapshotStatus};

/// Reserved in the metadata of everything that is made here.
pub(super) const RESERVED: &str = "beachside_";

/// The contract's word for a provider's; one that is not known is neither an end nor a success.
pub(super) fn state(status: &str) -> SnapshotState {
    match status {
        "in_progress" => SnapshotState::Creating,
        "complete" => SnapshotState::Ready,
        "error" => SnapshotState::Failed,
        "deleted" => SnapshotState::Deleted,
        _ => SnapshotState::Unknown,
    }
}

/// The record of a view without its status, as lists and captures give it.
pub(super) fn record(view: Snapshot) -> SnapshotRecord {
    SnapshotRecord {
        id: view.id,
        state: SnapshotState::Unknown,
        provider_state: String::new(),
        created_at_ms: view.create_time_ms,
        markers: markers(view.metadata.as_ref()),
        labels: labels(view.metadata),
        source_sandbox_id: view.source_devbox_id,
        reason: None,
        size_bytes: view.size_bytes,
    }
}

/// The record of a status. The view inside may be absent, or that of nothing.
pub(super) fn record_of_status(id: &str, status: SnapshotStatus) -> SnapshotRecord {
    let provider_state = status.status.unwrap_or_default();
    let view = status.snapshot.unwrap_or_default();
    SnapshotRecord {
        state: state(&provider_state),
        provider_state,
        reason: status.error_message.filter(|reason| !reason.is_empty()),
        ..record(Snapshot {
            id: id.to_owned(),
            ..view
        })
    }
}

/// The metadata that callers gave.
fn labels(metadata: Option<BTreeMap<String, String>>) -> Option<BTreeMap<String, String>> {
    let mut labels = metadata?;
    labels.retain(|key, _| !key.starts_with(RESERVED));
    debug_assert!(OPERATION.starts_with(RESERVED) && SUBMISSION.starts_with(RESERVED));
    Some(labels)
}
