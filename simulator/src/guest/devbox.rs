//! One Devbox: boot, run, suspend, resume, destroy.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::unix::pipe;
use tokio::net::{TcpSocket, TcpStream};

use super::channel::Channel;
use super::error::GuestError;
use super::layer::{self, Layer};
use super::machine::MachineShared;
use super::process::{KILLED, Process, ProcessState, Spawn, Stdin, Target};
use super::protocol::{Answer, InitConfig, InitRequest, KeeperRequest, SpawnRequest};
use super::shell::Shell;
use super::spec::BoxSpec;

/// A process of a Devbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEntry {
    /// Its id, as the Devbox sees it.
    pub pid: i32,
    /// Its parent's id; the init's is 1 with namespaces.
    pub parent: i32,
    /// Whether it has ended and waits for its parent to notice.
    pub is_zombie: bool,
    /// `argv`; empty for a zombie.
    pub arguments: Vec<String>,
}

/// A Devbox. Clones are handles to the same one. When the last is gone the Devbox ends
/// and its disk is deleted, unless the machine keeps state.
#[derive(Debug, Clone)]
pub struct Guest {
    pub(super) shared: Arc<GuestShared>,
}

pub(super) struct GuestShared {
    pub(super) machine: Arc<MachineShared>,
    pub(super) spec: BoxSpec,
    /// The directory that holds everything the Devbox has written; `None` once that is
    /// deleted, because an open directory would keep it in memory.
    disk: Mutex<Option<Arc<OwnedFd>>>,
    running: Mutex<Option<Arc<Running>>>,
    shells: Mutex<HashMap<String, Shell>>,
}

impl std::fmt::Debug for GuestShared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("GuestShared")
            .field("id", &self.spec.id)
            .finish_non_exhaustive()
    }
}

/// The time from a boot or resume to the next suspend: one init.
pub(super) struct Running {
    channel: Channel,
    next_exec: AtomicU64,
    processes: Arc<Mutex<HashMap<u64, ExitListener>>>,
    gateway_address: Option<Ipv4Addr>,
    path: String,
}

pub(super) type ExitListener = Box<dyn FnOnce(i32) + Send>;

impl Guest {
    pub(super) async fn boot(
        machine: Arc<MachineShared>,
        spec: BoxSpec,
        layer: Option<&Layer>,
    ) -> Result<Self, GuestError> {
        check_id(&spec.id)?;
        check_environment(&spec.env)?;
        let request = KeeperRequest::CreateDisk {
            box_id: spec.id.clone(),
            max_bytes: spec.max_disk_bytes,
        };
        let (answer, descriptors) = machine.call("making a disk", request, Vec::new()).await?;
        let disk = descriptors
            .into_iter()
            .next()
            .ok_or(GuestError::NotRunning)?;
        let guest = Self {
            shared: Arc::new(GuestShared {
                machine,
                spec,
                disk: Mutex::new(Some(Arc::new(disk))),
                running: Mutex::new(None),
                shells: Mutex::new(HashMap::new()),
            }),
        };
        let is_new = matches!(answer, Answer::Disk { is_new: true });
        if let Some(layer) = layer
            && is_new
        {
            layer.restore_to(guest.shared.disk()?).await?;
        }
        guest.start_init().await?;
        Ok(guest)
    }

    /// The id it was booted with.
    pub fn id(&self) -> &str {
        &self.shared.spec.id
    }

    /// Runs a script in a fresh, non-interactive, non-login shell that starts in the home
    /// directory.
    ///
    /// # Errors
    ///
    /// [`GuestError::NotRunning`]; [`GuestError::InvalidInput`] for a script with a NUL;
    /// [`GuestError::System`] when no process could be made.
    pub async fn spawn(&self, spawn: Spawn) -> Result<Process, GuestError> {
        if spawn.script.contains('\0') {
            return Err(GuestError::InvalidInput(
                "a script cannot hold a NUL".into(),
            ));
        }
        let running = self.running()?;
        let request = self.shell_request(&running, vec!["-c".into(), spawn.script]);
        let process = Process::new(ProcessState::Running);
        running.start(request, spawn.stdin, &process).await?;
        Ok(process)
    }

