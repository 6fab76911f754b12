//! Devboxes: what is known of each and how it is shown.
//!
//! A box changes only through [`Devbox::change`], which wakes every long poll
//! on it. What moves it from one status to the next is in `lifecycle.rs`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::executions::Executions;
use super::machine::Guest;
use super::status::DevboxStatus;
use super::view::{maybe, with_optional};
use crate::error::{ApiError, ApiResult};

/// The body of `POST /v1/devboxes`; what is not listed is ignored.
#[derive(Debug, Default, Clone, Deserialize)]
pub(crate) struct CreateDevbox {
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) environment_variables: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) metadata: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) launch_parameters: Map<String, Value>,
}

/// The body of `POST /v1/devboxes/{id}`: an absent field keeps its value, a
/// given map replaces the whole map (certain for the newer clients).
#[derive(Debug, Default, Deserialize)]
pub(crate) struct UpdateDevbox {
    pub(crate) name: Option<String>,
    pub(crate) metadata: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Transition {
    status: DevboxStatus,
    time_ms: i64,
}

/// What changes about a box.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) launch_parameters: Map<String, Value>,
    pub(crate) status: DevboxStatus,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) create_time_ms: i64,
    pub(crate) end_time_ms: Option<i64>,
    pub(crate) failure_reason: Option<&'static str>,
    pub(crate) shutdown_reason: Option<&'static str>,
}

impl Record {
    /// Enters a status; a final one also ends the box's time.
    pub(crate) fn enter(&mut self, status: DevboxStatus, now_ms: i64) {
        self.status = status;
        self.transitions.push(Transition {
            status,
            time_ms: now_ms,
        });
        if status.is_final() {
            self.end_time_ms = Some(now_ms);
        }
    }
}

/// One Devbox.
#[derive(Debug)]
pub(crate) struct Devbox {
    pub(crate) id: String,
    pub(crate) account_id: Arc<str>,
    record: Mutex<Record>,
    changes: watch::Sender<u64>,
    guest: Mutex<Option<Arc<Guest>>>,
    pub(crate) executions: Executions,
    /// Ends what works on bringing the box up.
    pub(crate) ended: CancellationToken,
}

impl Devbox {
    pub(crate) fn new(
        id: String,
        account_id: Arc<str>,
        request: CreateDevbox,
        now_ms: i64,
    ) -> Arc<Self> {
        let mut record = Record {
            name: request.name,
            metadata: request.metadata,
            environment: request.environment_variables,
            launch_parameters: request.launch_parameters,
            status: DevboxStatus::Provisioning,
            transitions: Vec::new(),
            create_time_ms: now_ms,
            end_time_ms: None,
            failure_reason: None,
            shutdown_reason: None,
        };
        record.enter(DevboxStatus::Provisioning, now_ms);
        Arc::new(Self {
            id,
            account_id,
            record: Mutex::new(record),
            changes: watch::Sender::new(0),
            guest: Mutex::new(None),
            executions: Executions::default(),
            ended: CancellationToken::new(),
        })
    }

    pub(crate) fn read(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the box and wakes whoever waits for its status.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        let result = change(&mut self.read());
        self.changes.send_modify(|version| *version += 1);
        result
    }

    /// A receiver that sees every change from now on.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn status(&self) -> DevboxStatus {
        self.read().status
    }

    /// The machine of a running box; any other status is a 400 (the service's
    /// answer is unknown).
    pub(crate) fn running_guest(&self) -> ApiResult<Arc<Guest>> {
        let status = self.status();
        let guest = self
            .guest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match guest {
            Some(guest) if status == DevboxStatus::Running => Ok(guest),
            _ => Err(ApiError::bad_request(format!(
                "devbox {} is not running: its status is {}",
                self.id,
                status.as_str()
            ))),
        }
    }

    pub(crate) fn set_guest(&self, guest: Option<Arc<Guest>>) -> Option<Arc<Guest>> {
        std::mem::replace(
            &mut self.guest.lock().unwrap_or_else(PoisonError::into_inner),
            guest,
        )
    }

    /// The box has not ended and was made with this network policy.
    pub(crate) fn is_live_under_policy(&self, policy_id: &str) -> bool {
        let record = self.read();
        let policy = record.launch_parameters.get("network_policy_id");
        !record.status.is_final() && policy.and_then(Value::as_str) == Some(policy_id)
    }

    /// The DevboxView.
    pub(crate) fn view(&self) -> Value {
        let record = self.read();
        let transitions: Vec<Value> = record
            .transitions
            .iter()
            .map(|transition| {
                json!({
                    "status": transition.status.as_str(),
                    "transition_time_ms": transition.time_ms,
                })
            })
            .collect();
        let required = json!({
            "id": self.id,
            "status": record.status.as_str(),
            "create_time_ms": record.create_time_ms,
            "end_time_ms": record.end_time_ms,
            "metadata": record.metadata,
            "launch_parameters": record.launch_parameters,
            "capabilities": [],
            "state_transitions": transitions,
            "initiator_type": "api",
        });
        with_optional(
            required,
            [
                ("name", maybe(record.name.as_deref())),
                ("failure_reason", maybe(record.failure_reason)),
                ("shutdown_reason", maybe(record.shutdown_reason)),
            ],
        )
    }
}

/// All boxes, in the order of their creation.
#[derive(Debug, Default)]
pub(crate) struct Devboxes(RwLock<Store>);

#[derive(Debug, Default)]
struct Store {
    by_age: Vec<Arc<Devbox>>,
    by_id: HashMap<String, Arc<Devbox>>,
}

impl Devboxes {
    pub(crate) fn add(&self, devbox: Arc<Devbox>) {
        let mut store = self.0.write().unwrap_or_else(PoisonError::into_inner);
        store.by_id.insert(devbox.id.clone(), Arc::clone(&devbox));
        store.by_age.push(devbox);
    }

    /// A shut-down box is still found (certain); how long it is kept on the
    /// service is unknown, here for the simulator's life.
    pub(crate) fn get(&self, account_id: &str, id: &str) -> ApiResult<Arc<Devbox>> {
        let store = self.0.read().unwrap_or_else(PoisonError::into_inner);
        store
            .by_id
            .get(id)
            .filter(|devbox| &*devbox.account_id == account_id)
            .cloned()
            .ok_or_else(|| ApiError::not_found("devbox", id))
    }

    /// Newest first, of every account.
    pub(crate) fn all(&self) -> Vec<Arc<Devbox>> {
        let store = self.0.read().unwrap_or_else(PoisonError::into_inner);
        store.by_age.iter().rev().cloned().collect()
    }

    /// Newest first, of one account.
    pub(crate) fn list(&self, account_id: &str) -> Vec<Arc<Devbox>> {
        let mut boxes = self.all();
        boxes.retain(|devbox| &*devbox.account_id == account_id);
        boxes
    }
}
