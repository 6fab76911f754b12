//! Evictions: notices that boxes will be suspended, and the suspending.
//!
//! Certain: pending notices are replayed to whoever connects, the box is
//! suspended after the deadline. They come about by order of the control
//! surface only.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

use super::World;
use super::accounts::AccountKey;
use super::lifecycle;

/// Notices that a slow reader may fall behind.
const CAPACITY: usize = 256;

/// One notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Eviction {
    pub(crate) account_id: AccountKey,
    pub(crate) devbox_id: String,
    pub(crate) deadline_ms: i64,
}

#[derive(Debug)]
pub(crate) struct Evictions {
    pending: Mutex<Vec<Eviction>>,
    announced: broadcast::Sender<Eviction>,
}

impl Default for Evictions {
    fn default() -> Self {
        Self {
            pending: Mutex::default(),
            announced: broadcast::Sender::new(CAPACITY),
        }
    }
}

impl Evictions {
    pub(crate) fn announce(&self, eviction: Eviction) {
        let mut pending = self.lock();
        pending.push(eviction.clone());
        // Without a listener the notice waits among the pending ones.
        self.announced.send(eviction).unwrap_or_default();
    }

    /// What is pending for an account, and a receiver of all that follows.
    pub(crate) fn watch(&self, account_id: &str) -> (Vec<Eviction>, broadcast::Receiver<Eviction>) {
        let pending = self.lock();
        let mine = pending
            .iter()
            .filter(|eviction| &*eviction.account_id == account_id);
        (mine.cloned().collect(), self.announced.subscribe())
    }

    /// Suspends the boxes whose deadline has passed.
    pub(super) fn expire(&self, world: &Arc<World>, now_ms: i64) {
        let due: Vec<Eviction> = self
            .lock()
            .extract_if(.., |eviction| eviction.deadline_ms <= now_ms)
            .collect();
        for eviction in due {
            if let Some(devbox) = world.devboxes.find(&eviction.devbox_id) {
                // A box that is no longer running needs no suspending.
                lifecycle::suspend(world, &devbox).unwrap_or_default();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Eviction>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
