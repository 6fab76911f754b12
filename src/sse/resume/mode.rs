//! Which reading of offsets the service has, told from its first chunks.

use crate::sse::span::Span;

/// What a chunk's offset marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetMode {
    /// The first byte of the chunk.
    Start,
    /// The first byte after the chunk.
    End,
}

/// What a chunk tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    Mode(OffsetMode),
    /// Either fits; this one of a service that answers what it is asked.
    Probably(OffsetMode),
    /// Nothing yet: in either reading the chunk lies before what was asked for.
    Old,
}

/// Reads the chunks of a connection until the mode is told.
#[derive(Debug, Default)]
pub(super) struct ModeTeller {
    /// The reading of another stream of the same service.
    hint: Option<OffsetMode>,
    /// The offset and units of the connection's last chunk, which was old.
    before: Option<(u64, Span)>,
}

impl ModeTeller {
    pub(super) fn new(hint: Option<OffsetMode>) -> Self {
        Self { hint, before: None }
    }

    pub(super) fn reopen(&mut self) {
        self.before = None;
    }

    /// Looks at a chunk with text on a connection that was opened at `asked`.
    pub(super) fn tell(&mut self, asked: u64, offset: u64, text: &str, span: Span) -> Told {
        use OffsetMode::{End, Start};
        if offset == 0 {
            return Told::Mode(Start);
        }
        if asked == 0 {
            // No count gives less than one unit for a character: what is less
            // is a start, of a stream whose beginning is missing.
            let can_be_end = offset >= text.chars().count() as u64;
            return Told::Mode(if can_be_end { End } else { Start });
        }
        if let Some(mode) = self.hint {
            return Told::Mode(mode);
        }
        if offset > asked {
            return Told::Mode(End);
        }
        let (start_fits, end_fits) = match self.before {
            // The connection begins here: as an end, it was sent from 0.
            None => (true, offset != asked && span.contains(offset)),
            Some((before, units)) => {
                let step = offset.saturating_sub(before);
                (units.contains(step), span.contains(step))
            }
        };
        if offset < asked && offset + span.max <= asked {
            self.before = Some((offset, span));
            return Told::Old;
        }
        match (start_fits, end_fits) {
            (true, false) => Told::Mode(Start),
            (false, true) => Told::Mode(End),
            _ => Told::Probably(Start),
        }
    }
}
