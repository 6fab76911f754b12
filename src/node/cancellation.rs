//! How the caller's signal reaches a call.

use std::sync::Arc;

use napi_derive::napi;
use tokio_util::sync::CancellationToken;

use crate::adapter::Call;

/// Stops every call that was started with it. The loader makes one for each
/// `AbortSignal` in use, so that the signal carries one listener.
#[napi]
pub struct Cancellation {
    token: CancellationToken,
    operation_id: Option<Arc<str>>,
}

#[napi]
impl Cancellation {
    /// Not cancelled yet. `operation_id` names the caller's operation in traces.
    #[napi(constructor)]
    pub fn new(operation_id: Option<String>) -> Self {
        Self {
            token: CancellationToken::new(),
            operation_id: operation_id.map(Arc::from),
        }
    }

    /// The same cancellation, for the calls of one operation.
    #[napi(catch_unwind)]
    pub fn of(&self, operation_id: String) -> Self {
        Self {
            token: self.token.clone(),
            operation_id: Some(Arc::from(operation_id)),
        }
    }

    /// Asks each call to stop. The call decides how it ends: it may still send
    /// one kill, or finish if it was done already.
    #[napi(catch_unwind)]
    pub fn cancel(&self) {
        self.token.cancel();
    }
}

/// The options of a call that was given this cancellation, or none.
pub(super) fn call(cancellation: Option<&Cancellation>) -> Call {
    cancellation.map_or_else(Call::default, |each| {
        let call = Call::cancelled_by(each.token.clone());
        Call {
            operation_id: each.operation_id.clone(),
            ..call
        }
    })
}
