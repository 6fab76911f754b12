//! What the two halves of the room say to each other: frames on a stream socket.
//!
//! A frame is a header (length of the body, number of descriptors, both `u32` little
//! endian) and a JSON body. Descriptors travel with the frame's first byte. Requests
//! carry an id that the answer repeats; an event carries id 0.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::spec::{Network, User};

/// Bytes of a frame's header.
pub(super) const HEADER_BYTES: usize = 8;
/// Descriptors that one frame can carry at most.
pub(super) const MAX_DESCRIPTORS: usize = 4;
/// The value of `argv[0]` that turns a fresh process into the helper.
pub(super) const HELPER_NAME: &str = "runloop-simulator-guest-helper";

/// A request with the id that its answer repeats (never 0).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Envelope<T> {
    pub(super) id: u64,
    pub(super) body: T,
}

/// The first frame to a new keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    /// Whether namespaces may be tried.
    pub(super) may_isolate: bool,
    /// Where disks and layers are kept for the next start.
    pub(super) state_dir: Option<PathBuf>,
    /// The host's directory for temporary files.
    pub(super) temporary_dir: PathBuf,
}

/// The keeper's answer to [`Setup`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Why Devboxes are plain processes; `None` when they get namespaces.
    pub(super) plain_reason: Option<String>,
    /// The directories that hold disks and what lasts only while a Devbox runs, as the
    /// keeper names them.
    pub(super) disks_dir: PathBuf,
    pub(super) boxes_dir: PathBuf,
}

/// What the keeper can be asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum KeeperRequest {
    /// Makes the disk of a Devbox, or finds the one that a state directory holds.
    /// The answer carries a descriptor of the writable directory.
    CreateDisk {
        box_id: String,
        max_bytes: Option<u64>,
    },
    /// Starts the init of a Devbox; the request carries its end of the control socket.
    Start { box_id: String, init: InitConfig },
    /// Ends the init and with it every process; answers when all are gone.
    Stop { box_id: String },
    /// Stops and gives the name free; the disk stays for a later Devbox of that name.
    Release { box_id: String },
    /// Stops, gives the name free and deletes the disk.
    RemoveDisk { box_id: String },
    /// Makes an empty directory for a layer, or opens an existing one.
    /// The answer carries a descriptor of it.
    OpenLayer { layer_id: String, create: bool },
    /// Deletes a layer's directory.
    RemoveLayer { layer_id: String },
}

/// What an init needs to know before it can set up its Devbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct InitConfig {
    pub(super) hostname: String,
    pub(super) network: Network,
    pub(super) user: User,
    /// Programs to link into the directory of tools; `None` for no such directory.
    pub(super) tools: Option<Vec<String>>,
    /// What `sh` and shell programs in the directory of tools stand for.
    pub(super) shell_program: String,
}

/// What an init can be asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum InitRequest {
    /// Runs a program; carries descriptors for stdin (unless `null_stdin`), stdout,
    /// stderr and, with `status_pipe`, descriptor 3.
    Spawn(SpawnRequest),
    /// Runs a program on a new terminal; the answer carries the terminal's master.
    SpawnOnTerminal {
        spawn: SpawnRequest,
        columns: u16,
        rows: u16,
    },
    /// Signals the leader or its whole process group.
    Signal { exec: u64, signal: i32, group: bool },
    /// Signals the process group that is in the foreground of a terminal.
    SignalForeground { exec: u64, signal: i32 },
    /// Sets the size of a terminal.
    Resize { exec: u64, columns: u16, rows: u16 },
    /// Lets go of a terminal, which hangs up once the simulator has let go too.
    HangUp { exec: u64 },
    /// Opens a regular file as the Devbox's user; the answer carries it.
    Open {
        path: String,
        user: User,
        write: bool,
    },
    /// Makes a TCP socket in the Devbox's network; the answer carries it unconnected.
    Socket,
    /// Makes a named pipe that the user may write; the answer carries a reading end
    /// and a descriptor that keeps a writing end open.
    MakeFifo { path: String, user: User },
    /// Removes a named pipe.
    Unlink { path: String },
    /// Lists the Devbox's processes, the init left out.
    Processes,
    /// Lists what lies under the Devbox's directories for temporary files.
    TemporaryFiles,
}

/// A program to run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SpawnRequest {
    /// The sender's name for the execution.
    pub(super) exec: u64,
    /// The program's path, then its arguments from `argv[0]` on.
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) working_dir: String,
    pub(super) user: User,
    pub(super) null_stdin: bool,
    pub(super) status_pipe: bool,
}

/// A process of a Devbox.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ListedProcess {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) zombie: bool,
    pub(super) arguments: Vec<String>,
}

/// What the helper answers, or reports with id 0.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Done,
    Failed {
        errno: i32,
        message: String,
    },
    Hello(Hello),
    Disk {
        is_new: bool,
    },
    /// An init is ready for requests.
    Ready {
        gateway_address: Option<std::net::Ipv4Addr>,
        path: String,
    },
    Started {
        pid: i32,
    },
    /// Whether there was a process to signal.
    Signalled {
        delivered: bool,
    },
    Processes(Vec<ListedProcess>),
    Paths(Vec<String>),
    /// A leader was reaped; `code` is its exit code or 128 + signal.
    Exited {
        exec: u64,
        code: i32,
    },
}
