//! Every switch where the real service is unknown or worth worsening.
//!
//! One struct is the whole list: the command line (`--set name=value`), the
//! library (`Options::settings`) and `POST /_simulator/settings` all speak its
//! field names. A change holds from the next request on.

use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choices::{
    ChunkOffset, CommandShell, EmptyOutput, LaunchFailure, LifetimeStart, ListOrder, NameMatch,
    OffsetUnit, OptimisticExpiry, PolicyEdits, StdinSupport, UnknownCursor, WriteFailure,
    ZeroTimeout,
};

/// The switches and their defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Least time a new box spends before `initializing`, in milliseconds.
    pub boot_ms: u64,
    /// Least time in `suspending`.
    pub suspend_ms: u64,
    /// Least time in `resuming`.
    pub resume_ms: u64,
    /// Least time that a snapshot is `in_progress`.
    pub snapshot_ms: u64,
    /// Least time that a blueprint is `building`.
    pub build_ms: u64,

    /// Longest hold of a Devbox `wait_for_status`, in seconds.
    pub devbox_hold_max_seconds: f64,
    /// Its hold when the request names none.
    pub devbox_hold_default_seconds: f64,
    /// How long `create_and_await_running` waits for the boot (unknown on the
    /// service; clients give up on a request after 30 s).
    pub create_hold_seconds: f64,
    /// Longest and default hold of an execution's `wait_for_status`.
    pub execution_hold_max_seconds: f64,
    /// Longest and default optimistic wait of `execute`.
    pub optimistic_max_seconds: f64,
    /// What `optimistic_timeout: 0` means.
    pub optimistic_zero: ZeroTimeout,
    /// The answer when the optimistic wait ends first.
    pub optimistic_expiry: OptimisticExpiry,

    /// `execute` without a `command_id` is a 400.
    pub require_command_id: bool,
    /// The same `command_id` on one Devbox gives the same execution.
    pub dedupe_command_ids: bool,
    /// The execution's id is its `command_id` (inferred).
    pub execution_id_is_command_id: bool,
    /// A repeated `x-request-id` on a POST gives the first answer again
    /// (unknown: clients send it as if it did).
    pub dedupe_request_ids: bool,
    /// A command is completed only when nothing holds its outputs open
    /// (inferred), and not already when its shell has ended.
    pub completion_waits_for_output: bool,
    /// Executions are still known after a suspend.
    pub executions_survive_suspend: bool,
    /// Exit status of what was killed (unknown).
    pub kill_exit_status: i32,
    /// What becomes of an execution that is sent stdin.
    pub stdin: StdinSupport,

    /// Lines of each output that a view shows without `last_n`.
    pub default_last_n: usize,
    /// Most bytes of each output in a view; more is truncated from the front.
    pub view_max_bytes: Option<usize>,
    /// How a view shows an empty output.
    pub empty_output: EmptyOutput,
    /// Which end of its chunk a stream event's `offset` names.
    pub stream_offset: ChunkOffset,
    /// What stream offsets count.
    pub stream_unit: OffsetUnit,
    /// Most bytes of output in one stream event.
    pub stream_chunk_bytes: usize,
    /// A stream with no event for so long ends with a 408 error event.
    pub stream_idle_seconds: f64,

    /// How long a terminal without a client is kept, in seconds of virtual time.
    pub pty_idle_ttl_seconds: u32,
    /// How much of what a terminal shows without a client the next one is shown.
    pub pty_backlog_bytes: usize,

    /// Commands outside named shells run in login shells, as newer clients say
    /// (inferred).
    pub login_shell: bool,
    /// What runs commands on boxes made from now on.
    pub shell: CommandShell,
    /// The only programs on their PATH; `null` for all.
    pub tools: Option<Vec<String>>,
    /// The disk of boxes made from now on; `null` for the size that they ask for.
    pub disk_quota_bytes: Option<u64>,
    /// What a failing launch command does.
    pub launch_failure: LaunchFailure,
    /// When a box's lifetime starts to count.
    pub lifetime_start: LifetimeStart,

    /// Status of a create whose snapshot, blueprint name or network policy is not
    /// there (unknown; for a blueprint id 400 is certain).
    pub unknown_reference_status: u16,
    /// Status of a file or exec call on a box that is not running.
    pub not_running_status: u16,
    /// Status of a read or download of a file that is not there.
    pub missing_file_status: u16,
    /// Status of a read, download, write or upload where a directory is (inferred).
    pub directory_status: u16,
    /// Writes and uploads make the parent directories.
    pub create_parents: bool,
    /// How `write_file_contents` reports a failure.
    pub write_failure: WriteFailure,

    /// A second network policy of one name is a 400, as the older clients and
    /// the specification say; newer ones say that names may be reused.
    pub unique_policy_names: bool,
    /// When an edited network policy holds for a box that is already there.
    pub policy_edits: PolicyEdits,
    /// A suspended box counts as one that uses its network policy.
    pub suspended_uses_policy: bool,
    /// Status of `remove_tunnel` where there is none.
    pub no_tunnel_status: u16,
    /// Status of the second delete of a snapshot or blueprint.
    pub repeated_delete_status: u16,
    /// How the blueprint list's name filter matches.
    pub blueprint_name_match: NameMatch,
    /// The answer to an unknown cursor.
    pub unknown_cursor: UnknownCursor,
    /// The order of lists.
    pub list_order: ListOrder,
    /// How long a log line takes to appear, in milliseconds.
    pub logs_delay_ms: u64,

    /// Live boxes, snapshots and blueprints that an account may have.
    pub devbox_quota: Option<usize>,
    /// Snapshots that an account may have.
    pub snapshot_quota: Option<usize>,
    /// Blueprints that an account may have.
    pub blueprint_quota: Option<usize>,
    /// Entries that metadata may have; more is a 400 (unknown: no limit is published).
    pub metadata_max_entries: Option<usize>,
    /// Bytes of a key or a value of metadata; more is a 400 (unknown likewise).
    pub metadata_max_bytes: Option<usize>,
    /// Status of a request beyond a quota.
    pub quota_status: u16,
    /// Requests served at once; one more is a 429.
    pub max_concurrent_requests: Option<usize>,
    /// The `retry-after` of quota and concurrency refusals, as it stands.
    pub retry_after: Option<String>,
    /// Added before every request is acted on, in milliseconds.
    pub latency_ms: u64,
    /// Idle connections are closed after so long; `null` for never.
    pub keep_alive_seconds: Option<f64>,
    /// Requests at once on one HTTP/2 connection, from the next connection on
    /// (128 on the service, as a comment in an official client says).
    pub http2_max_concurrent_streams: u32,
    /// Requests that the journal keeps.
    pub journal_max_entries: usize,
    /// The journal keeps what was answered too, except binary files.
    pub journal_response_bodies: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            boot_ms: 0,
            suspend_ms: 0,
            resume_ms: 0,
            snapshot_ms: 0,
            build_ms: 0,
            devbox_hold_max_seconds: 30.0,
            devbox_hold_default_seconds: 10.0,
            create_hold_seconds: 25.0,
            execution_hold_max_seconds: 25.0,
            optimistic_max_seconds: 25.0,
            optimistic_zero: ZeroTimeout::default(),
            optimistic_expiry: OptimisticExpiry::default(),
            require_command_id: true,
            dedupe_command_ids: true,
            execution_id_is_command_id: true,
            dedupe_request_ids: false,
            completion_waits_for_output: true,
            executions_survive_suspend: false,
            kill_exit_status: 137,
            stdin: StdinSupport::default(),
            default_last_n: 100,
            view_max_bytes: None,
            empty_output: EmptyOutput::default(),
            stream_offset: ChunkOffset::default(),
            stream_unit: OffsetUnit::default(),
            stream_chunk_bytes: 16 * 1024,
            stream_idle_seconds: 25.0,
            pty_idle_ttl_seconds: 300,
            pty_backlog_bytes: 0,
            login_shell: false,
            shell: CommandShell::default(),
            tools: None,
            disk_quota_bytes: None,
            launch_failure: LaunchFailure::default(),
            lifetime_start: LifetimeStart::default(),
            unknown_reference_status: 400,
            not_running_status: 400,
            missing_file_status: 404,
            directory_status: 400,
            create_parents: false,
            write_failure: WriteFailure::default(),
            unique_policy_names: true,
            policy_edits: PolicyEdits::default(),
            suspended_uses_policy: true,
            no_tunnel_status: 200,
            repeated_delete_status: 200,
            blueprint_name_match: NameMatch::default(),
            unknown_cursor: UnknownCursor::default(),
            list_order: ListOrder::default(),
            logs_delay_ms: 0,
            devbox_quota: None,
            snapshot_quota: None,
            blueprint_quota: None,
            metadata_max_entries: None,
            metadata_max_bytes: None,
            quota_status: 429,
            max_concurrent_requests: None,
            retry_after: Some("1".to_owned()),
            latency_ms: 0,
            keep_alive_seconds: None,
            http2_max_concurrent_streams: 128,
            journal_max_entries: 50_000,
            journal_response_bodies: false,
        }
    }
}

