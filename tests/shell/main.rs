//! Runs the scripts of the shell room on real shells: dash, bash and busybox ash.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test say what they expect by panicking, as the tests do"
)]

mod arguments;
mod failures;
mod file_faults;
mod file_harness;
mod files;
mod harness;
mod leftovers;
mod live;
mod output;
mod properties;
mod startup;
mod stdin;
