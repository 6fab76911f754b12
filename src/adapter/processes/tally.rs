//! Whether the streams that are read come whole.

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::records::Completeness;

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    open: usize,
    is_incomplete: bool,
}

/// The streams of one process that are being read, and whether one failed.
#[derive(Debug)]
pub(super) struct Tally(watch::Sender<Counts>);

/// One stream that is being read. Dropped without a verdict, it was given up
/// by its reader and says nothing.
#[derive(Debug)]
pub(super) struct Counted(watch::Sender<Counts>);

impl Tally {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(Counts::default()))
    }

    /// Counts a stream in.
    pub(super) fn count(&self) -> Counted {
        self.0.send_modify(|counts| counts.open += 1);
        Counted(self.0.clone())
    }

    /// Waits until no stream is open, at most until `deadline`.
    pub(super) async fn verdict(&self, deadline: Instant) -> Completeness {
        let mut counts = self.0.subscribe();
        let settled = timeout_at(deadline, counts.wait_for(|counts| counts.open == 0)).await;
        match settled {
            Ok(Ok(counts)) if !counts.is_incomplete => Completeness::Complete,
            _ => Completeness::Incomplete,
        }
    }
}

impl Counted {
    /// The stream did not come whole.
    pub(super) fn is_incomplete(&self) {
        self.0.send_modify(|counts| counts.is_incomplete = true);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0
            .send_modify(|counts| counts.open = counts.open.saturating_sub(1));
    }
}
