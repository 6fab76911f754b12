//! One command: its outputs, its input, its end.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, Weak};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::error::GuestError;
use super::lock;
use super::protocol::{Answer, InitRequest};
use super::running::Running;
use super::spool::Spool;

/// The exit code of what SIGKILL ended.
pub(super) const KILLED: i32 = 128 + libc::SIGKILL;

/// A command to run in a fresh shell.
#[derive(Debug, Clone, Default)]
pub struct Spawn {
    /// What the shell is given after `-c`. From 131,072 bytes on the system refuses it:
    /// the command then ends with 126 and a message on its error output.
    pub script: String,
    /// Where its input comes from.
    pub stdin: Stdin,
    /// Whether the shell reads the profiles of a login. They may set PATH anew.
    pub login: bool,
}

impl Spawn {
    /// A script that reads from `/dev/null`.
    pub fn new(script: impl Into<String>) -> Self {
        Self {
            script: script.into(),
            ..Self::default()
        }
    }
}

/// Where a command's input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdin {
    /// `/dev/null`.
    #[default]
    Null,
    /// [`Process::write_stdin`].
    Pipe,
}

/// How far a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// Waits for its turn in a named shell.
    Queued,
    /// Its shell runs.
    Running,
    /// Its shell has ended with this code (128 + signal where one ended it), but a
    /// process that it left behind still holds an output open.
    Exited(i32),
    /// Its shell has ended with this code and both outputs are closed.
    Finished(i32),
}

/// What a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillScope {
    /// Only the shell that was started; its children live on. Of a named shell it is the
    /// shell itself.
    Leader,
    /// The shell and every process that did not leave its process group.
    Group,
}

/// A command that was started or waits for its turn. Clones are handles to the same one;
/// dropping them does not end it.
#[derive(Debug, Clone)]
pub struct Process {
    pub(super) shared: Arc<ProcessShared>,
}

#[derive(Debug)]
pub(super) struct ProcessShared {
    pub(super) stdout: Spool,
    pub(super) stderr: Spool,
    pub(super) state: watch::Sender<ProcessState>,
    target: Mutex<Option<Target>>,
    stdin: tokio::sync::Mutex<Option<pipe::Sender>>,
}

/// What a signal goes to.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) running: Weak<Running>,
    pub(super) exec: u64,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Target")
            .field("exec", &self.exec)
            .finish_non_exhaustive()
    }
}

impl Process {
    pub(super) fn new(state: ProcessState) -> Self {
        Self {
            shared: Arc::new(ProcessShared {
                stdout: Spool::new(),
                stderr: Spool::new(),
                state: watch::Sender::new(state),
                target: Mutex::new(None),
                stdin: tokio::sync::Mutex::new(None),
            }),
        }
    }

    /// Everything that was written to descriptor 1.
    pub fn stdout(&self) -> &Spool {
        &self.shared.stdout
    }

    /// Everything that was written to descriptor 2.
    pub fn stderr(&self) -> &Spool {
        &self.shared.stderr
    }

    /// How far it is.
    pub fn state(&self) -> ProcessState {
        *self.shared.state.borrow()
    }

    /// Waits until it is no longer queued.
    pub async fn started(&self) {
        self.wait(|state| (state != ProcessState::Queued).then_some(()))
            .await;
    }

    /// Waits for the end of its shell; the exit code, or 128 + signal.
    pub async fn exited(&self) -> i32 {
        self.wait(|state| match state {
            ProcessState::Exited(code) | ProcessState::Finished(code) => Some(code),
            ProcessState::Queued | ProcessState::Running => None,
        })
        .await
    }

    /// Waits for the end of its shell and of both outputs; the exit code, or 128 + signal.
    ///
    /// That a background child which keeps an output open holds the completion back is
    /// inferred for the real service.
    pub async fn finished(&self) -> i32 {
        self.wait(|state| match state {
            ProcessState::Finished(code) => Some(code),
            _ => None,
        })
        .await
    }

    async fn wait<T>(&self, mut accept: impl FnMut(ProcessState) -> Option<T>) -> T {
        let mut states = self.shared.state.subscribe();
        loop {
            let accepted = accept(*states.borrow_and_update());
            match accepted {
                Some(value) => return value,
                // The sender lives in `self`.
                None => drop(states.changed().await),
            }
        }
    }

    /// Sends SIGKILL. Whether there was anything to kill: a command that waits in a queue
    /// ends at once with 137 and never runs, one that has finished is left alone, and so
    /// is one of a named shell whose code is known, because its shell may run the next.
    ///
    /// # Errors
    ///
    /// [`GuestError::System`] when the system refuses.
    pub async fn kill(&self, scope: KillScope) -> Result<bool, GuestError> {
        if self.finish_unstarted(KILLED) {
            return Ok(true);
        }
        self.signal(libc::SIGKILL, scope).await
    }

    /// Sends SIGINT to the process group. Whether there was a process.
    ///
    /// # Errors
    ///
    /// As [`Process::kill`].
    pub async fn interrupt(&self) -> Result<bool, GuestError> {
        self.signal(libc::SIGINT, KillScope::Group).await
    }

