//! The init's side of namespaces: assembles the root of a Devbox and moves into it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{chdir, pivot_root, sethostname};

use super::accounts;
use super::host::{BASE_DIR, Host, during, mount_at};
use crate::guest::protocol::InitConfig;
use crate::guest::spec::User;

/// What a Devbox does not share with its keeper; its processes it has separated already.
const SEPARATED: CloneFlags = CloneFlags::CLONE_NEWNS
    .union(CloneFlags::CLONE_NEWUTS)
    .union(CloneFlags::CLONE_NEWIPC)
    .union(CloneFlags::CLONE_NEWNET);

/// The directory that only lives as long as the init and that disks do not hold.
pub(super) const RUNTIME_DIR: &str = "/run/runloop-simulator";

/// Leaves the keeper's namespaces.
pub(super) fn separate() -> io::Result<()> {
    during(
        "unsharing mounts, names, IPC and network",
        unshare(SEPARATED),
    )
}

/// Assembles a root from the host's, the skeleton and the directory `disk`, and makes
/// it this process's.
pub(super) fn enter(host: &Host, disk: &Path, config: &InitConfig) -> io::Result<()> {
    assemble(host, disk)?;
    let root = &host.mount_point;
    during(
        "entering the root",
        chdir(root).and_then(|()| pivot_root(".", ".")),
    )?;
    // The old root lies over the new one now.
    during("leaving the host", umount2(".", MntFlags::MNT_DETACH))?;
    chdir("/")?;
    during("setting the host name", sethostname(&config.hostname))?;
    name_host(&config.hostname)?;
    add_user(&config.user)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(RUNTIME_DIR)?;
    Ok(())
}

/// Does what a Devbox needs on an empty disk, to see whether the system allows it.
pub(super) fn rehearse(host: &Host) -> io::Result<()> {
    let disk = Path::new(BASE_DIR).join("rehearsal");
    for dir in ["upper", "work"] {
        fs::create_dir_all(disk.join(dir))?;
    }
    separate()?;
    assemble(host, &disk)
}

fn assemble(host: &Host, disk: &Path) -> io::Result<()> {
    let root = &host.mount_point;
    let layers = format!(
        "lowerdir={}:/,upperdir={},workdir={},redirect_dir=off,metacopy=off,index=off",
        host.skeleton.display(),
        disk.join("upper").display(),
        disk.join("work").display(),
    );
    mount_at("devbox", root, "overlay", MsFlags::empty(), &layers)?;
    let inert = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let memory = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount_at("proc", &root.join("proc"), "proc", inert, "")?;
    mount_at(
        "sysfs",
        &root.join("sys"),
        "sysfs",
        inert | MsFlags::MS_RDONLY,
        "",
    )?;
    let pts = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount_at(
        "devpts",
        &root.join("dev/pts"),
        "devpts",
        pts,
        "newinstance,ptmxmode=0666,mode=0620",
    )?;
    mount_at("shm", &root.join("dev/shm"), "tmpfs", memory, "mode=1777")?;
    mount_at("run", &root.join("run"), "tmpfs", memory, "mode=0755")?;
    for (copy, target) in &host.mounts {
        let place = root.join(target.strip_prefix("/").unwrap_or(target));
        // A Devbox may have removed the directory on its own disk.
        let _ = mount_at(&copy.to_string_lossy(), &place, "", MsFlags::MS_BIND, "");
    }
    for switches in ["proc/sys", "proc/sysrq-trigger"] {
        keep_from_writing(&root.join(switches))?;
    }
    Ok(())
}

/// The kernel's switches are the host's. Not every kernel has all of them.
fn keep_from_writing(path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let read_only = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount_at(&path.to_string_lossy(), path, "", MsFlags::MS_BIND, "")?;
    mount_at("", path, "", read_only, "")
}

/// Writes the name down where programs look for it, once a disk and name.
fn name_host(hostname: &str) -> io::Result<()> {
    let content = format!("{hostname}\n");
    if fs::read_to_string("/etc/hostname").is_ok_and(|known| known == content) {
        return Ok(());
    }
    fs::write("/etc/hostname", content)?;
    let local = "127.0.0.1 localhost";
    let hosts = format!("{local} {hostname}\n::1 localhost ip6-localhost ip6-loopback\n");
    fs::write("/etc/hosts", hosts)
}

/// Makes the user known and its home, which lies on the disk from then on.
fn add_user(user: &User) -> io::Result<()> {
    let root = Path::new("/");
    if user.uid != 0 {
        during("adding the user", accounts::add_account(root, root, user))?;
    }
    let home = Path::new(&user.home);
    if !home.is_dir() {
        during("making the home directory", fs::create_dir_all(home))?;
        fs::set_permissions(home, Permissions::from_mode(0o755))?;
        chown(home, Some(user.uid), Some(user.uid))?;
    }
    Ok(())
}
