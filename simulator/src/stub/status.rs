//! What the stub has done so far, for a bench that checks what it times.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::boxes::Boxes;

/// What came last into a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    pub(super) path: String,
    pub(super) bytes: u64,
    /// They are the payload, from its start.
    pub(super) is_payload: bool,
}

/// Shared by all connections.
#[derive(Debug)]
pub(super) struct Status {
    pub(super) boxes: Boxes,
    requests: AtomicU64,
    held: AtomicU64,
    numbers: AtomicU64,
    releases: watch::Sender<u64>,
    writes: Mutex<(u64, Written)>,
    unexpected: Mutex<Vec<String>>,
}

impl Status {
    pub(super) fn new() -> Self {
        Self {
            boxes: Boxes::default(),
            requests: AtomicU64::new(0),
            held: AtomicU64::new(0),
            numbers: AtomicU64::new(0),
            releases: watch::Sender::new(0),
            writes: Mutex::default(),
            unexpected: Mutex::default(),
        }
    }

    pub(super) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a command that begins to wait for its end.
    pub(super) fn count_held(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that no other call got.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// How often commands have been released.
    pub(super) fn releases(&self) -> u64 {
        *self.releases.borrow()
    }

    /// Ends every command that waits for it.
    pub(super) fn release(&self) {
        self.releases.send_modify(|releases| *releases += 1);
    }

    /// Tells of releases.
    pub(super) fn watch_releases(&self) -> watch::Receiver<u64> {
        self.releases.subscribe()
    }

    pub(super) fn wrote(&self, written: Written) {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        writes.0 += 1;
        writes.1 = written;
    }

    pub(super) fn unexpected(&self, line: String) {
        let mut lines = self
            .unexpected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        lines.push(line);
    }

    /// In the simulator's form, as far as the stub has one: unknown routes.
    pub(super) fn journal(&self) -> Value {
        let lines = self
            .unexpected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        json!({ "entries": [], "unexpected": *lines })
    }

    /// Counts, and the processor time of this process in microseconds.
    pub(super) fn report(&self) -> Value {
        let (writes, last) = self
            .writes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let cpu = getrusage(UsageWho::RUSAGE_SELF)
            .map(|usage| (usage.user_time() + usage.system_time()).num_microseconds());
        json!({
            "held": self.held.load(Ordering::Relaxed),
            "requests": self.requests.load(Ordering::Relaxed),
            "cpu_us": cpu.unwrap_or(0),
            "writes": writes,
            "last_write": {
                "path": last.path,
                "bytes": last.bytes,
                "is_payload": last.is_payload,
            },
        })
    }
}
