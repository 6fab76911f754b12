//! Journeys of a connection through a simulated service with real processes.
//!
//! What a verb does with one odd answer is shown beside the verb; here is what
//! only several requests, a clock and a journal can show. Start at `harness.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a journey that cannot go on has to fail"
)]

mod faults;
mod harness;
mod lifecycle;
mod lists;
mod network;
mod snapshots;
