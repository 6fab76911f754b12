//! What every API request passes through, outermost first: the journal, the
//! faults, the limit, the key, the replay of repeats. Routes see none of it.
//! `/_simulator` passes through none of these; web pages are kept off both.

mod authenticate;
mod limit;
mod origin;
mod record;
mod replay;

pub(crate) use authenticate::{Caller, authenticate};
pub(crate) use limit::{InFlight, limit};
pub(crate) use origin::own_pages_only;
pub(crate) use record::{Unexpected, record};
pub(crate) use replay::{Replays, replay};