    /// The named shell: made on first use, then the same until the next suspend.
    pub fn shell(&self, name: &str) -> Shell {
        let mut shells = self
            .shared
            .shells
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let fresh = || Shell::new(Arc::downgrade(&self.shared));
        shells.entry(name.to_owned()).or_insert_with(fresh).clone()
    }

    /// Connects to `127.0.0.1:port` inside the Devbox.
    ///
    /// # Errors
    ///
    /// [`GuestError::NotRunning`], or [`GuestError::System`] with what the connection
    /// attempt met, such as [`std::io::ErrorKind::ConnectionRefused`].
    pub async fn connect(&self, port: u16) -> Result<TcpStream, GuestError> {
        let failed = |error| GuestError::system("connecting into the Devbox", error);
        let (_, descriptors) = self
            .running()?
            .call("making a socket", InitRequest::Socket, Vec::new())
            .await?;
        let socket = descriptors
            .into_iter()
            .next()
            .ok_or(GuestError::NotRunning)?;
        let socket = TcpSocket::from_std_stream(std::net::TcpStream::from(socket));
        socket
            .connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
            .await
            .map_err(failed)
    }

    /// Where a Devbox with an open network reaches listeners of this host; `None` without
    /// a network of its own (then it is 127.0.0.1) and when it is not running.
    pub fn gateway_address(&self) -> Option<Ipv4Addr> {
        self.running()
            .ok()
            .and_then(|running| running.gateway_address)
    }

    /// Its processes, without the init.
    ///
    /// # Errors
    ///
    /// [`GuestError::NotRunning`].
    pub async fn processes(&self) -> Result<Vec<ProcessEntry>, GuestError> {
        match self
            .running()?
            .call("listing", InitRequest::Processes, Vec::new())
            .await?
            .0
        {
            Answer::Processes(list) => Ok(list
                .into_iter()
                .map(|entry| ProcessEntry {
                    pid: entry.pid,
                    parent: entry.parent,
                    is_zombie: entry.zombie,
                    arguments: entry.arguments,
                })
                .collect()),
            _ => Err(GuestError::NotRunning),
        }
    }

    /// The paths of everything under `/tmp` and the room's own directory in `/run`;
    /// without namespaces under the directory that TMPDIR names.
    ///
    /// # Errors
    ///
    /// [`GuestError::NotRunning`].
    pub async fn temporary_files(&self) -> Result<Vec<String>, GuestError> {
        match self
            .running()?
            .call("listing", InitRequest::TemporaryFiles, Vec::new())
            .await?
            .0
        {
            Answer::Paths(paths) => Ok(paths),
            _ => Err(GuestError::NotRunning),
        }
    }

    /// Ends every process, named shell and terminal; the disk stays. Returns when all
    /// are gone. Suspending a suspended Devbox does nothing.
    ///
    /// # Errors
    ///
    /// [`GuestError::NotRunning`] when the machine has ended.
    pub async fn suspend(&self) -> Result<(), GuestError> {
        self.forget_running();
        let box_id = self.shared.spec.id.clone();
        self.shared
            .machine
            .call("suspending", KeeperRequest::Stop { box_id }, Vec::new())
            .await?;
        Ok(())
    }

    /// Starts a suspended Devbox on its disk. Resuming a running one does nothing.
    ///
    /// # Errors
    ///
    /// As [`super::Machine::boot`].
    pub async fn resume(&self) -> Result<(), GuestError> {
        match self.running() {
            Ok(_) => Ok(()),
            Err(_) => self.start_init().await,
        }
    }

