//! What was asked and what was answered, request by request.
//!
//! An entry is made when the request's head arrives and completed when its
//! answer's last byte is taken, so a request that is held or cut is there too.
//! The authorization value never enters it; bodies do, because showing what a
//! client sent is its purpose. The layer that fills it is `layers/record.rs`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;

/// How a request came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// No answer yet.
    Pending,
    /// The whole answer was handed to the connection.
    Answered,
    /// A fault ended the connection instead of an answer.
    HungUp,
    /// The answer was cut: the client left, or a fault truncated it.
    Cut,
}

/// One request. `status` is what the client was sent, `None` if nothing was.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Entry {
    pub(crate) sequence: u64,
    pub(crate) time_ms: i64,
    pub(crate) duration_ms: Option<i64>,
    pub(crate) connection: u64,
    /// `1.0`, `1.1` or `2`.
    pub(crate) http_version: &'static str,
    pub(crate) tls: bool,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) headers: BTreeMap<String, String>,
    /// The parsed body when it is JSON of at most [`MAX_BODY_BYTES`].
    pub(crate) body: Option<Value>,
    pub(crate) request_bytes: u64,
    pub(crate) status: Option<u16>,
    pub(crate) response_bytes: u64,
    pub(crate) response_content_type: Option<String>,
    /// What was answered, while `journal_response_bodies` is set: JSON as it
    /// is, other text as a string, at most [`MAX_KEPT_RESPONSE_BYTES`] of it.
    pub(crate) response_body: Option<Value>,
    pub(crate) outcome: Outcome,
    /// Ids of the fault rules that acted on it, in order.
    pub(crate) faults: Vec<String>,
    /// No route of the API matched.
    pub(crate) unexpected: bool,
}

/// Longer JSON bodies are counted, not kept.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Longer answers are counted, not kept.
pub(crate) const MAX_KEPT_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// An entry that is still being filled.
pub(crate) type Slot = Arc<Mutex<Entry>>;

/// The bounded list of entries, oldest first.
#[derive(Debug)]
pub(crate) struct Journal {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next_sequence: u64,
    entries: VecDeque<Slot>,
    dropped: u64,
    unexpected: Vec<String>,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                next_sequence: 1,
                ..Inner::default()
            }),
        }
    }

    /// Adds an entry and gives it its sequence number.
    pub(crate) fn open(&self, mut entry: Entry, max_entries: usize) -> Slot {
        let mut inner = self.lock();
        entry.sequence = inner.next_sequence;
        inner.next_sequence += 1;
        let slot = Arc::new(Mutex::new(entry));
        inner.entries.push_back(Arc::clone(&slot));
        while inner.entries.len() > max_entries.max(1) {
            inner.entries.pop_front();
            inner.dropped += 1;
        }
        slot
    }

    /// Notes that no route matched; the list survives [`Journal::clear`].
    pub(crate) fn mark_unexpected(&self, slot: &Slot) {
        let line = {
            let mut entry = lock_entry(slot);
            entry.unexpected = true;
            format!("{} {}", entry.method, entry.path)
        };
        self.lock().unexpected.push(line);
    }

    /// Every `METHOD /path` that no route matched since the start.
    pub(crate) fn unexpected(&self) -> Vec<String> {
        self.lock().unexpected.clone()
    }

    /// A copy of the kept entries and the number of older ones let go.
    pub(crate) fn snapshot(&self) -> (Vec<Entry>, u64) {
        let (slots, dropped) = {
            let inner = self.lock();
            (
                inner.entries.iter().cloned().collect::<Vec<_>>(),
                inner.dropped,
            )
        };
        (
            slots.iter().map(|slot| lock_entry(slot).clone()).collect(),
            dropped,
        )
    }

    /// What `show` makes of the newest entries, newest first.
    pub(crate) fn newest<T>(&self, count: usize, show: impl Fn(&Entry) -> T) -> Vec<T> {
        let slots: Vec<_> = self
            .lock()
            .entries
            .iter()
            .rev()
            .take(count)
            .cloned()
            .collect();
        slots.iter().map(|slot| show(&lock_entry(slot))).collect()
    }

    /// Forgets the entries; sequence numbers go on.
    pub(crate) fn clear(&self) {
        let mut inner = self.lock();
        inner.entries.clear();
        inner.dropped = 0;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry behind a slot.
pub(crate) fn lock_entry(slot: &Slot) -> std::sync::MutexGuard<'_, Entry> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
