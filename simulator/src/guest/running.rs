//! The time from a boot or resume of a Devbox to its next suspend: one init.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nix::unistd::{Uid, fchown};
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

use super::channel::Channel;
use super::error::GuestError;
use super::lock;
use super::machine::MachineShared;
use super::process::{KILLED, Process, Stdin, Target};
use super::protocol::{Answer, InitConfig, InitRequest, KeeperRequest, SpawnRequest};
use super::spec::{BoxSpec, Network};

/// A running init.
pub(super) struct Running {
    channel: Channel,
    next_exec: AtomicU64,
    exits: Arc<Exits>,
    is_over: watch::Receiver<bool>,
    gateway_address: Option<Ipv4Addr>,
    path: String,
}

type ExitListener = Box<dyn FnOnce(i32) + Send>;

/// Who waits for the end of which execution.
#[derive(Default)]
struct Exits {
    listeners: Mutex<HashMap<u64, ExitListener>>,
}

impl Exits {
    fn tell(&self, exec: u64, code: i32) {
        let listener = lock(&self.listeners).remove(&exec);
        if let Some(listener) = listener {
            listener(code);
        }
    }

    /// The init is gone, and every process with it.
    fn tell_all_killed(&self) {
        let listeners = std::mem::take(&mut *lock(&self.listeners));
        for listener in listeners.into_values() {
            listener(KILLED);
        }
    }
}

impl Running {
    /// Starts the init of a Devbox whose disk is there, and waits until it is ready.
    pub(super) async fn start(
        machine: &MachineShared,
        spec: &BoxSpec,
        network: Network,
    ) -> Result<Self, GuestError> {
        let failed = |error| GuestError::system("making a socket", error);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let exits = Arc::<Exits>::default();
        let told = Arc::clone(&exits);
        let (ready, is_ready) = oneshot::channel();
        let (over, is_over) = watch::channel(false);
        let mut ready = Some(ready);
        let channel = Channel::open(ours, move |event| match event {
            Some(Answer::Exited { exec, code }) => told.tell(exec, code),
            Some(event) => drop(ready.take().map(|ready| ready.send(event))),
            None => {
                ready.take();
                told.tell_all_killed();
                over.send_replace(true);
            }
        })
        .map_err(failed)?;
        let init = InitConfig {
            hostname: spec.hostname.clone(),
            network,
            user: spec.user.clone(),
            tools: spec.image.tools.clone(),
            shell_program: spec.image.shell.program().into(),
        };
        let request = KeeperRequest::Start {
            box_id: spec.id.clone(),
            init,
        };
        machine
            .call("starting", request, vec![theirs.into()])
            .await?;
        match is_ready.await {
            Ok(Answer::Ready {
                gateway_address,
                path,
            }) => {
                let next_exec = AtomicU64::new(1);
                Ok(Self {
                    channel,
                    next_exec,
                    exits,
                    is_over,
                    gateway_address,
                    path,
                })
            }
            Ok(Answer::Failed { errno: 0, message }) => Err(GuestError::system(
                "starting",
                std::io::Error::other(message),
            )),
            Ok(Answer::Failed { errno, message }) => {
                let source = std::io::Error::from_raw_os_error(errno);
                Err(GuestError::system(format!("starting {message}"), source))
            }
            Ok(_) | Err(_) => Err(GuestError::NotRunning),
        }
    }

    /// Waits until the init is gone and everything it said was heard.
    pub(super) async fn ended(&self) {
        // An error means that nothing is heard any more.
        let _ = self.is_over.clone().wait_for(|is_over| *is_over).await;
    }

    /// Whether the init is gone, by a request or otherwise.
    pub(super) fn is_over(&self) -> bool {
        *self.is_over.borrow()
    }

    pub(super) fn gateway_address(&self) -> Option<Ipv4Addr> {
        self.gateway_address
    }

    /// The value of PATH.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) async fn call(
        &self,
        what: &str,
        request: InitRequest,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(Answer, Vec<OwnedFd>), GuestError> {
        self.channel.call(what, request, descriptors).await
    }

    /// As [`Self::call`] for a request that is answered by one descriptor.
    pub(super) async fn call_for_descriptor(
        &self,
        what: &str,
        request: InitRequest,
    ) -> Result<OwnedFd, GuestError> {
        let (_, descriptors) = self.call(what, request, Vec::new()).await?;
        descriptors.into_iter().next().ok_or(GuestError::NotRunning)
    }

    pub(super) fn post(&self, request: InitRequest) {
        self.channel.post(request);
    }

    pub(super) fn next_exec(&self) -> u64 {
        self.next_exec.fetch_add(1, Ordering::Relaxed)
    }

    /// Calls `listener` with the exit code of `exec`, which must not have been started yet.
    pub(super) fn on_exit(&self, exec: u64, listener: impl FnOnce(i32) + Send + 'static) {
        lock(&self.exits.listeners).insert(exec, Box::new(listener));
    }

    pub(super) fn forget_exit(&self, exec: u64) {
        lock(&self.exits.listeners).remove(&exec);
    }

    /// Starts a program whose outputs `process` follows.
    pub(super) async fn start_process(
        self: &Arc<Self>,
        mut request: SpawnRequest,
        stdin: Stdin,
        process: &Process,
    ) -> Result<(), GuestError> {
        let failed = |error| GuestError::system("making a pipe", error);
        let exec = request.exec;
        let mut descriptors = Vec::new();
        if stdin == Stdin::Pipe {
            let (reader, writer) = std::io::pipe().map_err(failed)?;
            process.keep_stdin(writer.into()).map_err(failed)?;
            request.null_stdin = false;
            descriptors.push(reader.into());
        }
        let (stdout, stdout_writer) = receiving_pipe().map_err(failed)?;
        let (stderr, stderr_writer) = receiving_pipe().map_err(failed)?;
        descriptors.extend([stdout_writer, stderr_writer]);
        for descriptor in &descriptors {
            // Lets the command open `/dev/stderr` and its like. Refused where this process
            // is not root: then the pipes are the command's user's anyway.
            let owner = Some(Uid::from_raw(request.user.uid));
            let _ = fchown(descriptor, owner, None);
        }
        let exiting = process.clone();
        self.on_exit(exec, move |code| exiting.mark_exited(code));
        let target = Target {
            running: Arc::downgrade(self),
            exec,
        };
        process.aim(Some(target));
        let request = InitRequest::Spawn(request);
        if let Err(error) = self.call("starting a command", request, descriptors).await {
            self.forget_exit(exec);
            return Err(error);
        }
        tokio::spawn(process.clone().follow(stdout, stderr));
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The channel goes with this value, and then nobody hears of the ends.
        self.exits.tell_all_killed();
    }
}

/// A pipe that this process reads.
pub(super) fn receiving_pipe() -> std::io::Result<(pipe::Receiver, OwnedFd)> {
    let (reader, writer) = std::io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer.into()))
}
