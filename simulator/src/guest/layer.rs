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
    dir: Arc<OwnedFd>,
    size_bytes: u64,
    deleted: AtomicBool,
}

impl Layer {
    pub(super) async fn capture(
        machine: Arc<MachineShared>,
        disk: Arc<OwnedFd>,
    ) -> Result<Self, GuestError> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let copying = async move {
            let mut layer = Self::attach(machine, id, true).await?;
            layer.size_bytes = copy("copying a disk", disk, Arc::clone(&layer.dir)).await?;
            Ok(Self {
                shared: Arc::new(layer),
            })
        };
        // Not cancelled with its caller: a copy must not go on while its layer is deleted.
        let copied = tokio::spawn(copying).await;
        copied.map_err(|error| GuestError::system("copying a disk", io::Error::from(error)))?
    }

    pub(super) async fn open(machine: Arc<MachineShared>, id: &str) -> Result<Self, GuestError> {
        let mut layer = Self::attach(machine, id.to_owned(), false).await?;
        let measured = size_of(Arc::clone(&layer.dir)).await;
        layer.size_bytes =
            measured.map_err(|error| GuestError::system("measuring a layer", error))?;
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
        let (dir, deleted) = (Arc::new(dir), false.into());
        Ok(LayerShared {
            machine,
            id: layer_id,
            dir,
            size_bytes: 0,
            deleted,
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

    pub(super) async fn restore_to(&self, disk: Arc<OwnedFd>) -> Result<(), GuestError> {
        copy("copying a layer", Arc::clone(&self.shared.dir), disk)
            .await
            .map(drop)
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
pub(super) async fn size_of(dir: Arc<OwnedFd>) -> io::Result<u64> {
    spawn_blocking(move || {
        let mut copy = Copy::default();
        copy.measure(&fd_path(&dir))?;
        Ok(copy.bytes)
    })
    .await?
}

/// Copies what is in `from` into the empty directory `to`; the bytes of all contents.
/// The work keeps both open: it names them by their descriptors' numbers.
async fn copy(what: &str, from: Arc<OwnedFd>, to: Arc<OwnedFd>) -> Result<u64, GuestError> {
    let work = move || copy_tree(&fd_path(&from), &fd_path(&to));
    let result = spawn_blocking(work)
        .await
        .map_err(io::Error::from)
        .and_then(|copied| copied);
    result.map_err(|error| GuestError::system(what, error))
}

/// The directory behind a descriptor, as a path that stands whatever is mounted where.
fn fd_path(dir: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/.", dir.as_raw_fd()))
}

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
