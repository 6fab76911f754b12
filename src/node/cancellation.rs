//! How the caller's signal reaches a call.

use napi_derive::napi;
use tokio_util::sync::CancellationToken;

use crate::adapter::Call;

/// Stops every call that was started with it. The loader makes one for each
/// `AbortSignal` in use, so that the signal carries one listener.
#[napi]
pub struct Cancellation(CancellationToken);

#[napi]
impl Cancellation {
    /// Not cancelled yet.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self(CancellationToken::new())
    }

    /// Asks each call to stop. The call decides how it ends: it may still send
    /// one kill, or finish if it was done already.
    #[napi(catch_unwind)]
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// The options of a call that was given this cancellation, or none.
pub(super) fn call(cancellation: Option<&Cancellation>) -> Call {
    cancellation.map_or_else(Call::default, |each| Call::cancelled_by(each.0.clone()))
}
