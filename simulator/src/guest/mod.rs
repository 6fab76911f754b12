//! Makes Devboxes of real processes.
//!
//! Owns everything that runs or lies inside a Devbox: its root directory, its
//! namespaces, its commands, shells, terminals, files and disk snapshots. Knows
//! nothing of HTTP, of identifiers' shapes or of the API's states: it is told to
//! boot, to run, to suspend and to destroy.
//!
//! A multi-threaded process cannot enter namespaces or fork safely, so the room has
//! two halves. This half is asynchronous and holds no privilege; the other half
//! (`helper`) is single-threaded processes that do as they are told over sockets:
//! one *keeper* a machine, one *init* a running Devbox.
//!
//! Start reading at [`Machine`], then [`Guest`].

mod channel;
mod descriptors;
mod devbox;
mod error;
mod files;
mod helper;
mod layer;
mod machine;
mod process;
mod protocol;
mod pty;
mod running;
mod shell;
mod spec;
mod spool;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use devbox::{Guest, ProcessEntry};
pub use error::{FileError, GuestError};
pub use files::{FileReader, FileWriter};
pub use layer::Layer;
pub use machine::{Isolation, IsolationChoice, Machine, MachineOptions};
pub use process::{KillScope, Process, ProcessState, Spawn, Stdin};
pub use pty::{Pty, PtySignal, UnknownSignal};
pub use shell::Shell;
pub use spec::{BoxSpec, GuestShell, Image, Network, User};
pub use spool::Spool;

/// What the lock protects. No holder of a lock of this room leaves it half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
