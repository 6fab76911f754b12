//! Making the service worse than it is, on demand.
//!
//! A rule is data: which requests it is for and one action. All rules that
//! match a request act on it, in the order they were posted. `rule.rs` is the
//! vocabulary, `store.rs` counts, `layer.rs` carries out what concerns any
//! request; actions that change what a route means are read by that route from
//! [`Hits`].

mod cut;
mod layer;
mod list;
mod reply;
mod rule;
pub(crate) mod sse;
mod store;

pub(crate) use layer::apply;
pub(crate) use rule::Rule;
pub(crate) use store::{Faulted, Faults};
