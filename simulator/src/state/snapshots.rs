//! Disk snapshots: copies of boxes' disks that outlive them.
//!
//! Certain: taking one leaves the box running, a deleted one is still told by
//! its status route, one that is not complete cannot be deleted (409).
//! Unknown: which ones are listed; here those in progress and complete.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::World;
use super::accounts::AccountKey;
use super::devboxes::Devbox;
use super::ids;
use super::status::DevboxStatus;
use super::view::{maybe, with_optional};
use crate::error::{ApiError, ApiResult};
use crate::guest::Layer;

/// Longest commit message (certain).
const MAX_MESSAGE_CHARACTERS: usize = 1000;

/// The body of `snapshot_disk` and of an update.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct SnapshotFields {
    name: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
    commit_message: Option<String>,
}

impl SnapshotFields {
    /// Refuses metadata beyond the limits of the switches.
    pub(crate) fn check(&self, world: &World) -> ApiResult<()> {
        self.metadata
            .as_ref()
            .map_or(Ok(()), |metadata| world.refuse_large_metadata(metadata))
    }
}

/// How far a snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SnapshotStatus {
    InProgress,
    Complete,
    Error,
    Deleted,
}

/// How a fault lets a snapshot end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SnapshotOutcome {
    /// Least time in progress, over the setting's.
    pub(crate) milliseconds: u64,
    /// It ends in `error` with this message.
    pub(crate) error: Option<String>,
    /// Nothing is known of it in the end: 404.
    pub(crate) vanish: bool,
}

/// One snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    account_id: AccountKey,
    name: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    commit_message: Option<String>,
    pub(crate) create_time_ms: i64,
    pub(crate) source_devbox_id: String,
    pub(crate) source_blueprint_id: Option<String>,
    pub(crate) source_launch_parameters: Map<String, Value>,
    pub(crate) status: SnapshotStatus,
    pub(crate) error_message: Option<String>,
    #[serde(skip)]
    pub(crate) layer: Option<Layer>,
}

impl Snapshot {
    /// The DevboxDiskSnapshotView, which has no status.
    pub(crate) fn view(&self) -> Value {
        let required = json!({
            "id": self.id,
            "create_time_ms": self.create_time_ms,
            "metadata": self.metadata,
            "source_devbox_id": self.source_devbox_id,
        });
        let size_bytes = self.layer.as_ref().map(Layer::size_bytes);
        with_optional(
            required,
            [
                ("name", maybe(self.name.as_ref())),
                ("commit_message", maybe(self.commit_message.as_ref())),
                (
                    "source_blueprint_id",
                    maybe(self.source_blueprint_id.as_ref()),
                ),
                ("size_bytes", maybe(size_bytes)),
            ],
        )
    }

    /// The DevboxSnapshotAsyncStatusView.
    pub(crate) fn status_view(&self) -> Value {
        let is_shown = matches!(self.status, SnapshotStatus::Complete);
        with_optional(
            json!({ "status": self.status }),
            [
                ("snapshot", is_shown.then(|| self.view())),
                ("error_message", maybe(self.error_message.as_ref())),
            ],
        )
    }

    pub(super) fn fail(&mut self, message: impl Into<String>) {
        self.error_message = Some(message.into());
        self.status = SnapshotStatus::Error;
    }

    /// An update replaces the whole metadata; absent fields keep their value
    /// (unknown: the specification speaks of full replacement).
    fn apply(&mut self, fields: SnapshotFields) -> ApiResult<()> {
        let message = fields.commit_message.or(self.commit_message.take());
        if message
            .as_ref()
            .is_some_and(|text| text.chars().count() > MAX_MESSAGE_CHARACTERS)
        {
            return Err(ApiError::bad_request(format!(
                "commit_message has at most {MAX_MESSAGE_CHARACTERS} characters"
            )));
        }
        self.commit_message = message;
        self.name = fields.name.or(self.name.take());
        if let Some(metadata) = fields.metadata {
            self.metadata = metadata;
        }
        Ok(())
    }
}

/// All snapshots, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    all: Mutex<Vec<Snapshot>>,
    changes: watch::Sender<u64>,
}

impl Snapshots {
    pub(crate) fn get(&self, account_id: &str, id: &str) -> ApiResult<Snapshot> {
        self.find(id)
            .filter(|snapshot| &*snapshot.account_id == account_id)
            .ok_or_else(|| ApiError::not_found("snapshot", id))
    }

    /// One that a box can start from.
    pub(crate) fn restorable(&self, account_id: &str, id: &str) -> ApiResult<Snapshot> {
        let snapshot = self.get(account_id, id)?;
        match snapshot.status {
            SnapshotStatus::Complete => Ok(snapshot),
            SnapshotStatus::Deleted => Err(ApiError::not_found("snapshot", id)),
            SnapshotStatus::InProgress | SnapshotStatus::Error => Err(ApiError::bad_request(
                format!("snapshot {id} is not complete"),
            )),
        }
    }

    /// Those in progress and complete, newest first.
    pub(crate) fn list(&self, account_id: &str) -> Vec<Snapshot> {
        let is_listed = |snapshot: &&Snapshot| {
            &*snapshot.account_id == account_id
                && matches!(
                    snapshot.status,
                    SnapshotStatus::InProgress | SnapshotStatus::Complete
                )
        };
        self.lock()
            .iter()
            .rev()
            .filter(is_listed)
            .cloned()
            .collect()
    }

