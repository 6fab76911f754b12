//! The long poll: hold a request until a status is there or the time is up.

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::{ApiError, ApiResult};

/// The body of every `wait_for_status`. `timeout_seconds` is an integer in the
/// specification and a float from one official client.
#[derive(Debug, Deserialize)]
pub(super) struct WaitForStatus {
    #[serde(default)]
    pub(super) statuses: Vec<String>,
    pub(super) timeout_seconds: Option<f64>,
}

impl WaitForStatus {
    /// How long to hold: what was asked, or the default, at most the maximum.
    pub(super) fn hold(&self, default_seconds: f64, max_seconds: f64) -> ApiResult<Duration> {
        let seconds = self
            .timeout_seconds
            .unwrap_or(default_seconds)
            .min(max_seconds);
        Duration::try_from_secs_f64(seconds)
            .map_err(|_error| ApiError::bad_request("timeout_seconds must not be negative"))
    }

    /// 400 unless there is a status and each of them is one that can be.
    pub(super) fn check(&self, is_status: impl Fn(&str) -> bool) -> ApiResult<()> {
        if self.statuses.is_empty() {
            return Err(ApiError::bad_request(
                "statuses must name at least one status",
            ));
        }
        match self.statuses.iter().find(|status| !is_status(status)) {
            Some(status) => Err(ApiError::bad_request(format!("invalid status {status}"))),
            None => Ok(()),
        }
    }
}

/// Answers with what `seen` makes of the watched value, as soon as it makes
/// something of it; 408 when `hold` has passed.
pub(super) async fn until<T, R>(
    changes: watch::Receiver<T>,
    hold: Duration,
    seen: impl FnMut() -> Option<R>,
) -> ApiResult<R> {
    until_with(changes, hold, seen, || None).await
}

/// The same, for something that also changes by itself at a time that
/// `next_change` tells.
pub(super) async fn until_with<T, R>(
    mut changes: watch::Receiver<T>,
    hold: Duration,
    mut seen: impl FnMut() -> Option<R>,
    next_change: impl Fn() -> Option<Instant>,
) -> ApiResult<R> {
    let deadline = Instant::now() + hold;
    loop {
        changes.mark_unchanged();
        if let Some(result) = seen() {
            return Ok(result);
        }
        if Instant::now() >= deadline {
            return Err(ApiError::hold_expired());
        }
        let wake = next_change().map_or(deadline, |change| change.min(deadline));
        tokio::select! {
            // The thing that is watched outlives the request that holds it.
            _changed = changes.changed() => {}
            () = tokio::time::sleep_until(wake) => {}
        }
    }
}
