//! The half of the room that runs in processes of its own.
//!
//! A keeper must be a fresh single-threaded process that needs no other file than the
//! executable that is running: a test binary, the `runloop-simulator` binary or any
//! program that links this library. So every such program carries an entry that runs
//! before `main`: when `argv[0]` is the helper's name, which only
//! [`super::machine`] gives, the process becomes a keeper and never reaches `main`.
//!
//! Everything here is synchronous and forks freely, because nothing here has threads.
//! Start reading at [`keeper::run`], then [`init::run`].

mod accounts;
mod devbox_root;
mod frames;
mod host;
mod init;
mod keeper;
mod launch;
mod leaders;
mod listing;
mod mountinfo;
mod netlink;
mod network;
mod open;
mod store;
mod surroundings;
mod sweep;
mod system;

use super::protocol::HELPER_NAME;

/// Runs before `main` in every executable that links this library.
#[used]
#[expect(
    unsafe_code,
    reason = "an entry before main is a pointer in a section of its own"
)]
#[unsafe(link_section = ".init_array")]
static ENTRY: extern "C" fn() = enter;

extern "C" fn enter() {
    // Not `std::env::args`: before `main` the standard library does not have them on
    // every C library. Without /proc there is no helper either.
    let Ok(command_line) = std::fs::read("/proc/self/cmdline") else {
        return;
    };
    if command_line.split(|&byte| byte == 0).next() == Some(HELPER_NAME.as_bytes()) {
        keeper::run();
    }
}
