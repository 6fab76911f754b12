//! Opens files for the simulator with the rights of the Devbox's user, so that links and
//! permissions are as they are for a command.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, mkfifo, setfsgid, setfsuid};

use crate::guest::spec::User;

/// Opens a regular file for reading, or empties or makes one for writing. Never waits
/// for the other end of a pipe.
pub(super) fn open_file(path: &str, user: Option<&User>, write: bool) -> io::Result<OwnedFd> {
    let mut options = File::options();
    options
        .mode(0o644)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    if write {
        // Emptied below: only once it is known to be a regular file.
        options.write(true).create(true).truncate(false);
    } else {
        options.read(true);
    }
    let file = as_user(user, || options.open(path))?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(Errno::EISDIR.into());
    }
    if !metadata.is_file() {
        return Err(Errno::ENXIO.into());
    }
    if write {
        file.set_len(0)?;
    }
    Ok(file.into())
}

/// Makes a named pipe that only `user` can open; a reading and a writing end.
pub(super) fn make_fifo(path: &str, user: Option<&User>) -> io::Result<[OwnedFd; 2]> {
    as_user(user, || {
        mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let open =
            |options: &mut std::fs::OpenOptions| options.custom_flags(libc::O_NONBLOCK).open(path);
        let reader = open(File::options().read(true))?;
        let writer = open(File::options().write(true))?;
        Ok([reader.into(), writer.into()])
    })
}

/// Does `work` with the file permissions of `user`: while the file system's user is not
/// root, the system withholds root's power over files from this process.
fn as_user<T>(user: Option<&User>, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some(user) = user else { return work() };
    let own_group = setfsgid(Gid::from_raw(user.uid));
    let own_user = setfsuid(Uid::from_raw(user.uid));
    let result = work();
    setfsuid(own_user);
    setfsgid(own_group);
    // The system forgets it with every change of user. It is known to be allowed.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    result
}
