//! The virtual clock: wall time plus an offset that only grows.
//!
//! Everything that carries a timestamp or a lifetime reads it; long polls and
//! delays run on real time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Default)]
pub(crate) struct Clock {
    offset_ms: AtomicI64,
}

impl Clock {
    /// Virtual time, in milliseconds since the epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let wall_ms = i64::try_from(wall.as_millis()).unwrap_or(i64::MAX);
        wall_ms.saturating_add(self.offset_ms.load(Ordering::Relaxed))
    }

    /// How far virtual time is ahead of wall time.
    pub(crate) fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Relaxed)
    }

    /// Moves virtual time forward; a negative step is ignored.
    pub(crate) fn advance_ms(&self, step_ms: i64) {
        self.offset_ms.fetch_add(step_ms.max(0), Ordering::Relaxed);
    }
}
