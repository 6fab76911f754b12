//! Devboxes: what is known of each and how it is shown.
//!
//! A box changes only through [`Devbox::change`], which wakes every long poll
//! on it. What moves it from one status to the next is in `lifecycle.rs`; a
//! fault may show another status than the true one (`script.rs`).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::accounts::AccountKey;
use super::executions::Executions;
use super::launch::Launch;
use super::logs::Log;
use super::script::{Playing, Script};
use super::status::DevboxStatus;
use super::terminals::Terminals;
use super::tunnels::Tunnel;
use super::view::{maybe, with_optional};
use crate::error::{ApiError, ApiResult};
use crate::guest::{Guest, Layer};

/// One entry of `state_transitions`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Transition {
    pub(crate) status: DevboxStatus,
    pub(crate) time_ms: i64,
}

/// What never changes about a box.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) id: String,
    pub(crate) account_id: AccountKey,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) file_mounts: BTreeMap<String, String>,
    pub(crate) entrypoint: Option<String>,
    pub(crate) launch: Launch,
    /// As given, over what was inherited from the image.
    pub(crate) launch_parameters: Map<String, Value>,
    pub(crate) blueprint_id: Option<String>,
    pub(crate) snapshot_id: Option<String>,
    /// The disk that it starts on; none for the default image.
    pub(crate) layer: Option<Layer>,
}

/// What changes about a box.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) status: DevboxStatus,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) create_time_ms: i64,
    pub(crate) end_time_ms: Option<i64>,
    pub(crate) failure_reason: Option<String>,
    pub(crate) shutdown_reason: Option<String>,
    pub(crate) tunnel: Option<Tunnel>,
    /// Virtual time at which the lifetime ends, once it counts.
    pub(crate) lifetime_end_ms: Option<i64>,
    /// Virtual time of the last call that kept the box from idling.
    pub(crate) active_ms: i64,
    /// Snapshots that are being taken; a shutdown without force is refused.
    #[serde(skip)]
    pub(crate) snapshots_in_progress: usize,
    #[serde(skip)]
    playing: Option<Playing>,
}

impl Record {
    pub(crate) fn new(
        name: Option<String>,
        metadata: BTreeMap<String, String>,
        tunnel: Option<Tunnel>,
        now_ms: i64,
    ) -> Self {
        Self {
            name,
            metadata,
            status: DevboxStatus::Provisioning,
            transitions: Vec::new(),
            create_time_ms: now_ms,
            end_time_ms: None,
            failure_reason: None,
            shutdown_reason: None,
            tunnel,
            lifetime_end_ms: None,
            active_ms: now_ms,
            snapshots_in_progress: 0,
            playing: None,
        }
    }

    /// A copy without what ends with the simulator.
    pub(super) fn saved(&self) -> Self {
        Self {
            name: self.name.clone(),
            metadata: self.metadata.clone(),
            transitions: self.transitions.clone(),
            failure_reason: self.failure_reason.clone(),
            shutdown_reason: self.shutdown_reason.clone(),
            tunnel: self.tunnel.clone(),
            snapshots_in_progress: 0,
            playing: None,
            ..*self
        }
    }

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
        if let Some(playing) = &mut self.playing {
            playing.entered(status, Instant::now());
        }
    }

    /// Lets go of a script that is over.
    fn advance_script(&mut self) -> Option<&mut Playing> {
        let truth = self.status;
        if self
            .playing
            .as_mut()
            .is_some_and(|playing| playing.advance(Instant::now(), truth))
        {
            self.playing = None;
        }
        self.playing.as_mut()
    }
}

/// One Devbox.
#[derive(Debug)]
pub(crate) struct Devbox {
    pub(crate) origin: Origin,
    record: Mutex<Record>,
    changes: watch::Sender<u64>,
    guest: Mutex<Option<Guest>>,
    pub(crate) executions: Executions,
    pub(crate) terminals: Terminals,
    pub(crate) log: Log,
    /// Fires when the box ends: whatever works on it stops.
    pub(crate) ended: CancellationToken,
}

