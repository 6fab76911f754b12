//! Panics become errors that name a place in the code and nothing else.
//!
//! A panic's message may hold what the code was working on, so it is neither
//! printed nor passed on: the hook keeps the location and drops the rest.

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, set_hook};
use std::sync::Once;

use futures::FutureExt;

use crate::error::{Error, Result};

thread_local! {
    /// Where this thread panicked last, until someone asks.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Replaces the hook that prints a panic's message. The hook is this addon's
/// own, since the standard library is linked into it: nobody else's changes.
pub(super) fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_hook(Box::new(|info| {
            let place = info.location().map(shown);
            // A panic while the thread-local is being destroyed has no listener.
            let _ = PLACE.try_with(|cell| *cell.borrow_mut() = place);
        }));
    });
}

/// Runs synchronous code; a panic is `INTERNAL`.
pub(super) fn caught<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    // Unwind safety: what `run` could leave half-changed is dropped with the
    // call, or is behind a lock or cell whose holder does not panic.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(fault()))
}

/// Runs a future; a panic in any of its polls, or while it is dropped, is `INTERNAL`.
pub(super) async fn caught_async<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(future)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(fault()))
}

/// The error for a panic that was just caught on this thread.
fn fault() -> Error {
    let place = PLACE
        .try_with(|cell| cell.borrow_mut().take())
        .ok()
        .flatten();
    let place = place.map_or_else(String::new, |place| format!(" at {place}"));
    Error::internal(format!(
        "the adapter failed{place}; this is a fault of the adapter, please report it"
    ))
}

/// `crate/src/file.rs:line`: a path as compiled names the builder's machine.
fn shown(location: &Location<'_>) -> String {
    let parts: Vec<&str> = location.file().split(['/', '\\']).collect();
    let from = parts
        .iter()
        .rposition(|part| *part == "src")
        .unwrap_or(parts.len());
    let tail = parts
        .get(from.saturating_sub(1)..)
        .unwrap_or_default()
        .join("/");
    format!("{tail}:{}", location.line())
}
