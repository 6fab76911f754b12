//! Starts programs for a Devbox: nothing of the simulator's reaches them.

use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::unistd::{
    Gid, Pid, Uid, chdir, chown, dup2_stderr, dup2_stdin, dup2_stdout, execve, setgid, setgroups,
    setsid, setuid,
};

use super::system;
use crate::guest::protocol::SpawnRequest;
use crate::guest::spec::User;

/// What a program's first descriptors are.
pub(super) enum Stdio {
    Pipes {
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
        status: Option<OwnedFd>,
    },
    /// The path of a terminal's slave.
    Terminal(String),
}

/// A request in the form that the system takes: made before the fork, so that the child
/// has nothing left to fail at but system calls.
struct Prepared {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    working_dir: CString,
}

/// Starts a program as the leader of a session of its own.
pub(super) fn launch(request: &SpawnRequest, stdio: Stdio, user: Option<&User>) -> io::Result<Pid> {
    let prepared = prepare(request)?;
    let child = || become_program(&prepared, &stdio, user);
    Ok(system::fork_into(child)?)
}

/// Makes a terminal; its master and the path of its slave, which belongs to `user`.
pub(super) fn open_terminal(user: Option<&User>) -> io::Result<(PtyMaster, String)> {
    use nix::fcntl::OFlag;
    let master =
        posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ptsname_r(&master)?;
    if let Some(user) = user {
        chown(
            slave.as_str(),
            Some(Uid::from_raw(user.uid)),
            Some(Gid::from_raw(user.uid)),
        )?;
    }
    Ok((master, slave))
}

fn prepare(request: &SpawnRequest) -> io::Result<Prepared> {
    let word = |text: &str| CString::new(text).map_err(io::Error::from);
    let variables = request.environment.iter();
    Ok(Prepared {
        program: word(&request.program)?,
        arguments: request
            .arguments
            .iter()
            .map(|text| word(text))
            .collect::<Result<_, _>>()?,
        environment: variables
            .map(|(name, value)| word(&format!("{name}={value}")))
            .collect::<Result<_, _>>()?,
        working_dir: word(&request.working_dir)?,
    })
}

/// In the child: gives up everything that is not the program's and becomes it.
fn become_program(prepared: &Prepared, stdio: &Stdio, user: Option<&User>) -> Infallible {
    if let Err(error) = shed(prepared, stdio, user) {
        fail(prepared, error)
    }
    match execve(
        &prepared.program,
        &prepared.arguments,
        &prepared.environment,
    ) {
        Ok(never) => never,
        Err(error) => fail(prepared, error),
    }
}

fn shed(prepared: &Prepared, stdio: &Stdio, user: Option<&User>) -> nix::Result<()> {
    setsid()?;
    connect(stdio)?;
    system::reset_signals();
    system::reset_limits();
    if let Some(user) = user {
        setgroups(&[])?;
        setgid(Gid::from_raw(user.uid))?;
        setuid(Uid::from_raw(user.uid))?;
    }
    if chdir(prepared.working_dir.as_c_str()).is_err() {
        // As a login does when the home directory is gone.
        chdir("/")?;
    }
    Ok(())
}

/// Puts the descriptors in place. What the child holds besides is closed on exec.
fn connect(stdio: &Stdio) -> nix::Result<()> {
    match stdio {
        Stdio::Pipes {
            stdin,
            stdout,
            stderr,
            status,
        } => {
            match stdin {
                Some(stdin) => dup2_stdin(stdin)?,
                None => dup2_stdin(open_null()?)?,
            }
            dup2_stdout(stdout)?;
            dup2_stderr(stderr)?;
            if let Some(status) = status {
                // The lowest free number from 3 on, after all others are closed, is 3.
                let kept = system::adopt(fcntl(status, FcntlArg::F_DUPFD_CLOEXEC(10))?);
                system::close_all_but(kept.as_fd());
                fcntl(&kept, FcntlArg::F_DUPFD(3))?;
            }
        }
        Stdio::Terminal(path) => {
            let slave = File::options()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NOCTTY)
                .open(path)
                .map_err(errno)?;
            system::take_terminal(&slave).map_err(errno)?;
            dup2_stdin(&slave)?;
            dup2_stdout(&slave)?;
            dup2_stderr(&slave)?;
        }
    }
    Ok(())
}

fn open_null() -> nix::Result<File> {
    File::open("/dev/null").map_err(errno)
}

fn errno(error: io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

/// Ends as a shell does that cannot run a program.
fn fail(prepared: &Prepared, error: Errno) -> ! {
    let program = prepared.program.to_string_lossy();
    // Without an error output nobody can be told.
    let _ = writeln!(io::stderr(), "{program}: {}", error.desc());
    system::exit(if error == Errno::ENOENT { 127 } else { 126 })
}