    pub(crate) fn update(
        &self,
        account_id: &str,
        id: &str,
        fields: SnapshotFields,
    ) -> ApiResult<Snapshot> {
        self.get(account_id, id)?;
        self.change(id, |snapshot| {
            snapshot.apply(fields).map(|()| snapshot.clone())
        })
        .unwrap_or_else(|| Err(ApiError::not_found("snapshot", id)))
    }

    /// Deletes a complete snapshot; whether there was anything left to delete.
    pub(crate) async fn delete(&self, account_id: &str, id: &str) -> ApiResult<bool> {
        match self.get(account_id, id)?.status {
            SnapshotStatus::Deleted => return Ok(false),
            SnapshotStatus::InProgress | SnapshotStatus::Error => {
                return Err(ApiError::new(
                    http::StatusCode::CONFLICT,
                    format!("snapshot {id} was not successfully created"),
                ));
            }
            SnapshotStatus::Complete => {}
        }
        let layer = self.change(id, |snapshot| {
            snapshot.status = SnapshotStatus::Deleted;
            snapshot.layer.take()
        });
        if let Some(layer) = layer.flatten() {
            layer
                .delete()
                .await
                .map_err(super::executions::guest_failed)?;
        }
        Ok(true)
    }

    /// Waits until the snapshot is no longer in progress.
    pub(crate) async fn settled(&self, account_id: &str, id: &str) -> ApiResult<Snapshot> {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            let snapshot = self.get(account_id, id)?;
            if snapshot.status != SnapshotStatus::InProgress || changes.changed().await.is_err() {
                return Ok(snapshot);
            }
        }
    }

    fn add(&self, snapshot: Snapshot) {
        self.lock().push(snapshot);
    }

    fn find(&self, id: &str) -> Option<Snapshot> {
        self.lock()
            .iter()
            .find(|snapshot| snapshot.id == id)
            .cloned()
    }

    fn change<T>(&self, id: &str, change: impl FnOnce(&mut Snapshot) -> T) -> Option<T> {
        let result = self
            .lock()
            .iter_mut()
            .find(|snapshot| snapshot.id == id)
            .map(change);
        self.changes.send_modify(|version| *version += 1);
        result
    }

    fn remove(&self, id: &str) {
        self.lock().retain(|snapshot| snapshot.id != id);
        self.changes.send_modify(|version| *version += 1);
    }

    pub(super) fn saved(&self) -> Vec<Snapshot> {
        self.lock().clone()
    }

    pub(super) fn restore(&self, snapshots: Vec<Snapshot>) {
        *self.lock() = snapshots;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Snapshot>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins to copy a box's disk; the work goes on whether or not anyone waits.
/// A suspended box can be copied too (unknown).
pub(crate) fn take(
    world: &Arc<World>,
    devbox: &Arc<Devbox>,
    fields: SnapshotFields,
    outcome: SnapshotOutcome,
) -> ApiResult<Snapshot> {
    let status = devbox.status();
    if !matches!(status, DevboxStatus::Running | DevboxStatus::Suspended) {
        return Err(ApiError::bad_request(format!(
            "devbox {} cannot be snapshotted: its status is {}",
            devbox.id(),
            status.as_str()
        )));
    }
    let account_id = &devbox.origin.account_id;
    world.refuse_over_quota(
        "snapshot",
        world.snapshots.list(account_id).len(),
        |settings| settings.snapshot_quota,
    )?;
    let mut snapshot = Snapshot {
        id: ids::fresh("snp"),
        account_id: account_id.clone(),
        name: None,
        metadata: BTreeMap::new(),
        commit_message: None,
        create_time_ms: world.clock.now_ms(),
        source_devbox_id: devbox.id().to_owned(),
        source_blueprint_id: devbox.origin.blueprint_id.clone(),
        source_launch_parameters: devbox.origin.launch_parameters.clone(),
        status: SnapshotStatus::InProgress,
        error_message: None,
        layer: None,
    };
    fields.check(world)?;
    snapshot.apply(fields)?;
    world.snapshots.add(snapshot.clone());
    devbox.touch(world.clock.now_ms());
    devbox.read().snapshots_in_progress += 1;
    let (world, devbox, id) = (Arc::clone(world), Arc::clone(devbox), snapshot.id.clone());
    tokio::spawn(async move {
        let copied = copy(&world, &devbox, &outcome).await;
        devbox.read().snapshots_in_progress -= 1;
        if outcome.vanish {
            world.snapshots.remove(&id);
            return;
        }
        world.snapshots.change(&id, |snapshot| match copied {
            Ok(layer) => {
                snapshot.layer = Some(layer);
                snapshot.status = SnapshotStatus::Complete;
            }
            Err(message) => snapshot.fail(message),
        });
    });
    Ok(snapshot)
}

async fn copy(world: &World, devbox: &Devbox, outcome: &SnapshotOutcome) -> Result<Layer, String> {
    let milliseconds = world.settings.get().snapshot_ms.max(outcome.milliseconds);
    let work = async {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        if let Some(message) = &outcome.error {
            return Err(message.clone());
        }
        let guest = devbox.guest().ok_or("the devbox has no disk any more")?;
        guest.snapshot().await.map_err(|error| error.to_string())
    };
    tokio::select! {
        copied = work => copied,
        () = devbox.ended.cancelled() => Err("the devbox ended during the snapshot".to_owned()),
    }
}
