//! One Devbox: boot, run, suspend, resume, destroy.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpSocket, TcpStream};

use super::error::GuestError;
use super::layer::{self, Layer};
use super::lock;
use super::machine::MachineShared;
use super::process::{Process, ProcessState, Spawn};
use super::protocol::{Answer, InitRequest, KeeperRequest, SpawnRequest};
use super::running::Running;
use super::shell::Shell;
use super::spec::{BoxSpec, Network};

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
    /// Held by suspend, resume and destroy.
    verb: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for GuestShared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("GuestShared")
            .field("id", &self.spec.id)
            .finish_non_exhaustive()
    }
}

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
                verb: tokio::sync::Mutex::new(()),
            }),
        };
        let is_new = matches!(answer, Answer::Disk { is_new: true });
        if let Some(layer) = layer
            && is_new
        {
            layer.restore_to(guest.shared.disk()?).await?;
        }
        if let Err(error) = guest.start_init(guest.shared.spec.network).await {
            if is_new {
                // The caller shall find nothing of it; an error of this tells no more.
                let _ = guest.destroy().await;
            }
            return Err(error);
        }
        Ok(guest)
    }

    /// The id it was booted with.
    pub fn id(&self) -> &str {
        &self.shared.spec.id
    }

    /// Runs a script in a fresh, non-interactive shell that starts in the home directory.
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
        let mut arguments = vec!["-c".to_owned(), spawn.script];
        if spawn.login {
            arguments.insert(0, "-l".to_owned());
        }
        let request = self.shell_request(&running, arguments);
        let process = Process::new(ProcessState::Running);
        running
            .start_process(request, spawn.stdin, &process)
            .await?;
        Ok(process)
    }

    /// The named shell: made on first use, then the same until the next suspend.
    pub fn shell(&self, name: &str) -> Shell {
        let mut shells = lock(&self.shared.shells);
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
        let socket = self
            .running()?
            .call_for_descriptor("making a socket", InitRequest::Socket)
            .await?;
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
            .and_then(|running| running.gateway_address())
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
    /// [`GuestError::NotRunning`] when it was destroyed or the machine has ended.
    pub async fn suspend(&self) -> Result<(), GuestError> {
        let _verb = self.shared.verb.lock().await;
        let _disk = self.shared.disk()?;
        let box_id = self.shared.spec.id.clone();
        self.end_init("suspending", KeeperRequest::Stop { box_id })
            .await
    }

    /// Starts a suspended Devbox on its disk, with the network that it was booted with.
    /// Resuming a running one does nothing.
    ///
    /// # Errors
    ///
    /// As [`super::Machine::boot`].
    pub async fn resume(&self) -> Result<(), GuestError> {
        self.resume_on(self.shared.spec.network).await
    }

    /// The same with another network, until the next suspend.
    ///
    /// # Errors
    ///
    /// As [`super::Machine::boot`].
    pub async fn resume_on(&self, network: Network) -> Result<(), GuestError> {
        let _verb = self.shared.verb.lock().await;
        match self.running() {
            Ok(_) => Ok(()),
            Err(_) => self.start_init(network).await,
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
        let _verb = self.shared.verb.lock().await;
        if lock(&self.shared.disk).take().is_none() {
            // Its name may be another's by now.
            return Ok(());
        }
        let box_id = self.shared.spec.id.clone();
        self.end_init("destroying", KeeperRequest::RemoveDisk { box_id })
            .await
    }

    async fn start_init(&self, network: Network) -> Result<(), GuestError> {
        // A destroyed Devbox has no disk and never runs again.
        let _disk = self.shared.disk()?;
        let running = Running::start(&self.shared.machine, &self.shared.spec, network).await?;
        *lock(&self.shared.running) = Some(Arc::new(running));
        Ok(())
    }

    /// Ends the init with `request` and waits for what it has still to tell.
    async fn end_init(&self, what: &str, request: KeeperRequest) -> Result<(), GuestError> {
        let running = lock(&self.shared.running).take();
        lock(&self.shared.shells).clear();
        self.shared.machine.call(what, request, Vec::new()).await?;
        if let Some(running) = running {
            running.ended().await;
        }
        Ok(())
    }

    pub(super) fn running(&self) -> Result<Arc<Running>, GuestError> {
        self.shared.running()
    }

    pub(super) fn shell_request(&self, running: &Running, arguments: Vec<String>) -> SpawnRequest {
        self.shared.shell_request(running, arguments)
    }
}

impl GuestShared {
    pub(super) fn running(&self) -> Result<Arc<Running>, GuestError> {
        lock(&self.running)
            .clone()
            .filter(|running| !running.is_over())
            .ok_or(GuestError::NotRunning)
    }

    pub(super) fn disk(&self) -> Result<Arc<OwnedFd>, GuestError> {
        lock(&self.disk).clone().ok_or(GuestError::NotRunning)
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
            ("PATH".to_owned(), running.path().to_owned()),
        ]);
        if self.machine.is_plain() {
            environment.insert("TMPDIR".to_owned(), self.on_plain_disk("/tmp"));
        }
        environment.extend(self.spec.env.clone());
        environment
    }

    /// The home directory as commands name it.
    pub(super) fn home(&self) -> String {
        let home = &self.spec.user.home;
        if self.machine.is_plain() {
            self.on_plain_disk(home)
        } else {
            home.clone()
        }
    }

    /// A directory of the room's own that commands can reach and disks do not hold.
    pub(super) fn runtime_dir(&self) -> String {
        if self.machine.is_plain() {
            let dir = self.machine.boxes_dir.join(&self.spec.id).join("shells");
            dir.to_string_lossy().into_owned()
        } else {
            "/run/runloop-simulator/shells".to_owned()
        }
    }

    /// Where a path that namespaces would give the Devbox lies without them.
    fn on_plain_disk(&self, path: &str) -> String {
        let upper = self.machine.disks_dir.join(&self.spec.id).join("upper");
        let path = upper.join(path.trim_start_matches('/'));
        path.to_string_lossy().into_owned()
    }
}

impl Drop for GuestShared {
    fn drop(&mut self) {
        if self.disk().is_err() {
            return;
        }
        let box_id = self.spec.id.clone();
        self.machine.post(if self.machine.keeps_state {
            KeeperRequest::Release { box_id }
        } else {
            KeeperRequest::RemoveDisk { box_id }
        });
    }
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
