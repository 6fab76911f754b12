//! The keeper's side of namespaces: a private mount namespace with a file system in
//! memory, in which disks lie, and what every Devbox sees of the host.
//!
//! All of it belongs to the keeper's mount namespace alone, so the kernel removes it with
//! the last process of the keeper, whatever ends that.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::devbox_root;
use super::system;
use super::{accounts, mountinfo};
use crate::guest::protocol::Setup;
use crate::guest::spec::User;

/// Where the keeper's own file system lies in its mount namespace. It hides the host's
/// directory of this name from the keeper and from nobody else.
pub(super) const BASE_DIR: &str = "/tmp";

/// Directories that a Devbox has of its own: nothing of the host's shows in them.
const OWN_DIRS: [(&str, u32); 9] = [
    ("tmp", 0o1777),
    ("var/tmp", 0o1777),
    ("home", 0o755),
    ("root", 0o700),
    ("run", 0o755),
    ("dev", 0o755),
    ("dev/pts", 0o755),
    ("dev/shm", 0o1777),
    ("proc", 0o555),
];

const DEVICES: [(&str, u64, u64); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

const DEVICE_LINKS: [(&str, &str); 5] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

const SUCCESS: &str = "ok";

/// What Devboxes share of the host.
pub(super) struct Host {
    /// Lies over the host's root and under every disk.
    pub(super) skeleton: PathBuf,
    /// Where an init assembles its root.
    pub(super) mount_point: PathBuf,
    /// Read-only copies of the host's other mounts, and where they belong.
    pub(super) mounts: Vec<(PathBuf, PathBuf)>,
    pid_namespace: File,
}

impl Host {
    /// Tries everything that a Devbox needs in a process of its own, then prepares it
    /// here. An error says what is not allowed, and nothing has changed then.
    pub(super) fn prepare(setup: &Setup) -> Result<Self, String> {
        rehearse(setup)?;
        Self::enter(setup).map_err(|error| error.to_string())
    }

    fn enter(setup: &Setup) -> io::Result<Self> {
        let pid_namespace = File::open("/proc/self/ns/pid")?;
        during("unsharing the mounts", unshare(CloneFlags::CLONE_NEWNS))?;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount_at("", Path::new("/"), "", private, "")?;
        // Opened before the file system in memory may hide them.
        let state = setup.state_dir.as_deref().map(File::open).transpose()?;
        let others = mountinfo::storage_mounts(setup.state_dir.as_deref())?;
        let base = Path::new(BASE_DIR);
        mount_at(
            "runloop-simulator",
            base,
            "tmpfs",
            MsFlags::empty(),
            "mode=0711",
        )?;
        let host = Self {
            skeleton: base.join("skeleton"),
            mount_point: base.join("root"),
            mounts: copy_mounts(&base.join("host"), others),
            pid_namespace,
        };
        fs::create_dir(&host.mount_point)?;
        fs::create_dir(base.join("boxes"))?;
        let kept = base.join("kept");
        fs::create_dir(&kept)?;
        if let Some(state) = state {
            let source = format!("/proc/self/fd/{}", state.as_raw_fd());
            mount_at(&source, &kept, "", MsFlags::MS_BIND, "")?;
        }
        during("filling the skeleton", host.fill_skeleton(setup))?;
        Ok(host)
    }

    /// Forks a process that is the first of a new process namespace.
    pub(super) fn fork_init(
        &self,
        work: impl FnOnce() -> std::convert::Infallible,
    ) -> io::Result<Pid> {
        during("unsharing the processes", unshare(CloneFlags::CLONE_NEWPID))?;
        let child = system::fork_into(work);
        // The namespace is that of one child only.
        setns(&self.pid_namespace, CloneFlags::CLONE_NEWPID)?;
        Ok(child?)
    }

    fn fill_skeleton(&self, setup: &Setup) -> io::Result<()> {
        DirBuilder::new().mode(0o755).create(&self.skeleton)?;
        for (dir, mode) in OWN_DIRS {
            let place = mirror_parents(&self.skeleton, Path::new(dir))?;
            fs::create_dir(&place)?;
            fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
            hide_below(&place)?;
        }
        if let Some(state_dir) = &setup.state_dir {
            let place = mirror_parents(&self.skeleton, state_dir)?;
            fs::create_dir_all(&place)?;
            hide_below(&place)?;
        }
        let dev = self.skeleton.join("dev");
        for (name, major, minor) in DEVICES {
            let path = dev.join(name);
            mknod(&path, SFlag::S_IFCHR, Mode::empty(), makedev(major, minor))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
        }
        for (name, target) in DEVICE_LINKS {
            symlink(target, dev.join(name))?;
        }
        let etc = mirror_parents(&self.skeleton, Path::new("etc/hosts"))?;
        fs::write(
            etc,
            "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
        )?;
        // There is no name server to be reached: the answer shall not take a time-out.
        fs::write(self.skeleton.join("etc/resolv.conf"), "")?;
        accounts::add_account(Path::new("/"), &self.skeleton, &User::default())
    }
}

/// Runs the whole preparation and assembles one root, in processes that then end.
fn rehearse(setup: &Setup) -> Result<(), String> {
    let (mut reader, mut writer) = io::pipe().map_err(|error| error.to_string())?;
    let work = || {
        let outcome = Host::enter(setup).and_then(|host| {
            let inner = host.fork_init(|| finish(&mut writer, devbox_root::rehearse(&host)))?;
            Ok(waitpid(inner, None)?)
        });
        match outcome {
            // The inner process has reported.
            Ok(_) => system::exit(0),
            Err(error) => finish(&mut writer, Err(error)),
        }
    };
    let child = system::fork_into(work).map_err(|error| error.to_string())?;
    drop(writer);
    let mut report = String::new();
    let read = reader.read_to_string(&mut report);
    // Fails only when there is nothing to wait for.
    let _ = waitpid(child, None);
    match (read, report.as_str()) {
        (Ok(_), SUCCESS) => Ok(()),
        (Ok(_), "") => Err("the rehearsal ended without a report".to_owned()),
        (Ok(_), reason) => Err(reason.to_owned()),
        (Err(error), _) => Err(error.to_string()),
    }
}

/// Ends a process of the rehearsal with a report of how it went.
fn finish(report: &mut io::PipeWriter, outcome: io::Result<()>) -> ! {
    let text = outcome.map_or_else(|error| error.to_string(), |()| SUCCESS.to_owned());
    // Without a reader there is nobody to tell.
    let _ = report.write_all(text.as_bytes());
    system::exit(0)
}

/// Binds each of the host's mounts, read-only, below `dir`. One that cannot be is left
/// out: a Devbox then sees the empty directory under it.
fn copy_mounts(dir: &Path, others: Vec<(File, PathBuf)>) -> Vec<(PathBuf, PathBuf)> {
    let mut copies = Vec::new();
    for (number, (source, target)) in others.into_iter().enumerate() {
        let copy = dir.join(number.to_string());
        let source = format!("/proc/self/fd/{}", source.as_fd().as_raw_fd());
        let read_only = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        let bound = fs::create_dir_all(&copy)
            .and_then(|()| mount_at(&source, &copy, "", MsFlags::MS_BIND, ""))
            .and_then(|()| mount_at("", &copy, "", read_only, ""));
        if bound.is_ok() {
            copies.push((copy, target));
        }
    }
    copies
}

/// Makes the directories above `path` in `root` as the host has them: of a directory that
/// several layers have, the uppermost decides owner and mode. The place of `path` itself.
fn mirror_parents(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    let mut place = root.to_owned();
    let mut original = PathBuf::from("/");
    for part in relative.parent().into_iter().flatten() {
        place.push(part);
        original.push(part);
        if place.is_dir() {
            continue;
        }
        fs::create_dir(&place)?;
        if let Ok(metadata) = original.metadata() {
            chown(&place, Some(metadata.uid()), Some(metadata.gid()))?;
            fs::set_permissions(&place, fs::Permissions::from_mode(metadata.mode() & 0o7777))?;
        }
    }
    Ok(root.join(relative))
}

/// Makes overlayfs show nothing of the layers below in this directory.
fn hide_below(dir: &Path) -> io::Result<()> {
    during(
        "marking a directory opaque",
        xattr::set(dir, "trusted.overlay.opaque", b"y"),
    )
}

/// `mount` whose error says what was mounted.
pub(super) fn mount_at(
    source: &str,
    target: &Path,
    kind: &str,
    flags: MsFlags,
    options: &str,
) -> io::Result<()> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (source, kind, options) = (some(source), some(kind), some(options));
    let mounted = mount(
        source.as_deref(),
        target,
        kind.as_deref(),
        flags,
        options.as_deref(),
    );
    let what = kind.as_deref().unwrap_or("a directory");
    during(&format!("mounting {what} on {}", target.display()), mounted)
}

/// An error with what was being done.
pub(super) fn during<T, E: Into<io::Error>>(what: &str, result: Result<T, E>) -> io::Result<T> {
    result.map_err(|error| {
        let error = error.into();
        io::Error::new(error.kind(), format!("{what}: {error}"))
    })
}
