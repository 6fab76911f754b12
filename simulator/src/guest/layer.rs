//! Disk snapshots: copies of what a Devbox has written.
//!
//! With namespaces that is the overlay's upper directory, so whiteouts (character
//! devices 0:0) and extended attributes belong to it. The directories lie in the keeper's
//! mount namespace; they are reached through descriptors, as `/proc/self/fd/N`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::stat::{Mode, SFlag, UtimensatFlags, mknod, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::mkfifo;
use tokio::task::spawn_blocking;

use super::error::GuestError;
use super::machine::MachineShared;
use super::protocol::KeeperRequest;

/// The longest name of a disk or a layer.
pub(super) const MAX_ID_BYTES: usize = 64;

/// A copy of a disk. It outlives the Devbox it was taken from. Clones are handles to the
/// same one; when the last is gone it is deleted, unless the machine keeps state.
#[derive(Debug, Clone)]
pub struct Layer {
    shared: Arc<LayerShared>,
}

#[derive(Debug)]
struct LayerShared {
    machine: Arc<MachineShared>,
    id: String,
    dir: OwnedFd,
    size_bytes: u64,
    deleted: AtomicBool,
}

impl Layer {
    pub(super) async fn capture(
        machine: Arc<MachineShared>,
        disk: &OwnedFd,
    ) -> Result<Self, GuestError> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let mut layer = Self::attach(machine, id, true).await?;
        let (from, to) = (fd_path(disk), fd_path(&layer.dir));
        layer.size_bytes = in_background("copying a disk", move || copy_tree(&from, &to)).await?;
        Ok(Self {
            shared: Arc::new(layer),
        })
    }

    pub(super) async fn open(machine: Arc<MachineShared>, id: &str) -> Result<Self, GuestError> {
        let mut layer = Self::attach(machine, id.to_owned(), false).await?;
        layer.size_bytes = size_of(&layer.dir)
            .await
            .map_err(|error| GuestError::system("measuring a layer", error))?;
        Ok(Self {
            shared: Arc::new(layer),
        })
    }

    async fn attach(
        machine: Arc<MachineShared>,
        layer_id: String,
        create: bool,
    ) -> Result<LayerShared, GuestError> {
        let request = KeeperRequest::OpenLayer {
            layer_id: layer_id.clone(),
            create,
        };
        let (_, descriptors) = machine.call("opening a layer", request, Vec::new()).await?;
        let dir = descriptors
            .into_iter()
            .next()
            .ok_or(GuestError::NotRunning)?;
        Ok(LayerShared {
            machine,
            id: layer_id,
            dir,
            size_bytes: 0,
            deleted: false.into(),
        })
    }

    /// Names it for [`super::Machine::open_layer`].
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// Bytes of the content of its files.
    pub fn size_bytes(&self) -> u64 {
        self.shared.size_bytes
    }

    /// Deletes it now. Devboxes that were booted from it are not touched.
    ///
    /// # Errors
    ///
    /// [`GuestError::System`] when the system refuses.
    pub async fn delete(&self) -> Result<(), GuestError> {
        if self.shared.deleted.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let request = KeeperRequest::RemoveLayer {
            layer_id: self.shared.id.clone(),
        };
        self.shared
            .machine
            .call("deleting a layer", request, Vec::new())
            .await?;
        Ok(())
    }

    pub(super) async fn restore_to(&self, disk: &OwnedFd) -> Result<(), GuestError> {
        let (from, to) = (fd_path(&self.shared.dir), fd_path(disk));
        in_background("copying a layer", move || copy_tree(&from, &to)).await?;
        Ok(())
    }
}

impl Drop for LayerShared {
    fn drop(&mut self) {
        if !self.machine.keeps_state && !self.deleted.load(Ordering::Relaxed) {
            self.machine.post(KeeperRequest::RemoveLayer {
                layer_id: self.id.clone(),
            });
        }
    }
}

