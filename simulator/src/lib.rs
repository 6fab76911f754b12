//! A local Runloop API v1 with real processes behind it.
//!
//! [`Simulator::start`] gives one that lives as long as its value; the
//! `runloop-simulator` binary is a command line around it. Rooms: `server`
//! (sockets), `layers` (what every request passes), `routes` (the HTTP
//! surface), `state` (what the service remembers), `control` (`/_simulator`),
//! `page` (the same for people); `stub` stands for itself: canned answers for
//! benchmarks.
//! Nothing here knows the adapter that this project builds: the simulator is
//! shaped by the service's own clients.

mod control;
mod error;
mod faults;
pub mod guest;
mod journal;
mod layers;
mod page;
mod proxy;
mod routes;
mod server;
mod simulator;
mod state;
pub mod stub;

pub use server::{Certificate, TlsOptions};
pub use simulator::{Options, Simulator};
pub use state::choices::{
    ChunkOffset, CommandShell, EmptyOutput, LaunchFailure, LifetimeStart, ListOrder, NameMatch,
    OffsetUnit, OptimisticExpiry, PolicyEdits, StdinSupport, UnknownCursor, WriteFailure,
    ZeroTimeout,
};
pub use state::settings::Settings;