    /// Copies what the Devbox has written, while it runs or is suspended. A file that is
    /// being written is copied as it is at that moment.
    ///
    /// # Errors
    ///
    /// [`GuestError::System`] when the copy fails; nothing is left of it then.
    pub async fn snapshot(&self) -> Result<Layer, GuestError> {
        Layer::capture(Arc::clone(&self.shared.machine), self.shared.disk()?).await
    }

    /// Ends it and deletes its disk, also from a state directory. Returns when both are
    /// done; repeating it does nothing.
    ///
    /// # Errors
    ///
    /// [`GuestError::NotRunning`] when the machine has ended.
    pub async fn destroy(&self) -> Result<(), GuestError> {
        self.forget_running();
        self.shared
            .disk
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let box_id = self.shared.spec.id.clone();
        let request = KeeperRequest::RemoveDisk { box_id };
        self.shared
            .machine
            .call("destroying", request, Vec::new())
            .await?;
        Ok(())
    }

    async fn start_init(&self) -> Result<(), GuestError> {
        let failed = |error| GuestError::system("making a socket", error);
        let spec = &self.shared.spec;
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let processes: Arc<Mutex<HashMap<u64, ExitListener>>> = Arc::default();
        let listeners = Arc::clone(&processes);
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        let mut ready = Some(ready);
        let channel = Channel::open(ours, move |event| match event {
            Some(Answer::Exited { exec, code }) => {
                let mut listeners = listeners.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(listener) = listeners.remove(&exec) {
                    listener(code);
                }
            }
            Some(event) => drop(ready.take().map(|ready| ready.send(event))),
            None => {
                ready.take();
                let mut listeners = listeners.lock().unwrap_or_else(PoisonError::into_inner);
                for (_, listener) in listeners.drain() {
                    listener(KILLED);
                }
            }
        })
        .map_err(failed)?;
        let init = InitConfig {
            hostname: spec.hostname.clone(),
            network: spec.network,
            user: spec.user.clone(),
            tools: spec.image.tools.clone(),
            shell_program: spec.image.shell.program().into(),
        };
        let request = KeeperRequest::Start {
            box_id: spec.id.clone(),
            init,
        };
        self.shared
            .machine
            .call("starting", request, vec![theirs.into()])
            .await?;
        match is_ready.await {
            Ok(Answer::Ready {
                gateway_address,
                path,
            }) => {
                let running = Running {
                    channel,
                    next_exec: AtomicU64::new(1),
                    processes,
                    gateway_address,
                    path,
                };
                *self
                    .shared
                    .running
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(running));
                Ok(())
            }
            Ok(Answer::Failed { errno, message }) => Err(GuestError::system(
                message,
                std::io::Error::from_raw_os_error(errno),
            )),
            Ok(_) | Err(_) => Err(GuestError::NotRunning),
        }
    }

    pub(super) fn running(&self) -> Result<Arc<Running>, GuestError> {
        self.shared.running()
    }

    pub(super) fn shell_request(&self, running: &Running, arguments: Vec<String>) -> SpawnRequest {
        self.shared.shell_request(running, arguments)
    }

    fn forget_running(&self) {
        self.shared
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        self.shared
            .shells
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

impl GuestShared {
    pub(super) fn running(&self) -> Result<Arc<Running>, GuestError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.clone().ok_or(GuestError::NotRunning)
    }

    pub(super) fn disk(&self) -> Result<Arc<OwnedFd>, GuestError> {
        let disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        disk.clone().ok_or(GuestError::NotRunning)
    }

    /// The image's shell with `arguments`, in the home directory, reading `/dev/null`.
    pub(super) fn shell_request(&self, running: &Running, arguments: Vec<String>) -> SpawnRequest {
        let shell = self.spec.image.shell;
        let mut with_name = vec![shell.name().to_owned()];
        with_name.extend(arguments);
        SpawnRequest {
            exec: running.next_exec(),
            program: shell.program().into(),
            arguments: with_name,
            environment: self.environment(running),
            working_dir: self.home(),
            user: self.spec.user.clone(),
            null_stdin: true,
            status_pipe: false,
        }
    }

    fn environment(&self, running: &Running) -> BTreeMap<String, String> {
        let user = &self.spec.user;
        let mut environment = BTreeMap::from([
            ("HOME".to_owned(), self.home()),
            ("USER".to_owned(), user.name.clone()),
            ("LOGNAME".to_owned(), user.name.clone()),
            (
                "SHELL".to_owned(),
                self.spec.image.shell.program().to_owned(),
            ),
            ("PATH".to_owned(), running.path.clone()),
        ]);
        if self.machine.is_plain() {
            environment.insert("TMPDIR".to_owned(), self.plain_dir("tmp"));
        }
        environment.extend(self.spec.env.clone());
        environment
    }

    /// The home directory as commands name it.
    pub(super) fn home(&self) -> String {
        let home = &self.spec.user.home;
        if self.machine.is_plain() {
            let disk = self.machine.disks_dir.join(&self.spec.id).join("upper");
            disk.join(home.trim_start_matches('/'))
                .to_string_lossy()
                .into_owned()
        } else {
            home.clone()
        }
    }

    /// A directory of the room's own that commands can reach and disks do not hold.
    pub(super) fn runtime_dir(&self) -> String {
        if self.machine.is_plain() {
            self.plain_dir("shells")
        } else {
            "/run/runloop-simulator/shells".to_owned()
        }
    }

    fn plain_dir(&self, name: &str) -> String {
        let dir = self.machine.boxes_dir.join(&self.spec.id).join(name);
        dir.to_string_lossy().into_owned()
    }
}

