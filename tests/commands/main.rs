//! Commands and files through the whole adapter, on real guests of the simulator.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of a test say what they expect by panicking, as the tests do"
)]

mod files;
mod harness;
mod lost;
mod results;
mod soak;
mod stopping;