impl Settings {
    /// These settings with the fields of a JSON object laid over them; `null`
    /// is a value here: it clears a switch that may be absent.
    ///
    /// # Errors
    ///
    /// A sentence that names the unknown field or the wrong type.
    pub fn patched(&self, patch: &Value) -> Result<Self, String> {
        let mut merged = serde_json::to_value(self).map_err(|error| error.to_string())?;
        let (Some(fields), Some(changes)) = (merged.as_object_mut(), patch.as_object()) else {
            return Err("settings must be a JSON object".to_owned());
        };
        fields.extend(changes.clone());
        serde_json::from_value(merged).map_err(|error| error.to_string())
    }

    /// These settings with one `name=value`, as the command line gives it; the
    /// value is JSON, or a bare word.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with it.
    pub fn with_assignment(&self, assignment: &str) -> Result<Self, String> {
        let (name, text) = assignment
            .split_once('=')
            .ok_or_else(|| format!("{assignment}: not NAME=VALUE"))?;
        let value = serde_json::from_str(text).unwrap_or_else(|_error| Value::from(text));
        let patch = Value::Object(std::iter::once((name.to_owned(), value)).collect());
        self.patched(&patch)
    }
}

/// The settings in force.
#[derive(Debug)]
pub(crate) struct CurrentSettings(RwLock<Arc<Settings>>);

impl CurrentSettings {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(RwLock::new(Arc::new(settings)))
    }

    pub(crate) fn get(&self) -> Arc<Settings> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn patch(&self, patch: &Value) -> Result<Arc<Settings>, String> {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(current.patched(patch)?);
        Ok(Arc::clone(&current))
    }
}
