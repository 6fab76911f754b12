//! Where disks and layers lie.
//!
//! `disks/ID/upper` is what a Devbox has written, `layers/ID` a copy of that; both lie in
//! the state directory if there is one. `boxes/ID` is what lasts only while it runs.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::sweep;
use crate::guest::protocol::Setup;

/// The keeper's directories.
pub(super) struct Store {
    base_dir: PathBuf,
    disks_dir: PathBuf,
    layers_dir: PathBuf,
    boxes_dir: PathBuf,
    plain_reason: Option<String>,
    /// Locked for as long as the keeper lives.
    _locks: Vec<File>,
}

/// Where one Devbox lies.
pub(super) struct Place {
    pub(super) upper: PathBuf,
    pub(super) box_dir: PathBuf,
}

impl Store {
    pub(super) fn open(setup: &Setup) -> io::Result<Self> {
        let reason = if setup.may_isolate {
            "namespaces are not built in"
        } else {
            "plain processes were asked for"
        };
        let (base_dir, lock) = sweep::make_base_dir(&setup.temporary_dir)?;
        let mut locks = vec![lock];
        if let Some(state_dir) = &setup.state_dir {
            locks.push(sweep::lock_state_dir(state_dir)?);
        }
        let kept = setup.state_dir.as_ref().unwrap_or(&base_dir);
        let store = Self {
            disks_dir: kept.join("disks"),
            layers_dir: kept.join("layers"),
            boxes_dir: base_dir.join("boxes"),
            base_dir,
            plain_reason: Some(reason.to_owned()),
            _locks: locks,
        };
        for dir in [&store.disks_dir, &store.layers_dir, &store.boxes_dir] {
            std::fs::create_dir_all(dir)?;
        }
        Ok(store)
    }

    pub(super) fn plain_reason(&self) -> Option<&str> {
        self.plain_reason.as_deref()
    }

    pub(super) fn disks_dir(&self) -> &Path {
        &self.disks_dir
    }

    pub(super) fn boxes_dir(&self) -> &Path {
        &self.boxes_dir
    }

    /// The directory that a Devbox writes to, and whether it was made now.
    pub(super) fn create_disk(
        &self,
        box_id: &str,
        _max_bytes: Option<u64>,
    ) -> io::Result<(OwnedFd, bool)> {
        let place = self.place(box_id);
        let is_new = !place.upper.exists();
        std::fs::create_dir_all(&place.upper)?;
        std::fs::create_dir_all(&place.box_dir)?;
        Ok((File::open(&place.upper)?.into(), is_new))
    }

    pub(super) fn place(&self, box_id: &str) -> Place {
        Place {
            upper: self.disks_dir.join(box_id).join("upper"),
            box_dir: self.boxes_dir.join(box_id),
        }
    }

    /// Makes an init end; it ends what it started first.
    pub(super) fn end_init(&self, init: Pid) {
        // An error means that it has ended already.
        let _ = kill(init, Signal::SIGTERM);
    }

    pub(super) fn remove_disk(&self, box_id: &str) -> io::Result<()> {
        remove_tree(&self.boxes_dir.join(box_id))?;
        remove_tree(&self.disks_dir.join(box_id))
    }

    /// A layer's directory.
    pub(super) fn open_layer(&self, layer_id: &str, create: bool) -> io::Result<OwnedFd> {
        let dir = self.layers_dir.join(layer_id);
        if create {
            std::fs::create_dir(&dir)?;
        }
        Ok(File::open(dir)?.into())
    }

    pub(super) fn remove_layer(&self, layer_id: &str) -> io::Result<()> {
        remove_tree(&self.layers_dir.join(layer_id))
    }

    /// Removes what no next start shall find.
    pub(super) fn close(self) {
        // Nobody is left to tell; the next start sweeps it.
        let _ = remove_tree(&self.base_dir);
    }
}

fn remove_tree(dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
