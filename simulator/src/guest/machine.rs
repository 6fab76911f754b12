//! A machine: the keeper process and what all Devboxes share.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::channel::Channel;
use super::devbox::Guest;
use super::error::GuestError;
use super::layer::Layer;
use super::lock;
use super::protocol::{Answer, HELPER_NAME, Hello, KeeperRequest, Setup};
use super::spec::BoxSpec;

/// How long the keeper may take to say that it is ready. Only an executable that does
/// not contain this library never says it.
const HELLO_TIMEOUT: Duration = Duration::from_secs(20);

/// How a machine is made.
#[derive(Debug, Clone, Default)]
pub struct MachineOptions {
    /// Keeps disks and layers here for the next start; made if missing. Without it they
    /// are gone when the machine ends.
    pub state_dir: Option<PathBuf>,
    /// Whether namespaces may be used.
    pub isolation: IsolationChoice,
}

/// Whether namespaces may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IsolationChoice {
    /// Where the rights are there, else plain processes.
    #[default]
    Auto,
    /// Plain processes.
    Plain,
}

/// What separates Devboxes from the host and from each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Isolation {
    /// Each has its own root, processes, network, host name and IPC.
    Namespaces,
    /// Each has its own home directory; everything else is the host's.
    Plain {
        /// Why there are no namespaces.
        reason: String,
    },
}

/// Runs Devboxes. Clones are handles to the same machine.
///
/// When the last handle and the last [`Guest`] are gone, or after [`Machine::stop`],
/// nothing is left of it: no process, mount, directory or network interface; the same
/// after a SIGKILL of this process. A state directory stays. Dropping the last handle
/// waits for that and so blocks its thread for some 20 ms; [`Machine::stop`] does not.
#[derive(Debug, Clone)]
pub struct Machine {
    shared: Arc<MachineShared>,
}

pub(super) struct MachineShared {
    isolation: Isolation,
    pub(super) disks_dir: PathBuf,
    pub(super) boxes_dir: PathBuf,
    pub(super) keeps_state: bool,
    channel: Mutex<Option<Arc<Channel>>>,
    child: Mutex<Option<Child>>,
}

impl std::fmt::Debug for MachineShared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("MachineShared")
            .field("isolation", &self.isolation)
            .finish_non_exhaustive()
    }
}

