//! An interactive shell on a pseudo-terminal.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use nix::sys::signal::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use super::devbox::Guest;
use super::error::GuestError;
use super::protocol::{Answer, InitRequest};
use super::running::Running;

/// Bytes that one read takes at most.
const READ_BYTES: usize = 16 * 1024;

/// A terminal with a shell on it. Clones are handles to the same one; when the last is
/// gone the terminal hangs up.
#[derive(Debug, Clone)]
pub struct Pty {
    shared: Arc<PtyShared>,
}

struct PtyShared {
    running: Arc<Running>,
    exec: u64,
    master: AsyncFd<OwnedFd>,
    exit_code: watch::Receiver<Option<i32>>,
}

impl std::fmt::Debug for PtyShared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PtyShared")
            .field("exec", &self.exec)
            .finish_non_exhaustive()
    }
}

/// A signal that a terminal's user may send, by its name: `"SIGINT".parse()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtySignal(Signal);

impl FromStr for PtySignal {
    type Err = UnknownSignal;

    fn from_str(name: &str) -> Result<Self, UnknownSignal> {
        name.parse().map(Self).map_err(|_errno| UnknownSignal)
    }
}

/// No signal of this system has that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no signal has this name")]
pub struct UnknownSignal;

impl Guest {
    /// Starts an interactive, non-login shell on a new terminal, with TERM=xterm-256color.
    ///
    /// # Errors
    ///
    /// [`GuestError::NotRunning`]; [`GuestError::System`] when no terminal could be made.
    pub async fn pty(&self, columns: u16, rows: u16) -> Result<Pty, GuestError> {
        let failed = |error| GuestError::system("making a terminal", error);
        let running = self.running()?;
        let mut spawn = self.shell_request(&running, vec!["-i".into()]);
        spawn
            .environment
            .entry("TERM".into())
            .or_insert_with(|| "xterm-256color".into());
        let exec = spawn.exec;
        let (exited, exit_code) = watch::channel(None);
        running.on_exit(exec, move |code| _ = exited.send(Some(code)));
        let request = InitRequest::SpawnOnTerminal {
            spawn,
            columns,
            rows,
        };
        let opened = running
            .call_for_descriptor("making a terminal", request)
            .await;
        let master = opened.inspect_err(|_| running.forget_exit(exec))?;
        let master = watch(master).map_err(failed)?;
        Ok(Pty {
            shared: Arc::new(PtyShared {
                running,
                exec,
                master,
                exit_code,
            }),
        })
    }
}

impl Pty {
    /// The next bytes that the terminal shows; `None` once the shell and everything else
    /// has let go of it. One reader at a time.
    ///
    /// # Errors
    ///
    /// When the system fails.
    pub async fn read(&self) -> io::Result<Option<Bytes>> {
        let mut buffer = vec![0; READ_BYTES];
        let read = |master: &OwnedFd| Ok(nix::unistd::read(master.as_fd(), &mut buffer)?);
        match self.shared.master.async_io(Interest::READABLE, read).await {
            Ok(count) if count > 0 => {
                buffer.truncate(count);
                Ok(Some(buffer.into()))
            }
            // A terminal that nobody holds open any more answers EIO.
            Ok(_) => Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Types `bytes`, waiting for the terminal to take them.
    ///
    /// # Errors
    ///
    /// When nobody holds the terminal open any more.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let write = |master: &OwnedFd| Ok(nix::unistd::write(master.as_fd(), rest)?);
            let count = self
                .shared
                .master
                .async_io(Interest::WRITABLE, write)
                .await?;
            rest = rest.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Sets the size in characters; programs on the terminal are told.
    ///
    /// # Errors
    ///
    /// [`GuestError::NotRunning`] after the shell's end.
    pub async fn resize(&self, columns: u16, rows: u16) -> Result<(), GuestError> {
        let request = InitRequest::Resize {
            exec: self.shared.exec,
            columns,
            rows,
        };
        self.shared
            .running
            .call("resizing a terminal", request, Vec::new())
            .await?;
        Ok(())
    }

    /// Signals the process group that is in the terminal's foreground. Whether there was
    /// one.
    ///
    /// # Errors
    ///
    /// [`GuestError::System`] when the system refuses.
    pub async fn signal(&self, signal: PtySignal) -> Result<bool, GuestError> {
        let exec = self.shared.exec;
        let request = InitRequest::SignalForeground {
            exec,
            signal: signal.0 as i32,
        };
        match self
            .shared
            .running
            .call("signalling", request, Vec::new())
            .await
        {
            Ok((Answer::Signalled { delivered }, _)) => Ok(delivered),
            Ok(_) | Err(GuestError::NotRunning) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the shell has ended; its exit code or 128 + signal.
    pub fn exit_code(&self) -> Option<i32> {
        *self.shared.exit_code.borrow()
    }

    /// Waits for the shell's end; its exit code or 128 + signal.
    pub async fn exited(&self) -> i32 {
        let mut exit_code = self.shared.exit_code.clone();
        let code = exit_code
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|code| *code);
        code.unwrap_or(super::process::KILLED)
    }
}

#[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor")]
fn watch(master: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor for as long as it lives, and
    // the `AsyncFd` owns it.
    let watched = unsafe { AsyncFd::register(master) };
    Ok(watched?)
}

impl Drop for PtyShared {
    fn drop(&mut self) {
        // The init holds the terminal as well, to size it; it lets go on hearing this.
        let request = InitRequest::HangUp { exec: self.exec };
        self.running.post(request);
    }
}
