//! The one tokio runtime, for every environment and every connection.
//!
//! Started by the first call, not by loading the addon, and never stopped: the
//! addon stays mapped once it is loaded (`-z nodelete`, or the equivalent on
//! other systems), so a thread that outlives a worker's environment, for
//! example in a slow name lookup, never runs unmapped code. An idle runtime
//! is a parked thread, which does not keep the process alive.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Error, Result};

/// The thread that does the adapter's work; name lookups block others.
///
/// More cost more than they bring: a body is handed on piece by piece by the
/// task of its connection, and where that wakes another thread for each, a
/// stream costs a quarter more (`docs/design/streams.md`). One reads output at
/// about 1 GB/s, more than JavaScript takes.
const WORKERS: usize = 1;

static RUNTIME: OnceLock<std::result::Result<Runtime, String>> = OnceLock::new();

/// The runtime, started if it is not running yet.
///
/// # Errors
/// `INTERNAL` when the system refuses threads, for example at a process limit.
pub(super) fn handle() -> Result<&'static Handle> {
    match RUNTIME.get_or_init(start) {
        Ok(runtime) => Ok(runtime.handle()),
        Err(reason) => Err(Error::internal(format!(
            "no thread could be started: {reason}"
        ))),
    }
}

fn start() -> std::result::Result<Runtime, String> {
    Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("beachside-runloop")
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
}
