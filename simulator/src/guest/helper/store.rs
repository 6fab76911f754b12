//! Where disks and layers lie, and what separates the Devboxes.
//!
//! `disks/ID/upper` is what a Devbox has written, `layers/ID` a copy of that; both lie in
//! the state directory if there is one. `boxes/ID` is what lasts only while it runs.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::host::{BASE_DIR, Host, mount_at};
use super::{network, sweep, system};
use crate::guest::protocol::Setup;

/// The keeper's directories.
pub(super) struct Store {
    disks_dir: PathBuf,
    layers_dir: PathBuf,
    boxes_dir: PathBuf,
    keeps_state: bool,
    isolation: Isolation,
    /// Held for as long as the keeper lives.
    _state_lock: Option<File>,
}

enum Isolation {
    Namespaces(Host),
    Plain {
        reason: String,
        base_dir: PathBuf,
        _lock: File,
    },
}

/// Where one Devbox lies.
pub(super) struct Place<'a> {
    /// Holds `upper`.
    pub(super) disk_dir: PathBuf,
    pub(super) box_dir: PathBuf,
    /// What the host's end of its network is called, if it gets one.
    pub(super) outside_name: String,
    /// `None` for a plain Devbox.
    pub(super) host: Option<&'a Host>,
}

impl Store {
    pub(super) fn open(setup: &Setup) -> io::Result<Self> {
        let state_lock = setup
            .state_dir
            .as_deref()
            .map(sweep::lock_state_dir)
            .transpose()?;
        let prepared = if setup.may_isolate {
            Host::prepare(setup)
        } else {
            Err("plain processes were asked for".to_owned())
        };
        let (isolation, base_dir, kept_dir) = match prepared {
            Ok(host) => {
                let base_dir = PathBuf::from(BASE_DIR);
                (
                    Isolation::Namespaces(host),
                    base_dir.clone(),
                    base_dir.join("kept"),
                )
            }
            Err(reason) => {
                let (base_dir, lock) = sweep::make_base_dir(&setup.temporary_dir)?;
                let kept_dir = setup.state_dir.clone().unwrap_or_else(|| base_dir.clone());
                let plain = Isolation::Plain {
                    reason,
                    base_dir: base_dir.clone(),
                    _lock: lock,
                };
                (plain, base_dir, kept_dir)
            }
        };
        let store = Self {
            disks_dir: kept_dir.join("disks"),
            layers_dir: kept_dir.join("layers"),
            boxes_dir: base_dir.join("boxes"),
            keeps_state: setup.state_dir.is_some(),
            isolation,
            _state_lock: state_lock,
        };
        for dir in [&store.disks_dir, &store.layers_dir, &store.boxes_dir] {
            fs::create_dir_all(dir)?;
        }
        Ok(store)
    }

    pub(super) fn plain_reason(&self) -> Option<&str> {
        match &self.isolation {
            Isolation::Namespaces(_) => None,
            Isolation::Plain { reason, .. } => Some(reason),
        }
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
        max_bytes: Option<u64>,
    ) -> io::Result<(OwnedFd, bool)> {
        let disk_dir = self.disks_dir.join(box_id);
        let is_new = !disk_dir.join("upper").exists();
        if is_new {
            fs::create_dir_all(&disk_dir)?;
            if self.is_in_memory() {
                let size = max_bytes
                    .map(|bytes| format!(",size={bytes}"))
                    .unwrap_or_default();
                let options = format!("mode=0711{size}");
                mount_at("disk", &disk_dir, "tmpfs", MsFlags::empty(), &options)?;
            }
            fs::create_dir(disk_dir.join("work"))?;
            fs::create_dir(disk_dir.join("upper"))?;
        }
        fs::create_dir_all(self.boxes_dir.join(box_id))?;
        Ok((File::open(disk_dir.join("upper"))?.into(), is_new))
    }

    pub(super) fn place(&self, box_id: &str) -> Place<'_> {
        Place {
            disk_dir: self.disks_dir.join(box_id),
            box_dir: self.boxes_dir.join(box_id),
            outside_name: network::fresh_outside_name(),
            host: match &self.isolation {
                Isolation::Namespaces(host) => Some(host),
                Isolation::Plain { .. } => None,
            },
        }
    }

    pub(super) fn fork_init(&self, work: impl FnOnce() -> Infallible) -> io::Result<Pid> {
        match &self.isolation {
            Isolation::Namespaces(host) => host.fork_init(work),
            Isolation::Plain { .. } => Ok(system::fork_into(work)?),
        }
    }

    /// Makes an init end with all that it started.
    pub(super) fn end_init(&self, init: Pid) {
        let signal = match self.isolation {
            // The first process of a namespace takes all others with it.
            Isolation::Namespaces(_) => Signal::SIGKILL,
            Isolation::Plain { .. } => Signal::SIGTERM,
        };
        // An error means that it has ended already.
        let _ = kill(init, signal);
    }

    pub(super) fn remove_disk(&self, box_id: &str) -> io::Result<()> {
        let disk_dir = self.disks_dir.join(box_id);
        if self.is_in_memory() {
            // An error means that there is no such disk.
            let _ = umount2(&disk_dir, MntFlags::MNT_DETACH);
        }
        remove_tree(&self.boxes_dir.join(box_id))?;
        remove_tree(&disk_dir)
    }

    /// A layer's directory.
    pub(super) fn open_layer(&self, layer_id: &str, create: bool) -> io::Result<OwnedFd> {
        let dir = self.layers_dir.join(layer_id);
        if create {
            fs::create_dir(&dir)?;
        }
        Ok(File::open(dir)?.into())
    }

    pub(super) fn remove_layer(&self, layer_id: &str) -> io::Result<()> {
        remove_tree(&self.layers_dir.join(layer_id))
    }

    /// Removes what no next start shall find.
    pub(super) fn close(self) {
        if let Isolation::Plain { base_dir, .. } = &self.isolation {
            // Nobody is left to tell; the next start sweeps it.
            let _ = remove_tree(base_dir);
        }
    }

    fn is_in_memory(&self) -> bool {
        !self.keeps_state && matches!(self.isolation, Isolation::Namespaces(_))
    }
}

fn remove_tree(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
