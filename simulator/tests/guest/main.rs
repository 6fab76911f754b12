//! Devboxes of real processes, with and without namespaces.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests say what they expect by panicking"
)]

mod commands;
mod files;
mod images;
mod leftovers;
mod lifecycle;
mod load;
mod network;
mod privacy;
mod shells;
mod snapshots;
mod support;
mod terminals;
mod traces;
