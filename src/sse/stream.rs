//! One output stream from the bytes of its connections to text.
//!
//! Puts the parser, the chunk and the bookkeeping together. Does no I/O: the
//! caller opens a connection at [`OutputDecoder::reopen`]'s offset, feeds what
//! comes, and decides when to reopen and when the stream is over.

use super::chunk::{NotAChunk, ServiceError, decode_chunk, decode_error};
use super::parser::{EventParser, Limits, ParseError};
use super::resume::{Doubt, OffsetMode, Resume};

/// Why a connection cannot be read on. What came before it was delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// It passes a limit. A new connection would too.
    #[error(transparent)]
    Limit(#[from] ParseError),
    /// An event holds no chunk. Says nothing of its content.
    #[error("an event of the output stream is not a chunk of output")]
    NotAChunk,
    /// The service ended it with an error event. The message is the service's
    /// own and not shown here.
    #[error("the service ended the output stream with an error")]
    Service(ServiceError),
}

impl From<NotAChunk> for StreamError {
    fn from(_: NotAChunk) -> Self {
        Self::NotAChunk
    }
}

/// Decodes one of a process's two output streams, over any number of connections.
///
/// Holds at most one line, one event and one chunk of text.
#[derive(Debug)]
pub struct OutputDecoder {
    parser: EventParser,
    resume: Resume,
    limits: Limits,
    chunks: u64,
}

impl OutputDecoder {
    /// A decoder of the output from byte `offset` on, as the service counts. It
    /// is ready for a first connection opened there. `hint` is the reading of
    /// offsets found on another stream; needed only where `offset` is not 0 and
    /// the service answers from elsewhere.
    #[must_use]
    pub fn new(offset: u64, hint: Option<OffsetMode>, limits: Limits) -> Self {
        Self {
            parser: EventParser::new(limits),
            resume: Resume::new(offset, hint),
            limits,
            chunks: 0,
        }
    }

    /// Reads more of the current connection and appends the text that is new to
    /// `out`, never ending inside a character.
    ///
    /// # Errors
    ///
    /// The connection is of no more use; `out` has what came before.
    pub fn feed(&mut self, mut input: &[u8], out: &mut String) -> Result<(), StreamError> {
        let result = self.events(&mut input, out);
        self.resume.remember(out);
        result
    }

    fn events(&mut self, input: &mut &[u8], out: &mut String) -> Result<(), StreamError> {
        while let Some(event) = self.parser.next(input)? {
            if event.name == "error" {
                return Err(StreamError::Service(decode_error(&event.data)));
            }
            let start = out.len();
            match decode_chunk(&event.data, out) {
                Ok(chunk) => {
                    self.chunks += 1;
                    self.resume.accept(chunk, start, out);
                }
                // The service may send events of names that are not known yet.
                Err(NotAChunk) if event.name != "message" => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Forgets the connection, half an event included, and returns the offset
    /// at which to open the next one.
    pub fn reopen(&mut self) -> u64 {
        self.parser = EventParser::new(self.limits);
        self.resume.reopen()
    }

    /// Ends the stream: appends U+FFFD where half a character waited for the rest.
    pub fn finish(&mut self, out: &mut String) {
        self.resume.finish(out);
    }

    /// The offset from which another reader gets what follows the text
    /// delivered so far. Where the service's count of it cannot be told (its
    /// offsets mark starts and the last chunk has replaced characters), that
    /// reader gets the last chunk again.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.resume.position()
    }

    /// Why the text delivered so far cannot be called complete; the first reason.
    #[must_use]
    pub fn doubt(&self) -> Option<Doubt> {
        self.resume.doubt()
    }

    /// What the service's offsets mark, once a chunk told it.
    #[must_use]
    pub fn mode(&self) -> Option<OffsetMode> {
        self.resume.mode()
    }

    /// Chunks received on all connections, those sent again included.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.chunks
    }
}
