//! The caller's side of a call: its signal.

use tokio_util::sync::CancellationToken;

/// Options of every call that waits.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// Stops the call: it fails with `CANCELLED`. What was sent is not undone.
    pub cancel: CancellationToken,
}

impl Call {
    /// A call that this token stops.
    #[must_use]
    pub fn cancelled_by(cancel: CancellationToken) -> Self {
        Self { cancel }
    }
}
