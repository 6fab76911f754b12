//! How far a transfer has come.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// What a transfer is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Content is on its way to the service.
    Uploading,
    /// Content is on its way from the service.
    Downloading,
    /// What was uploaded is put in its place.
    Finishing,
}

/// How far a transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transfer {
    /// What it is doing.
    pub phase: Phase,
    /// Content that was handed to the network, or has arrived.
    pub bytes: u64,
    /// All of it.
    pub total_bytes: u64,
}

/// Is told how far a call has come; the default is nobody. Called from any
/// thread, as often as there is something to tell.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(Transfer) + Send + Sync>>);

impl Progress {
    /// Tells this function.
    pub fn to(tell: impl Fn(Transfer) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    /// Tells that a phase is at this point.
    pub fn tell(&self, phase: Phase, bytes: u64, total_bytes: u64) {
        if let Some(tell) = &self.0 {
            tell(Transfer {
                phase,
                bytes,
                total_bytes,
            });
        }
    }

    /// Counts the bytes of one request; `None` where nobody is told.
    #[must_use]
    pub fn counter(&self, phase: Phase, total_bytes: u64) -> Option<Counter> {
        self.0.as_ref()?;
        Some(Counter {
            progress: self.clone(),
            phase,
            total_bytes,
        })
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}

/// Counts the bytes of one request.
#[derive(Debug, Clone)]
pub struct Counter {
    progress: Progress,
    phase: Phase,
    total_bytes: u64,
}

impl Counter {
    /// So many bytes of the request have gone through, counted from its start.
    pub fn at(&self, bytes: u64) {
        self.progress.tell(self.phase, bytes, self.total_bytes);
    }
}
