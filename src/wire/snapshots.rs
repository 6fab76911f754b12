//! `/v1/devboxes/disk_snapshots`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::many;

/// A disk snapshot. Its state is not among its fields: only the status tells.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// Opaque.
    pub id: String,
    /// Milliseconds since the epoch.
    pub create_time_ms: Option<f64>,
    /// What was given at the capture.
    pub metadata: Option<BTreeMap<String, String>>,
    /// What it was captured from.
    pub source_devbox_id: Option<String>,
    /// Relative to the blueprint of its source.
    pub size_bytes: Option<f64>,
}

/// Body of `POST /v1/devboxes/{id}/snapshot_disk_async`.
#[derive(Debug, Clone, Serialize)]
pub struct CaptureSnapshot<'a> {
    /// Returned by every view.
    pub metadata: BTreeMap<&'a str, &'a str>,
}

/// Answer of `GET /v1/devboxes/disk_snapshots/{id}/status`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SnapshotStatus {
    /// `in_progress`, `complete`, `error` or `deleted`.
    pub status: Option<String>,
    /// The snapshot, where it is reported.
    pub snapshot: Option<Snapshot>,
    /// Why it is in `error`.
    pub error_message: Option<String>,
}

/// A page of snapshots.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SnapshotPage {
    /// The items.
    #[serde(deserialize_with = "many::read")]
    pub snapshots: Vec<Snapshot>,
    /// Whether another page follows.
    pub has_more: Option<bool>,
}
