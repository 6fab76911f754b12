//! Every switch where the real service is unknown or worth worsening.
//!
//! One struct is the whole list: the command line (`--set name=value`), the
//! library (`Options::settings`) and `POST /_simulator/settings` all speak its
//! field names. A change holds from the next request on.

use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What `optimistic_timeout: 0` means to `execute` (unknown on the service).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZeroTimeout {
    /// Answer at once.
    Immediate,
    /// As if the field were absent: the default wait.
    Default,
}

/// How `execute` answers when its optimistic wait ends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptimisticExpiry {
    /// 200 with a running view (certain: clients rely on it).
    Running,
    /// 408, which the specification also lists.
    RequestTimeout,
}

/// The switches and their defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The least time from create to `initializing`, in milliseconds.
    pub boot_ms: u64,
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
    /// Lines of each stream that a view shows without `last_n`.
    pub default_last_n: usize,
    /// Requests that the journal keeps.
    pub journal_max_entries: usize,
    /// The journal keeps what was answered too, except binary files.
    pub journal_response_bodies: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            boot_ms: 0,
            devbox_hold_max_seconds: 30.0,
            devbox_hold_default_seconds: 10.0,
            create_hold_seconds: 25.0,
            execution_hold_max_seconds: 25.0,
            optimistic_max_seconds: 25.0,
            optimistic_zero: ZeroTimeout::Immediate,
            optimistic_expiry: OptimisticExpiry::Running,
            require_command_id: true,
            dedupe_command_ids: true,
            execution_id_is_command_id: true,
            default_last_n: 100,
            journal_max_entries: 50_000,
            journal_response_bodies: false,
        }
    }
}

impl Settings {
    /// These settings with the fields of a JSON object laid over them.
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
