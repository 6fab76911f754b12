//! Without namespaces a keeper that is killed together with the simulator leaves its
//! directory and perhaps processes. The next start finds them: an instance holds a lock
//! on a file in its directory for as long as it lives.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const PREFIX: &str = "runloop-devboxes-";
const LOCK_FILE: &str = "lock";
/// A directory without a lock file is one that is being made, or whose maker died then.
const TIME_TO_LOCK: Duration = Duration::from_secs(60);

/// Sweeps dead instances and makes a directory of our own with its lock.
pub(super) fn make_base_dir(temporary_dir: &Path) -> io::Result<(PathBuf, File)> {
    sweep(temporary_dir);
    let base_dir = temporary_dir.join(format!("{PREFIX}{}", uuid::Uuid::new_v4().simple()));
    DirBuilder::new().mode(0o700).create(&base_dir)?;
    let unlocked = base_dir.join("new");
    let lock = File::create_new(&unlocked)?;
    lock.lock()?;
    // Under its name it is locked from the first moment.
    std::fs::rename(unlocked, base_dir.join(LOCK_FILE))?;
    Ok((base_dir, lock))
}

/// Locks a state directory, which only one machine at a time can use.
pub(super) fn lock_state_dir(state_dir: &Path) -> io::Result<File> {
    let lock = File::options()
        .create(true)
        .append(true)
        .open(state_dir.join(LOCK_FILE))?;
    match lock.try_lock() {
        Ok(()) => {
            // What had the lock before is dead.
            end_processes_of(state_dir);
            Ok(lock)
        }
        Err(TryLockError::Error(error)) => Err(error),
        Err(TryLockError::WouldBlock) => Err(io::Error::other(
            "another simulator uses the state directory",
        )),
    }
}

/// Removes what dead instances left. Best effort: what belongs to another user stays.
fn sweep(temporary_dir: &Path) {
    let Ok(entries) = std::fs::read_dir(temporary_dir) else {
        return;
    };
    for entry in entries.flatten() {
        let dir = entry.path();
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
            && is_dead(&dir)
        {
            end_processes_of(&dir);
            let _ = std::fs::remove_dir_all(&dir);
        }
    }
}

fn is_dead(dir: &Path) -> bool {
    match File::open(dir.join(LOCK_FILE)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = dir
                .symlink_metadata()
                .and_then(|metadata| metadata.modified());
            made.is_ok_and(|made| {
                SystemTime::now()
                    .duration_since(made)
                    .is_ok_and(|age| age > TIME_TO_LOCK)
            })
        }
        Err(_) => false,
    }
}

/// Kills processes whose TMPDIR lies in `dir`: every command of the instance had it.
fn end_processes_of(dir: &Path) {
    let mut mark = b"TMPDIR=".to_vec();
    mark.extend_from_slice(dir.as_os_str().as_encoded_bytes());
    mark.push(b'/');
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return;
    };
    for entry in entries.flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|&byte| byte == 0)
            .any(|variable| variable.starts_with(&mark))
        {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