impl Machine {
    /// Starts the keeper and finds out what it may do. Must be called in a tokio
    /// runtime, which has to live as long as the machine is used.
    ///
    /// Raises this process's soft limit of open files to its hard limit: an execution
    /// holds two to three descriptors.
    ///
    /// # Errors
    ///
    /// When the keeper cannot be started or the state directory cannot be used.
    pub async fn start(options: MachineOptions) -> Result<Self, GuestError> {
        raise_open_files_limit();
        let keeps_state = options.state_dir.is_some();
        let setup = Setup {
            may_isolate: options.isolation == IsolationChoice::Auto,
            state_dir: options
                .state_dir
                .as_deref()
                .map(prepare_state_dir)
                .transpose()?,
            temporary_dir: std::env::temp_dir(),
        };
        let (ours, theirs) =
            UnixStream::pair().map_err(|error| GuestError::system("making a socket", error))?;
        let mut child = KeeperProcess(Some(spawn_keeper(theirs)?));
        let channel = Channel::open(ours, |_| {})
            .map_err(|error| GuestError::system("opening a socket", error))?;
        let hello = match tokio::time::timeout(
            HELLO_TIMEOUT,
            channel.call("starting the keeper", setup, Vec::new()),
        )
        .await
        {
            Ok(answer) => expect_hello(answer?.0)?,
            Err(elapsed) => {
                child.kill();
                let what = "waiting for the keeper (does this executable contain the simulator?)";
                return Err(GuestError::system(what, std::io::Error::from(elapsed)));
            }
        };
        let isolation = match hello.plain_reason {
            Some(reason) => Isolation::Plain { reason },
            None => Isolation::Namespaces,
        };
        let shared = MachineShared {
            isolation,
            disks_dir: hello.disks_dir,
            boxes_dir: hello.boxes_dir,
            keeps_state,
            channel: Mutex::new(Some(Arc::new(channel))),
            child: Mutex::new(child.0.take()),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// What separates Devboxes.
    pub fn isolation(&self) -> &Isolation {
        &self.shared.isolation
    }

    /// Boots a Devbox on an empty disk, on a copy of `layer`, or, with a state directory
    /// that holds a disk of this id, on that disk (then `layer` is not looked at).
    ///
    /// # Errors
    ///
    /// [`GuestError::InvalidInput`] for an id, name or variable that cannot be;
    /// [`GuestError::System`] when the system refuses; nothing is left of it then.
    pub async fn boot(&self, spec: BoxSpec, layer: Option<&Layer>) -> Result<Guest, GuestError> {
        Guest::boot(Arc::clone(&self.shared), spec, layer).await
    }

    /// Opens a layer that an earlier machine left in the state directory.
    ///
    /// # Errors
    ///
    /// [`GuestError::System`] when there is none of this id.
    pub async fn open_layer(&self, id: &str) -> Result<Layer, GuestError> {
        Layer::open(Arc::clone(&self.shared), id).await
    }

    /// Ends every Devbox and returns when nothing is left. Guests and layers of this
    /// machine answer [`GuestError::NotRunning`] from then on.
    pub async fn stop(&self) {
        let shared = Arc::clone(&self.shared);
        // Waiting for a process blocks.
        let _ = tokio::task::spawn_blocking(move || shared.end()).await;
    }
}

impl MachineShared {
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.isolation, Isolation::Plain { .. })
    }

    pub(super) async fn call(
        &self,
        what: &str,
        request: KeeperRequest,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(Answer, Vec<OwnedFd>), GuestError> {
        let channel = self.channel().ok_or(GuestError::NotRunning)?;
        channel.call(what, request, descriptors).await
    }

    pub(super) fn post(&self, request: KeeperRequest) {
        if let Some(channel) = self.channel() {
            channel.post(request);
        }
    }

    fn channel(&self) -> Option<Arc<Channel>> {
        lock(&self.channel).clone()
    }

    /// Closes the socket, which makes the keeper end everything, and waits for it.
    fn end(&self) {
        // Whoever still waits for an answer holds the channel too.
        if let Some(channel) = lock(&self.channel).take() {
            channel.close();
        }
        let child = lock(&self.child).take();
        drop(KeeperProcess(child));
    }
}

impl Drop for MachineShared {
    fn drop(&mut self) {
        self.end();
    }
}

/// A keeper that is waited for when it goes out of scope, whatever path is taken.
struct KeeperProcess(Option<Child>);

impl KeeperProcess {
    fn kill(&mut self) {
        if let Some(child) = &mut self.0 {
            // An error means that it has ended already.
            let _ = child.kill();
        }
    }
}

impl Drop for KeeperProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It ends by itself once its socket is closed. An error means that somebody
            // else has reaped it.
            let _ = child.wait();
        }
    }
}

/// Runs this very executable again; see [`super::helper`] for how it knows its part.
/// The socket is the child's standard input, so nothing needs to run between fork and exec.
fn spawn_keeper(socket: UnixStream) -> Result<Child, GuestError> {
    Command::new("/proc/self/exe")
        .arg0(HELPER_NAME)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| GuestError::system("starting the keeper", error))
}

fn expect_hello(answer: Answer) -> Result<Hello, GuestError> {
    match answer {
        Answer::Hello(hello) => Ok(hello),
        _ => Err(GuestError::NotRunning),
    }
}

fn prepare_state_dir(path: &Path) -> Result<PathBuf, GuestError> {
    std::fs::create_dir_all(path)
        .and_then(|()| path.canonicalize())
        .map_err(|error| GuestError::system("preparing the state directory", error))
}

fn raise_open_files_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // A refusal only means fewer executions at once.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
