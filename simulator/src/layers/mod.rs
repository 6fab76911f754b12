//! What every API request passes through, outermost first: the journal, the
//! faults, the key. Routes see none of it. `/_simulator` passes through none.

mod authenticate;
mod record;

pub(crate) use authenticate::{Caller, authenticate};
pub(crate) use record::{Unexpected, record};
