//! The simulator through real HTTP, one file a resource or a kind of fault.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests say what they expect by panicking"
)]

mod awaited_create;
mod faults_any;
mod first_light;
mod journal;
mod support;
