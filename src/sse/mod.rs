//! Server-sent events to text at an offset.
//!
//! Owns the event-stream grammar ([`EventParser`]), the payload of Runloop's
//! output streams, and the bookkeeping that lets a stream be reopened with
//! nothing missing and nothing twice. Pure: bytes in, text out; no HTTP, no
//! clock, no task. Start reading at [`OutputDecoder`].

mod chunk;
mod json_text;
mod parser;
mod resume;
mod span;
mod stream;
#[cfg(test)]
mod tests;

pub use chunk::ServiceError;
pub use parser::{Event, EventParser, Limits, ParseError};
pub use resume::{Doubt, OffsetMode};
pub use stream::{OutputDecoder, StreamError};
