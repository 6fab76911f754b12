//! Without namespaces a keeper that is killed together with the simulator leaves its
//! directory and perhaps processes. The next start finds them: an instance holds a lock
//! on a file in its directory for as long as it lives.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const PREFIX: &str = "runloop-devboxes-";
const LOCK_FILE: &str = "lock";
/// A directory without a lock file is one that is being made, or whose maker died then.
const TIME_TO_LOCK: Duration = Duration::from_secs(60);
/// What a killed process may need on a busy machine until it is gone.
const TIME_TO_DIE: Duration = Duration::from_secs(10);
const DEATH_POLL: Duration = Duration::from_millis(5);

/// Sweeps dead instances and makes a directory of our own with its lock.
pub(super) fn make_base_dir(temporary_dir: &Path) -> io::Result<(PathBuf, File)> {
    sweep(temporary_dir);
    let base_dir = temporary_dir.join(format!("{PREFIX}{}", uuid::Uuid::new_v4().simple()));
    DirBuilder::new().mode(0o700).create(&base_dir)?;
    let unlocked = base_dir.join("new");
    let lock = File::create_new(&unlocked)?;
    lock.lock()?;
    sign(&lock)?;
    // Under its name it is locked from the first moment.
    fs::rename(unlocked, base_dir.join(LOCK_FILE))?;
    Ok((base_dir, lock))
}

/// Locks a state directory, which only one machine at a time can use.
pub(super) fn lock_state_dir(state_dir: &Path) -> io::Result<File> {
    let lock = File::options()
        .create(true)
        .read(true)
        .append(true)
        .open(state_dir.join(LOCK_FILE))?;
    if !is_free(&lock) {
        let message = "another simulator uses the state directory";
        return Err(io::Error::other(message));
    }
    sign(&lock)?;
    // What had the lock before is dead.
    end_processes_of(state_dir);
    Ok(lock)
}

/// Writes down who holds a lock.
fn sign(mut lock: &File) -> io::Result<()> {
    lock.set_len(0)?;
    write!(lock, "{}", std::process::id())
}

/// Removes what dead instances left. Best effort: what belongs to another user stays.
fn sweep(temporary_dir: &Path) {
    let Ok(entries) = fs::read_dir(temporary_dir) else {
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
            let _ = fs::remove_dir_all(&dir);
        }
    }
}

fn is_dead(dir: &Path) -> bool {
    match File::open(dir.join(LOCK_FILE)) {
        Ok(lock) => is_free(&lock),
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

/// Whether nobody holds the lock, or whoever does is about to let go of it: a process
/// that was killed holds its locks until it gets to die.
fn is_free(lock: &File) -> bool {
    let deadline = Instant::now() + TIME_TO_DIE;
    let mut holder = String::new();
    loop {
        if lock.try_lock().is_ok() {
            return true;
        }
        if holder.is_empty() && (&mut &*lock).read_to_string(&mut holder).is_err() {
            return false;
        }
        if !is_dying(&holder) || Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(DEATH_POLL);
    }
}

/// Whether a process has been killed or is gone. It is not asked whether it is still the
/// process that wrote its number down: one that lives on keeps the lock from being free.
fn is_dying(pid: &str) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return true;
    };
    let bit = 1_u64 << (libc::SIGKILL - 1);
    let pending = |line: &str| {
        let mask = line
            .strip_prefix("SigPnd:")
            .or(line.strip_prefix("ShdPnd:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    };
    let is_killed = status
        .lines()
        .filter_map(pending)
        .any(|mask| mask & bit != 0);
    let is_exiting =
        status.lines().any(|line| line.starts_with("State:\tZ")) || !status.contains("VmSize:");
    is_killed || is_exiting
}

/// Kills processes whose TMPDIR lies in `dir`: every command of the instance had it.
fn end_processes_of(dir: &Path) {
    let mut mark = b"TMPDIR=".to_vec();
    mark.extend_from_slice(dir.as_os_str().as_encoded_bytes());
    mark.push(b'/');
    let deadline = Instant::now() + TIME_TO_DIE;
    // Until none is found: one that is about to fork, or to die, is found again.
    while kill_marked(&mark) && Instant::now() < deadline {
        std::thread::sleep(DEATH_POLL);
    }
}

/// Kills every process that has a variable which begins with `mark`; whether there was one.
fn kill_marked(mark: &[u8]) -> bool {
    let mut found = false;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid else { continue };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let mut variables = environment.split(|&byte| byte == 0);
        if variables.any(|variable| variable.starts_with(mark)) {
            found = true;
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    found
}
