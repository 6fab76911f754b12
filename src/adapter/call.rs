//! The caller's side of a call: its signal, and who is told of its progress.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::observe::Progress;

/// Options of every call that waits.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// Stops the call: it fails with `CANCELLED`. What was sent is not undone.
    pub cancel: CancellationToken,
    /// Is told how far the transfer of a file has come.
    pub progress: Progress,
    /// The caller's operation, for whoever traces the connection.
    pub operation_id: Option<Arc<str>>,
}

impl Call {
    /// A call that this token stops.
    #[must_use]
    pub fn cancelled_by(cancel: CancellationToken) -> Self {
        Self {
            cancel,
            ..Self::default()
        }
    }

    /// The same call, which tells of its progress.
    #[must_use]
    pub fn telling(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }
}