impl Drop for GuestShared {
    fn drop(&mut self) {
        let box_id = self.spec.id.clone();
        self.machine.post(if self.machine.keeps_state {
            KeeperRequest::Stop { box_id }
        } else {
            KeeperRequest::RemoveDisk { box_id }
        });
    }
}

impl Running {
    pub(super) async fn call(
        &self,
        what: &str,
        request: InitRequest,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(Answer, Vec<OwnedFd>), GuestError> {
        self.channel.call(what, request, descriptors).await
    }

    pub(super) fn post(&self, request: InitRequest) {
        self.channel.post(request);
    }

    pub(super) fn next_exec(&self) -> u64 {
        self.next_exec.fetch_add(1, Ordering::Relaxed)
    }

    /// Calls `listener` with the exit code of `exec`, which must not have been started yet.
    pub(super) fn on_exit(&self, exec: u64, listener: ExitListener) {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(exec, listener);
    }

    pub(super) fn forget_exit(&self, exec: u64) {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&exec);
    }

    async fn start(
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
        let exiting = process.clone();
        self.on_exit(exec, Box::new(move |code| exiting.mark_exited(code)));
        let target = Target {
            running: Arc::downgrade(self),
            exec,
        };
        process.shared.target.send_replace(Some(target));
        let request = InitRequest::Spawn(request);
        if let Err(error) = self.call("starting a command", request, descriptors).await {
            self.forget_exit(exec);
            return Err(error);
        }
        tokio::spawn(process.clone().follow(stdout, stderr));
        Ok(())
    }
}

/// A pipe that this process reads.
pub(super) fn receiving_pipe() -> std::io::Result<(pipe::Receiver, OwnedFd)> {
    let (reader, writer) = std::io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer.into()))
}

fn check_id(id: &str) -> Result<(), GuestError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !id.is_empty() && id.len() <= layer::MAX_ID_BYTES && id.bytes().all(is_plain) {
        return Ok(());
    }
    Err(GuestError::InvalidInput(
        "an id is 1 to 64 of [A-Za-z0-9_-]".into(),
    ))
}

fn check_environment(environment: &BTreeMap<String, String>) -> Result<(), GuestError> {
    for (name, value) in environment {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let message = "a variable has an empty name, '=' in its name, or a NUL";
            return Err(GuestError::InvalidInput(message.into()));
        }
    }
    Ok(())
}
