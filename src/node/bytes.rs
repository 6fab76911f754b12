//! Bytes on their way out: a plain `Uint8Array` over memory of ours, not a copy.

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::{JsValue, Uint8ArraySlice, Unknown};

/// Up to this size a copy costs as much as handing memory over, and needs no finalizer.
const COPY_MAX_BYTES: usize = 4096;

/// A `Uint8Array` of its own `ArrayBuffer`.
pub(super) fn uint8_array<'env>(env: &'env Env, bytes: Bytes) -> napi::Result<Unknown<'env>> {
    let array = if bytes.len() <= COPY_MAX_BYTES {
        Uint8ArraySlice::copy_from(env, &bytes)?
    } else {
        // No copy where these bytes are the only view of their memory.
        Uint8ArraySlice::from_data(env, Vec::from(bytes))?
    };
    Ok(array.to_unknown())
}
