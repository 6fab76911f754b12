//! The simulator through real HTTP, one file a resource or a kind of fault.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests say what they expect by panicking"
)]

mod awaited_create;
mod blueprints;
mod connections;
mod devboxes;
mod executions;
mod faults_any;
mod faults_box;
mod faults_http2;
mod faults_list;
mod faults_stream;
mod files;
mod first_light;
mod journal;
mod lifecycle;
mod limits;
mod load;
mod plain;
mod policies;
mod secrets_and_tunnels;
mod snapshots;
mod state;
mod streams;
mod support;
mod terminals;
mod tunnels;
mod web_pages;