    async fn signal(&self, signal: i32, scope: KillScope) -> Result<bool, GuestError> {
        match self.state() {
            ProcessState::Queued | ProcessState::Finished(_) => return Ok(false),
            ProcessState::Running | ProcessState::Exited(_) => {}
        }
        let target = lock(&self.shared.target).clone();
        let Some((running, exec)) =
            target.and_then(|target| Some((target.running.upgrade()?, target.exec)))
        else {
            return Ok(false);
        };
        let request = InitRequest::Signal {
            exec,
            signal,
            group: scope == KillScope::Group,
        };
        match running
            .call("signalling a command", request, Vec::new())
            .await
        {
            Ok((Answer::Signalled { delivered }, _)) => Ok(delivered),
            Ok(_) | Err(GuestError::NotRunning) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes all of `bytes` to its input, waiting for it to read them.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::BrokenPipe`] when it has no [`Stdin::Pipe`], the input was closed,
    /// or nothing reads it any more.
    pub async fn write_stdin(&self, bytes: &[u8]) -> io::Result<()> {
        match self.shared.stdin.lock().await.as_mut() {
            Some(pipe) => pipe.write_all(bytes).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Closes its input: it reads the end of the file. Repeating it does nothing.
    pub async fn close_stdin(&self) {
        self.shared.stdin.lock().await.take();
    }

    pub(super) fn keep_stdin(&self, pipe: OwnedFd) -> io::Result<()> {
        let sender = pipe::Sender::from_owned_fd(pipe)?;
        if let Ok(mut stdin) = self.shared.stdin.try_lock() {
            *stdin = Some(sender);
        }
        Ok(())
    }

    /// Takes a command out of its queue to run it. False where a kill was quicker: then
    /// it has ended and must not run.
    pub(super) fn begin(&self) -> bool {
        self.shared.state.send_if_modified(|state| {
            let is_queued = *state == ProcessState::Queued;
            if is_queued {
                *state = ProcessState::Running;
            }
            is_queued
        })
    }

    /// Sets what signals go to; `None` for nothing.
    pub(super) fn aim(&self, target: Option<Target>) {
        *lock(&self.shared.target) = target;
    }

    /// Marks the end of the shell; outputs may still be open.
    pub(super) fn mark_exited(&self, code: i32) {
        self.shared.state.send_if_modified(|state| {
            let open = matches!(state, ProcessState::Queued | ProcessState::Running);
            if open {
                *state = ProcessState::Exited(code);
            }
            open
        });
    }

    /// Copies both outputs until their ends and then, once the shell has ended too,
    /// marks the command finished.
    pub(super) async fn follow(self, stdout: pipe::Receiver, stderr: pipe::Receiver) {
        tokio::join!(
            self.drain(stdout, &self.shared.stdout),
            self.drain(stderr, &self.shared.stderr)
        );
        let code = self.exited().await;
        self.shared.stdin.lock().await.take();
        self.shared.state.send_replace(ProcessState::Finished(code));
    }

    /// Copies a pipe into a spool until every writer has closed it, and marks when what
    /// was written before the exit is there.
    async fn drain(&self, mut pipe: pipe::Receiver, spool: &Spool) {
        let mut buffer = Vec::with_capacity(READ_BYTES);
        let exited = self.exited();
        tokio::pin!(exited);
        let mut is_running = true;
        loop {
            buffer.clear();
            tokio::select! {
                biased;
                _ = &mut exited, if is_running => {
                    is_running = false;
                    if copy_what_is_there(&pipe, spool).is_err() {
                        break;
                    }
                    spool.settle();
                }
                read = pipe.read_buf(&mut buffer) => match read {
                    Ok(0) | Err(_) => break,
                    Ok(_) => spool.append(&buffer),
                },
            }
        }
        spool.close();
    }

    /// Ends a command that was never started; whether it was still in its queue.
    pub(super) fn finish_unstarted(&self, code: i32) -> bool {
        self.shared.state.send_if_modified(|state| {
            let is_queued = *state == ProcessState::Queued;
            if is_queued {
                self.shared.stdout.close();
                self.shared.stderr.close();
                *state = ProcessState::Finished(code);
            }
            is_queued
        })
    }
}

/// Copies what a pipe holds now. It asks the system and not tokio, which learns only
/// later, on a busy machine much later, that a pipe has filled. A pipe holds no more
/// than [`READ_BYTES`], so a child that goes on writing does not keep this going.
fn copy_what_is_there(pipe: &pipe::Receiver, spool: &Spool) -> io::Result<()> {
    // Shares the pipe's non-blocking mode.
    let mut pipe = File::from(pipe.as_fd().try_clone_to_owned()?);
    let mut buffer = vec![0; READ_BYTES];
    let mut left = READ_BYTES;
    while left > 0 {
        match pipe.read(buffer.get_mut(..left).unwrap_or_default()) {
            Ok(0) => break,
            Ok(count) => {
                spool.append(buffer.get(..count).unwrap_or_default());
                left -= count;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What a pipe holds by default.
const READ_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::running::receiving_pipe;
    use super::*;

    #[tokio::test]
    async fn an_output_is_settled_with_what_was_written_before_the_exit_and_open_for_a_child() {
        let (stdout, writer) = receiving_pipe().unwrap();
        let (stderr, _open) = receiving_pipe().unwrap();
        let process = Process::new(ProcessState::Running);
        let mut writer = File::from(writer);
        // The exit is told before the runtime had a turn to see that the pipes filled.
        writer.write_all(&[b'x'; READ_BYTES]).unwrap();
        process.mark_exited(0);
        assert!(!process.stdout().is_settled());
        let following = tokio::spawn(process.clone().follow(stdout, stderr));
        process.stdout().settled().await;
        assert_eq!(process.stdout().len(), READ_BYTES as u64);
        process.stderr().settled().await;
        assert!(!process.stdout().is_closed());
        writer.write_all(b"child").unwrap();
        process.stdout().grown_past(READ_BYTES as u64).await;
        assert_eq!(process.stdout().len(), READ_BYTES as u64 + 5);
        following.abort();
    }
}