impl Devbox {
    pub(crate) fn new(origin: Origin, record: Record) -> Arc<Self> {
        Arc::new(Self {
            origin,
            record: Mutex::new(record),
            changes: watch::Sender::new(0),
            guest: Mutex::new(None),
            executions: Executions::default(),
            terminals: Terminals::default(),
            log: Log::default(),
            ended: CancellationToken::new(),
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.origin.id
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

    /// The true status.
    pub(crate) fn status(&self) -> DevboxStatus {
        self.read().status
    }

    /// The status that clients are shown, and act by.
    pub(crate) fn shown_status(&self) -> String {
        let mut record = self.read();
        let truth = record.status.as_str();
        let shown = record.advance_script().and_then(|playing| playing.shown());
        shown.map_or_else(|| truth.to_owned(), |step| step.status.clone())
    }

    /// Lets the box play a script from now on.
    pub(crate) fn play(&self, script: Script) {
        self.change(|record| {
            record.playing = Some(Playing::new(script, record.status, Instant::now()));
        });
    }

    /// When the script, if there is one, shows something else by itself.
    pub(crate) fn next_script_change(&self) -> Option<Instant> {
        self.read()
            .advance_script()
            .and_then(|playing| playing.next_change())
    }

    /// The machine of a running box. A box that is not is refused with
    /// `refusal` (the service's status is unknown).
    pub(crate) fn running_guest(&self, refusal: u16) -> ApiResult<Guest> {
        let shown = self.shown_status();
        match self.guest() {
            Some(guest) if shown == "running" => Ok(guest),
            _ => Err(ApiError::new(
                StatusCode::from_u16(refusal).unwrap_or(StatusCode::BAD_REQUEST),
                format!("devbox {} is not running: its status is {shown}", self.id()),
            )),
        }
    }

    /// The machine, whatever the status; none before the boot and after the end.
    pub(crate) fn guest(&self) -> Option<Guest> {
        self.lock_guest().clone()
    }

    pub(crate) fn set_guest(&self, guest: Guest) {
        *self.lock_guest() = Some(guest);
    }

    pub(crate) fn take_guest(&self) -> Option<Guest> {
        self.lock_guest().take()
    }

    fn lock_guest(&self) -> MutexGuard<'_, Option<Guest>> {
        self.guest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether tunnel traffic resumes the box: the lifecycle's trigger outranks
    /// the tunnel's own switch (certain).
    pub(crate) fn wakes_on_http(&self) -> bool {
        let record = self.read();
        let of_tunnel = record.tunnel.as_ref().map(|tunnel| tunnel.wake_on_http);
        of_tunnel.is_some_and(|own| self.origin.launch.resume_on_http.unwrap_or(own))
    }

    /// The box was used: its idle time begins anew.
    pub(crate) fn touch(&self, now_ms: i64) {
        self.read().active_ms = now_ms;
    }

    /// The DevboxView. Environment and secrets are not in it (certain).
    pub(crate) fn view(&self) -> Value {
        let mut record = self.read();
        let script = record.advance_script().and_then(|playing| {
            playing.count_view();
            playing.shown().cloned()
        });
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
        let (status, failure_reason, shutdown_reason) = match script {
            Some(step) => (step.status, step.failure_reason, step.shutdown_reason),
            None => (
                record.status.as_str().to_owned(),
                record.failure_reason.clone(),
                record.shutdown_reason.clone(),
            ),
        };
        let required = json!({
            "id": self.origin.id,
            "status": status,
            "create_time_ms": record.create_time_ms,
            "end_time_ms": record.end_time_ms,
            "metadata": record.metadata,
            "launch_parameters": self.origin.launch_parameters,
            "capabilities": [],
            "state_transitions": transitions,
            "initiator_type": "api",
        });
        with_optional(
            required,
            [
                ("name", maybe(record.name.as_deref())),
                ("blueprint_id", maybe(self.origin.blueprint_id.as_deref())),
                ("snapshot_id", maybe(self.origin.snapshot_id.as_deref())),
                ("failure_reason", maybe(failure_reason)),
                ("shutdown_reason", maybe(shutdown_reason)),
                ("tunnel", record.tunnel.as_ref().map(Tunnel::view)),
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
        store
            .by_id
            .insert(devbox.id().to_owned(), Arc::clone(&devbox));
        store.by_age.push(devbox);
    }

    /// A shut-down box is still found (certain); how long it is kept on the
    /// service is unknown, here for the simulator's life.
    pub(crate) fn get(&self, account_id: &str, id: &str) -> ApiResult<Arc<Devbox>> {
        self.find(id)
            .filter(|devbox| &*devbox.origin.account_id == account_id)
            .ok_or_else(|| ApiError::not_found("devbox", id))
    }

    /// Whichever account it belongs to.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Devbox>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .by_id
            .get(id)
            .cloned()
    }

    /// Newest first, of every account.
    pub(crate) fn all(&self) -> Vec<Arc<Devbox>> {
        let store = self.0.read().unwrap_or_else(PoisonError::into_inner);
        store.by_age.iter().rev().cloned().collect()
    }

    /// Newest first, of one account.
    pub(crate) fn list(&self, account_id: &str) -> Vec<Arc<Devbox>> {
        let mut boxes = self.all();
        boxes.retain(|devbox| &*devbox.origin.account_id == account_id);
        boxes
    }
}
