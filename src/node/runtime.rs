//! The one tokio runtime, for every environment and every connection.
//!
//! Started by the first call, not by loading the addon, and never stopped: the
//! addon stays mapped once it is loaded (`-z nodelete`, or the equivalent on
//! other systems), so a thread that outlives a worker's environment, for
//! example in a slow name lookup, never runs unmapped code. An idle runtime
//! is a few parked threads; none of them keeps the process alive.

use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Error, Result};

/// More would not help: one connection's work is a few microseconds a request,
/// and JavaScript takes the results on one thread.
const MAX_WORKERS: usize = 4;

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
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    Builder::new_multi_thread()
        .worker_threads(cores.min(MAX_WORKERS))
        .thread_name("beachside-runloop")
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
}
