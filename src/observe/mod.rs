//! What a call tells of itself while it runs, to whoever asked.
//!
//! Tells nobody by default, and then costs a look at a `None`. Nothing that is
//! told may hold a key, a body or a value of the caller's. Start reading at
//! [`Progress`] (one call) and [`Observer`] (a connection).

mod events;
mod progress;
mod route;
mod trace;

pub use events::{Event, Observer, RequestDetails};
pub use progress::{Counter, Phase, Progress, Transfer};
pub use trace::{Span, Trace, now_ms};
