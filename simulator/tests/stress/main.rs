//! The simulator's binary under load, and what is left when it has ended.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests say what they expect by panicking, and what they measured"
)]

mod client;
mod enclosure;
mod instance;
mod leaks;
mod load;
mod witness;