/// Bytes of the content of the files under `dir`; a file with several names counts once.
pub(super) async fn size_of(dir: &OwnedFd) -> io::Result<u64> {
    let root = fd_path(dir);
    spawn_blocking(move || {
        let mut copy = Copy::default();
        copy.measure(&root)?;
        Ok(copy.bytes)
    })
    .await?
}

/// The directory behind a descriptor, as a path that stands whatever is mounted where.
fn fd_path(dir: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/.", dir.as_raw_fd()))
}

async fn in_background<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, GuestError> {
    let result = spawn_blocking(work)
        .await
        .map_err(io::Error::from)
        .and_then(|result| result);
    result.map_err(|error| GuestError::system(what, error))
}

/// Copies what is in `from` into the directory `to`; the bytes of all contents.
fn copy_tree(from: &Path, to: &Path) -> io::Result<u64> {
    let mut copy = Copy::default();
    copy.directory(from, to)?;
    Ok(copy.bytes)
}

#[derive(Default)]
struct Copy {
    bytes: u64,
    /// Where each file that has several names was copied first.
    links: HashMap<(u64, u64), PathBuf>,
}

impl Copy {
    /// Copies the entries, then the directory's own attributes: its times would change
    /// with each entry, and it may not be writable.
    fn directory(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        for name in names(from)? {
            match self.entry(&from.join(&name), &to.join(&name)) {
                // The Devbox runs on: what it has removed meanwhile is not part of the copy.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => result?,
            }
        }
        copy_attributes(from, to)
    }

    fn entry(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let metadata = from.symlink_metadata()?;
        let kind = metadata.file_type();
        if !kind.is_dir() && metadata.nlink() > 1 {
            let key = (metadata.dev(), metadata.ino());
            if let Some(first) = self.links.get(&key) {
                return std::fs::hard_link(first, to);
            }
            self.links.insert(key, to.to_owned());
        }
        if kind.is_dir() {
            std::fs::create_dir(to)?;
            return self.directory(from, to);
        } else if kind.is_file() {
            self.bytes += std::fs::copy(from, to)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(from.read_link()?, to)?;
        } else if kind.is_fifo() {
            mkfifo(to, Mode::S_IRUSR)?;
        } else if kind.is_char_device() {
            mknod(to, SFlag::S_IFCHR, Mode::empty(), metadata.rdev())?;
        } else {
            // A socket means nothing without the process that listens on it.
            return Ok(());
        }
        copy_attributes(from, to)
    }

    fn measure(&mut self, dir: &Path) -> io::Result<()> {
        for name in names(dir)? {
            let path = dir.join(name);
            let Ok(metadata) = path.symlink_metadata() else {
                continue;
            };
            if metadata.is_dir() {
                self.measure(&path)?;
            } else if metadata.is_file() {
                let key = (metadata.dev(), metadata.ino());
                if metadata.nlink() == 1 || self.links.insert(key, path).is_none() {
                    self.bytes += metadata.len();
                }
            }
        }
        Ok(())
    }
}

/// Names first, so that no directory is read while its copy's paths are walked.
fn names(dir: &Path) -> io::Result<Vec<OsString>> {
    std::fs::read_dir(dir)?
        .map(|entry| Ok(entry?.file_name()))
        .collect()
}

fn copy_attributes(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = from.symlink_metadata()?;
    let owned = to.symlink_metadata()?;
    if (owned.uid(), owned.gid()) != (metadata.uid(), metadata.gid()) {
        std::os::unix::fs::lchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    if !metadata.file_type().is_symlink() {
        std::fs::set_permissions(
            to,
            std::fs::Permissions::from_mode(metadata.mode() & 0o7777),
        )?;
    }
    for name in xattr::list(from)? {
        if let Some(value) = xattr::get(from, &name)? {
            xattr::set(to, &name, &value)?;
        }
    }
    let accessed = TimeSpec::new(metadata.atime(), metadata.atime_nsec());
    let modified = TimeSpec::new(metadata.mtime(), metadata.mtime_nsec());
    let flags = UtimensatFlags::NoFollowSymlink;
    utimensat(nix::fcntl::AT_FDCWD, to, &accessed, &modified, flags)?;
    Ok(())
}
