//! Bytes to events: the event-stream grammar of the WHATWG HTML standard.
//!
//! Owns line splitting, fields and dispatch, over input cut at any byte. Does
//! not know what an event means, nor how to reconnect. One parser reads one
//! response: a new connection takes a new parser, so that half an event cannot
//! survive into it. Start reading at [`EventParser::next`].

use std::borrow::Cow;
use std::{fmt, str};

use memchr::{memchr, memchr2};

/// Buffers above this size are given back after the event that needed them.
const KEEP_BUFFER_BYTES: usize = 64 * 1024;

const BOM: &[u8; 3] = b"\xef\xbb\xbf";

/// What one response may ask the parser to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest line, without its end. A longer one is [`ParseError::LineTooLong`].
    pub max_line_bytes: usize,
    /// Sum of an event's data, name and id. More is [`ParseError::EventTooLong`].
    pub max_event_bytes: usize,
}

impl Default for Limits {
    /// 16 MiB each: Runloop's largest chunk is not documented; a reply with one
    /// line of 10 MB is known to come back whole on a neighbouring route.
    fn default() -> Self {
        Self {
            max_line_bytes: 16 << 20,
            max_event_bytes: 16 << 20,
        }
    }
}

/// The response passes what the parser may hold. Nothing can be read after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A line of more than `max_bytes`.
    #[error("a line of the event stream is longer than {max_bytes} bytes")]
    LineTooLong {
        /// The limit.
        max_bytes: usize,
    },
    /// An event of more than `max_bytes`.
    #[error("an event of the event stream is longer than {max_bytes} bytes")]
    EventTooLong {
        /// The limit.
        max_bytes: usize,
    },
}

/// One dispatched event. Invalid UTF-8 has become U+FFFD, as the standard says.
#[derive(Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field; `message` where there was none or an empty one.
    pub name: Cow<'a, str>,
    /// The `data` lines, joined with a line feed.
    pub data: Cow<'a, str>,
}

/// Hides the data, which is a user's.
impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("name", &self.name)
            .field("data_bytes", &self.data.len())
            .finish()
    }
}

/// Incremental parser of one event-stream response.
///
/// Linear in the input however it is cut; holds at most one line and one event.
#[derive(Default)]
pub struct EventParser {
    limits: Limits,
    /// Bytes of the byte-order mark seen so far; 3 once the start is behind.
    bom_bytes: usize,
    /// The last byte was a CR that ended a line: a LF now belongs to it.
    after_cr: bool,
    /// Start of a line whose end has not come yet.
    line: Vec<u8>,
    /// Data of the event being read is `data[data_start..]`.
    data: Vec<u8>,
    data_start: usize,
    has_data: bool,
    name: Vec<u8>,
    id: Vec<u8>,
    last_event_id: Vec<u8>,
    retry_ms: Option<u64>,
    /// `name` and `data` were lent out with the last event.
    spent: bool,
}

