//! Identifiers in the shape the service uses: a prefix and 21 base-62
//! characters (seen on live boxes, snapshots and blueprints; inferred for the
//! rest). Executions carry a UUIDv7.

use uuid::Uuid;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LENGTH: usize = 21;

/// `prefix` + `_` + 21 random base-62 characters.
pub(crate) fn fresh(prefix: &str) -> String {
    format!("{prefix}_{}", token(LENGTH))
}

/// `length` random base-62 characters.
pub(crate) fn token(length: usize) -> String {
    let mut text = String::with_capacity(length);
    while text.len() < length {
        for byte in Uuid::new_v4().into_bytes() {
            // 248 = 4 * 62: bytes above it would favour the first characters.
            if byte < 248
                && text.len() < length
                && let Some(&character) = ALPHABET.get(usize::from(byte) % ALPHABET.len())
            {
                text.push(char::from(character));
            }
        }
    }
    text
}

/// A fresh execution id.
pub(crate) fn execution() -> String {
    Uuid::now_v7().to_string()
}
