//! What verbs take and give: the adapter interface as Rust types.
//!
//! Field names cross to JavaScript in camelCase, as JSON text. Durations are
//! seconds, times milliseconds since the epoch, absent is `None`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use super::exec::{ExecRecord, ExecRequest};
pub use super::files::{ReadFileRequest, WriteFileRequest};
pub use crate::shell::Program;

/// Values that identify one submission; sent to the provider as metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Markers {
    /// Random id of the operation that the caller asked for.
    pub operation: String,
    /// Random id of this submission of it.
    pub submission: String,
}

/// States of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxState {
    /// On its way to running for the first time.
    Starting,
    /// Takes commands.
    Running,
    /// On its way to suspended.
    Suspending,
    /// Disk kept, nothing runs.
    Suspended,
    /// On its way to running again.
    Resuming,
    /// Ended in failure.
    Failed,
    /// Shut down.
    Destroyed,
    /// A state that this version does not know.
    Unknown,
}

/// Ends at which a wait can aim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Ready for commands.
    Running,
    /// Disk kept, nothing runs.
    Suspended,
    /// Shut down.
    Destroyed,
}

/// A setting that the provider echoes differently from what was asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Dotted name of the setting.
    pub setting: &'static str,
    /// What was asked.
    pub requested: Value,
    /// What the provider reports.
    pub reported: Value,
}

/// A sandbox as the provider reports it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxRecord {
    /// The provider's id.
    pub id: String,
    /// The state in the contract's words.
    pub state: SandboxState,
    /// The provider's own word for the state.
    pub provider_state: String,
    /// When it was made.
    pub created_at_ms: Option<f64>,
    /// Markers in the provider's metadata.
    pub markers: Option<Markers>,
    /// The provider's reason, for a failed or ended sandbox.
    pub reason: Option<String>,
    /// The blueprint's id; absent for the default image.
    pub image: Option<String>,
    /// When it ends or sleeps.
    pub lifecycle: LifecycleRecord,
    /// What it may reach.
    pub network: NetworkRecord,
    /// Empty where the provider echoes what was asked, or echoes nothing.
    pub differences: Vec<Difference>,
    /// The snapshot it was restored from.
    pub snapshot_id: Option<String>,
}

/// When a sandbox ends or sleeps, as reported.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleRecord {
    /// Total lifetime.
    pub lifetime_seconds: Option<f64>,
    /// Idle time until it sleeps.
    pub idle_seconds: Option<f64>,
}

/// What a sandbox may reach, as reported.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkRecord {
    /// `blocked`, `internet` or `unknown`.
    pub policy: &'static str,
    /// The policy's id.
    pub policy_id: Option<String>,
}

/// Create, or restore where `snapshot_id` is given. `Debug` shows no environment.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateSandboxRequest {
    /// Sent as metadata.
    pub markers: Markers,
    /// Environment of every command.
    pub env: Option<BTreeMap<String, String>>,
    /// `{ lifetimeSeconds }`, checked by the adapter.
    pub lifecycle: Option<Value>,
    /// A network the connection supports; the connection's own when omitted.
    pub network: Option<Value>,
    /// Restores this snapshot instead of starting from the configured image.
    pub snapshot_id: Option<String>,
}

impl fmt::Debug for CreateSandboxRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateSandboxRequest")
            .field("markers", &self.markers)
            .field("snapshot_id", &self.snapshot_id)
            .finish_non_exhaustive()
    }
}

/// One sandbox and the state to wait for.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitForSandboxRequest {
    /// The provider's id.
    pub sandbox_id: String,
    /// What to wait for.
    pub state: Target,
}

/// A page of a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListSandboxesRequest {
    /// Items on the page, at least 1.
    pub limit: u32,
    /// Opaque, from the page before.
    pub cursor: Option<String>,
    /// Only sandboxes in this state.
    pub state: Option<SandboxState>,
}

/// A page of the list of snapshots.
#[derive(Debug, Clone, Deserialize)]
pub struct ListSnapshotsRequest {
    /// Items on the page, at least 1.
    pub limit: u32,
    /// Opaque, from the page before.
    pub cursor: Option<String>,
}

/// One page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where to go on; `None` on the last page.
    pub cursor: Option<String>,
    /// Whether this page says everything that it should.
    pub coverage: Coverage,
}

/// What a page may lack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Nothing is missing.
    pub complete: bool,
    /// What may be, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// A bounded search for what one submission made.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FindRequest {
    /// Both must be equal.
    pub markers: Markers,
    /// Narrows the search for a snapshot.
    pub source_sandbox_id: Option<String>,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindResult<T> {
    /// Every item whose markers are exactly these.
    pub matches: Vec<T>,
    /// How much was looked at.
    pub searched: Searched,
}

/// How much a search looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Searched {
    /// Items looked at.
    pub items: u64,
    /// Whether that was everything.
    pub complete: bool,
}

/// Suspend or resume: whether nothing was to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// It was in that state already; nothing was sent that changes anything.
    pub already_there: bool,
}

/// Destroy or delete: whether it was gone before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gone {
    /// It was gone already.
    pub already_gone: bool,
}

/// How to open a preview. `Debug` shows no headers.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct PreviewRecord {
    /// Where it is.
    pub url: String,
    /// `protected` or `public`.
    pub access: &'static str,
    /// What a request must carry; empty for a public preview.
    pub headers: BTreeMap<&'static str, String>,
}

impl fmt::Debug for PreviewRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreviewRecord")
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

/// A snapshot as the provider reports it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRecord {
    /// The provider's id.
    pub id: String,
    /// `creating`, `ready`, `failed`, `deleted` or `unknown`.
    pub state: SnapshotState,
    /// The provider's own word for the state.
    pub provider_state: String,
    /// When the capture began.
    pub created_at_ms: Option<f64>,
    /// Markers in the provider's metadata.
    pub markers: Option<Markers>,
    /// The labels it was captured with.
    pub labels: Option<BTreeMap<String, String>>,
    /// What it was captured from.
    pub source_sandbox_id: Option<String>,
    /// Why it failed.
    pub reason: Option<String>,
    /// Relative to the image of its source.
    pub size_bytes: Option<f64>,
}

/// States of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SnapshotState {
    /// Being captured.
    Creating,
    /// Can be restored.
    Ready,
    /// The capture failed.
    Failed,
    /// Deleted.
    Deleted,
    /// Not reported, or a state that this version does not know.
    Unknown,
}

/// Starts a capture.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaptureRequest {
    /// What to capture.
    pub sandbox_id: String,
    /// Sent as metadata.
    pub markers: Markers,
    /// Sent as metadata beside the markers.
    pub labels: Option<BTreeMap<String, String>>,
}