/// Hides what it holds, which is a user's.
impl fmt::Debug for EventParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventParser")
            .field("limits", &self.limits)
            .field("line_bytes", &self.line.len())
            .field("data_bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}

impl EventParser {
    /// A parser at the start of a response.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// The last `id` that came with a dispatched block; empty when none did.
    #[must_use]
    pub fn last_event_id(&self) -> Cow<'_, str> {
        lossy(&self.last_event_id)
    }

    /// The last valid `retry` field, in milliseconds.
    #[must_use]
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Takes input up to the end of the next event and returns that event;
    /// `None` once the input is used up. An event that lies in one input with
    /// one `data` line is lent from it without a copy.
    ///
    /// An event whose closing blank line never comes is never returned.
    ///
    /// # Errors
    ///
    /// The response passes a limit; further calls return no event of use.
    pub fn next<'event, 'input: 'event>(
        &'event mut self,
        input: &mut &'input [u8],
    ) -> Result<Option<Event<'event>>, ParseError> {
        if self.spent {
            self.clear_event();
        }
        self.skip_bom(input);
        // The first data line, inside the caller's input until a copy is forced.
        let mut first: Option<&'input [u8]> = None;
        loop {
            self.skip_lf_after_cr(input);
            let rest: &'input [u8] = input;
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.keep_line(rest)?;
                *input = &[];
                if let Some(data) = first {
                    self.append_data(data)?;
                }
                return Ok(None);
            };
            let (head, tail) = rest.split_at(end);
            self.after_cr = tail.first() == Some(&b'\r');
            *input = tail.get(1..).unwrap_or_default();

            if !self.line.is_empty() {
                self.keep_line(head)?;
                self.held_line()?;
            } else if head.is_empty() {
                self.last_event_id.clone_from(&self.id);
                if let Some(data) = first {
                    self.check_event(data.len())?;
                }
                if first.is_some() || self.has_data {
                    return Ok(Some(self.lend(first)));
                }
                self.clear_event();
            } else {
                self.check_line(head.len())?;
                match field(head) {
                    (b"data", value) if first.is_none() && !self.has_data => first = Some(value),
                    (b"data", value) => {
                        if let Some(data) = first.take() {
                            self.append_data(data)?;
                        }
                        self.append_data(value)?;
                    }
                    (name, value) => self.other_field(name, value)?,
                }
            }
        }
    }

    /// A line that began in an earlier input is complete in `self.line`.
    fn held_line(&mut self) -> Result<(), ParseError> {
        let mut line = std::mem::take(&mut self.line);
        let (name, value) = field(&line);
        if name == b"data" && !self.has_data {
            self.check_event(value.len())?;
            // A large event usually is one line in many inputs: its buffer
            // becomes the event's, and the event's old one the next line's.
            self.data_start = line.len() - value.len();
            self.has_data = true;
            std::mem::swap(&mut self.data, &mut line);
        } else if name == b"data" {
            self.append_data(value)?;
        } else {
            self.other_field(name, value)?;
        }
        self.line = emptied(line);
        Ok(())
    }

    fn other_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), ParseError> {
        match name {
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
                self.check_event(0)
            }
            b"id" if memchr(0, value).is_none() => {
                self.id.clear();
                self.id.extend_from_slice(value);
                self.check_event(0)
            }
            b"retry" => {
                if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
                    let digits = str::from_utf8(value).unwrap_or_default();
                    self.retry_ms = digits.parse().ok().or(self.retry_ms);
                }
                Ok(())
            }
            // Comments have an empty name; other fields are not ours.
            _ => Ok(()),
        }
    }

    fn append_data(&mut self, value: &[u8]) -> Result<(), ParseError> {
        self.check_event(value.len() + 1)?;
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }

    /// Keeps the start of a line until the next input.
    fn keep_line(&mut self, part: &[u8]) -> Result<(), ParseError> {
        self.check_line(self.line.len() + part.len())?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn check_line(&self, bytes: usize) -> Result<(), ParseError> {
        let max_bytes = self.limits.max_line_bytes;
        if bytes > max_bytes {
            Err(ParseError::LineTooLong { max_bytes })
        } else {
            Ok(())
        }
    }

    fn check_event(&self, more: usize) -> Result<(), ParseError> {
        let max_bytes = self.limits.max_event_bytes;
        let held = self.data.len() - self.data_start + self.name.len() + self.id.len();
        if held + more > max_bytes {
            Err(ParseError::EventTooLong { max_bytes })
        } else {
            Ok(())
        }
    }

    /// Removes one byte-order mark at the very start, however it is cut.
    fn skip_bom(&mut self, input: &mut &[u8]) {
        while let Some(expected) = BOM.get(self.bom_bytes) {
            match input.first() {
                None => return,
                Some(byte) if byte == expected => {
                    self.bom_bytes += 1;
                    *input = input.get(1..).unwrap_or_default();
                }
                Some(_) => {
                    // What looked like a mark was the start of a line.
                    self.line
                        .extend_from_slice(BOM.get(..self.bom_bytes).unwrap_or_default());
                    self.bom_bytes = BOM.len();
                }
            }
        }
    }

    fn skip_lf_after_cr(&mut self, input: &mut &[u8]) {
        if self.after_cr
            && let Some((first, rest)) = input.split_first()
        {
            self.after_cr = false;
            if *first == b'\n' {
                *input = rest;
            }
        }
    }

    fn lend<'a>(&'a mut self, data: Option<&'a [u8]>) -> Event<'a> {
        self.spent = true;
        let data = data.unwrap_or_else(|| self.data.get(self.data_start..).unwrap_or_default());
        let name = if self.name.is_empty() {
            b"message"
        } else {
            self.name.as_slice()
        };
        Event {
            name: lossy(name),
            data: lossy(data),
        }
    }

    fn clear_event(&mut self) {
        self.spent = false;
        self.has_data = false;
        self.data_start = 0;
        self.data = emptied(std::mem::take(&mut self.data));
        self.name = emptied(std::mem::take(&mut self.name));
    }
}

/// The buffer for use again, unless an unusual event made it large.
fn emptied(mut buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > KEEP_BUFFER_BYTES {
        return Vec::new();
    }
    buffer.clear();
    buffer
}

/// Splits `name: value`; exactly one space after the colon is not the value's.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    // Nearly every line is this one.
    if let Some(value) = line.strip_prefix(b"data:") {
        return (b"data", value.strip_prefix(b" ").unwrap_or(value));
    }
    let Some(colon) = memchr(b':', line) else {
        return (line, b"");
    };
    let (name, value) = line.split_at(colon);
    let value = value.strip_prefix(b":").unwrap_or(value);
    (name, value.strip_prefix(b" ").unwrap_or(value))
}

/// Like `String::from_utf8_lossy`, with the fast check first.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}
