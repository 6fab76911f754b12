//! Keeping a simulator's state in a directory from one start to the next.
//!
//! `api.json` holds the records, the `machine` directory beside it the disks.
//! It is written when something has changed (looked for twice a second) and at
//! the end. Settings, faults, executions, logs and the journal are not kept.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::World;
use super::accounts::{AccountKey, Book};
use super::blueprints::{Blueprint, BuildStatus};
use super::devboxes::{Devbox, Origin, Record};
use super::launch::Launch;
use super::lifecycle;
use super::policies::Policy;
use super::secrets::Secret;
use super::snapshots::{Snapshot, SnapshotStatus};
use super::status::DevboxStatus;
use crate::guest::Layer;

const SAVE_INTERVAL: Duration = Duration::from_millis(500);

/// Everything that is kept.
#[derive(Serialize, Deserialize)]
struct Saved {
    clock_offset_ms: i64,
    accounts: Book,
    policies: Vec<Policy>,
    secrets: Vec<Secret>,
    snapshots: Vec<WithLayer<Snapshot>>,
    blueprints: Vec<WithLayer<Blueprint>>,
    devboxes: Vec<SavedDevbox>,
}

/// A record and the id of the layer that it owns.
#[derive(Serialize, Deserialize)]
struct WithLayer<T> {
    record: T,
    layer_id: Option<String>,
}

/// A box, without what is made anew from its launch parameters.
#[derive(Serialize, Deserialize)]
struct SavedDevbox {
    id: String,
    account_id: AccountKey,
    environment: BTreeMap<String, String>,
    file_mounts: BTreeMap<String, String>,
    entrypoint: Option<String>,
    launch_parameters: Map<String, Value>,
    blueprint_id: Option<String>,
    snapshot_id: Option<String>,
    record: Record,
}

/// Where the state is kept.
#[derive(Debug, Clone)]
pub(crate) struct StateDir(PathBuf);

impl StateDir {
    /// Makes the directory if it is missing.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Where the machine keeps its disks.
    pub(crate) fn machine_dir(&self) -> PathBuf {
        self.0.join("machine")
    }

    /// Takes over what an earlier simulator left. A box that was live is
    /// suspended now, as after a suspend; one that was still booting failed.
    pub(crate) async fn load(&self, world: &Arc<World>) -> io::Result<()> {
        let text = match std::fs::read(self.file()) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let saved: Saved = serde_json::from_slice(&text)?;
        world.clock.advance_ms(saved.clock_offset_ms);
        world.accounts.restore(saved.accounts);
        world.policies.restore(saved.policies);
        world.secrets.restore(saved.secrets);
        let mut snapshots = Vec::new();
        for WithLayer {
            mut record,
            layer_id,
        } in saved.snapshots
        {
            record.layer = open_layer(world, layer_id).await;
            if record.status == SnapshotStatus::InProgress {
                record.fail("the simulator ended during the snapshot");
            }
            snapshots.push(record);
        }
        world.snapshots.restore(snapshots);
        let mut blueprints = Vec::new();
        for WithLayer {
            mut record,
            layer_id,
        } in saved.blueprints
        {
            record.layer = open_layer(world, layer_id).await;
            if !matches!(
                record.status,
                BuildStatus::BuildComplete | BuildStatus::Failed
            ) {
                record.status = BuildStatus::Failed;
                record.failure_reason = Some("build_failed".to_owned());
            }
            blueprints.push(record);
        }
        world.blueprints.restore(blueprints);
        for devbox in saved.devboxes {
            let devbox = devbox.restore().map_err(io::Error::other)?;
            world.devboxes.add(Arc::clone(&devbox));
            lifecycle::take_over(world, &devbox).await;
        }
        Ok(())
    }

    /// Saves what has changed until it is no longer polled.
    pub(crate) async fn keep_saving(self, world: Arc<World>) {
        let mut last = Vec::new();
        loop {
            tokio::time::sleep(SAVE_INTERVAL).await;
            match self.save_unless(&world, &last) {
                Ok(saved) => last = saved,
                Err(error) => tracing::error!(%error, "the state could not be saved"),
            }
        }
    }

    /// Saves the state as it is.
    pub(crate) fn save(&self, world: &World) -> io::Result<()> {
        self.save_unless(world, &[]).map(drop)
    }

    /// Saves unless the state is the same as it was; what it is now.
    fn save_unless(&self, world: &World, last: &[u8]) -> io::Result<Vec<u8>> {
        let text = serde_json::to_vec(&collect(world))?;
        if text != last {
            let unfinished = self.0.join("api.json.new");
            write_private(&unfinished, &text)?;
            std::fs::rename(&unfinished, self.file())?;
        }
        Ok(text)
    }

    fn file(&self) -> PathBuf {
        self.0.join("api.json")
    }
}

/// It holds environments and secrets: for the owner's eyes only.
fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text)
}

async fn open_layer(world: &World, id: Option<String>) -> Option<Layer> {
    let id = id?;
    match world.machine.open_layer(&id).await {
        Ok(layer) => Some(layer),
        Err(error) => {
            tracing::warn!(layer = id, %error, "a layer is gone");
            None
        }
    }
}

fn collect(world: &World) -> Saved {
    let mut devboxes: Vec<_> = world
        .devboxes
        .all()
        .iter()
        .map(|devbox| SavedDevbox::of(devbox))
        .collect();
    devboxes.reverse();
    Saved {
        clock_offset_ms: world.clock.offset_ms(),
        accounts: world.accounts.saved(),
        policies: world.policies.saved(),
        secrets: world.secrets.saved(),
        snapshots: with_layers(world.snapshots.saved(), |snapshot| snapshot.layer.as_ref()),
        blueprints: with_layers(world.blueprints.saved(), |blueprint| {
            blueprint.layer.as_ref()
        }),
        devboxes,
    }
}

fn with_layers<T>(records: Vec<T>, layer_of: impl Fn(&T) -> Option<&Layer>) -> Vec<WithLayer<T>> {
    let with_layer = |record: T| {
        let layer_id = layer_of(&record).map(|layer| layer.id().to_owned());
        WithLayer { record, layer_id }
    };
    records.into_iter().map(with_layer).collect()
}

impl SavedDevbox {
    fn of(devbox: &Devbox) -> Self {
        let origin = &devbox.origin;
        Self {
            id: origin.id.clone(),
            account_id: origin.account_id.clone(),
            environment: origin.environment.clone(),
            file_mounts: origin.file_mounts.clone(),
            entrypoint: origin.entrypoint.clone(),
            launch_parameters: origin.launch_parameters.clone(),
            blueprint_id: origin.blueprint_id.clone(),
            snapshot_id: origin.snapshot_id.clone(),
            record: devbox.read().saved(),
        }
    }

    fn restore(self) -> Result<Arc<Devbox>, String> {
        let launch = Launch::parse(&self.launch_parameters).map_err(|error| error.message)?;
        let origin = Origin {
            id: self.id,
            account_id: self.account_id,
            environment: self.environment,
            file_mounts: self.file_mounts,
            entrypoint: self.entrypoint,
            launch,
            launch_parameters: self.launch_parameters,
            blueprint_id: self.blueprint_id,
            snapshot_id: self.snapshot_id,
            // Its disk is there already.
            layer: None,
        };
        Ok(Devbox::new(origin, self.record))
    }
}

/// Whether a box of this status has a disk that it can go on with.
pub(super) fn has_disk(status: DevboxStatus) -> bool {
    matches!(
        status,
        DevboxStatus::Running
            | DevboxStatus::Suspending
            | DevboxStatus::Suspended
            | DevboxStatus::Resuming
    )
}
