//! A stream of output: events rendered into buffers of some size.
//!
//! The text of an event is a copy out of the payload's escaped buffer, and
//! only its offset is written number by number, so that no finished stream has
//! to be kept.

use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep_until};

use super::payload;

/// One buffer. Larger ones gain nothing, and a larger allocation is mapped and
/// unmapped by the system each time.
const BUFFER_BYTES: usize = 64 * 1024;

/// Resolves when the command has ended.
pub(super) type Ended = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The rest of one stream.
pub(super) struct Events {
    at: u64,
    end: u64,
    event_bytes: u64,
    pace: Option<Pace>,
    ended: Option<Ended>,
}

struct Pace {
    bytes_per_second: u64,
    sleep: Pin<Box<Sleep>>,
    started: Instant,
    sent: u64,
}

impl Events {
    /// From `at` up to `end` in events of `event_bytes`, then open until `ended`.
    pub(super) fn new(at: u64, end: u64, event_bytes: u64, ended: Option<Ended>) -> Self {
        Self {
            at,
            end,
            event_bytes,
            pace: None,
            ended,
        }
    }

    /// No faster than this; 0 is no limit.
    pub(super) fn paced(mut self, bytes_per_second: u64) -> Self {
        let started = Instant::now();
        self.pace = (bytes_per_second > 0).then(|| Pace {
            bytes_per_second,
            sleep: Box::pin(sleep_until(started)),
            started,
            sent: 0,
        });
        self
    }

    /// The next buffer of whole events; `None` is the end.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.at >= self.end {
            if let Some(ended) = &mut self.ended {
                ready!(ended.as_mut().poll(context));
                self.ended = None;
            }
            return Poll::Ready(None);
        }
        if let Some(pace) = &mut self.pace {
            ready!(pace.sleep.as_mut().poll(context));
        }
        let from = self.at;
        let buffer = self.render();
        if let Some(pace) = &mut self.pace {
            pace.sent += self.at - from;
            pace.rest();
        }
        Poll::Ready(Some(buffer))
    }

    fn render(&mut self) -> Bytes {
        let event = usize::try_from(self.event_bytes).unwrap_or(usize::MAX);
        let mut text = String::with_capacity(BUFFER_BYTES.max(event.saturating_mul(2)) + 64);
        loop {
            let to = self.end.min(self.at + self.event_bytes);
            text.push_str("data: {\"output\":\"");
            payload::push_escaped(&mut text, self.at, to);
            // An offset is where a chunk ends. Writing to a string cannot fail.
            write!(text, "\",\"offset\":{to}}}\n\n").unwrap_or_default();
            let event_len = text.len();
            self.at = to;
            if to == self.end || event_len + event.saturating_mul(2) > BUFFER_BYTES {
                return text.into();
            }
        }
    }
}

impl Pace {
    fn rest(&mut self) {
        let due = self.sent as f64 / self.bytes_per_second as f64;
        let until = self.started + Duration::from_secs_f64(due);
        self.sleep.as_mut().reset(until);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use serde_json::Value;

    use super::*;

    fn events(at: u64, end: u64, event_bytes: u64) -> Vec<(String, u64)> {
        let mut events = Events::new(at, end, event_bytes, None);
        let mut text = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(buffer)) = events.poll_next(&mut context) {
            text.extend_from_slice(&buffer);
        }
        String::from_utf8(text)
            .unwrap()
            .split_terminator("\n\n")
            .map(|event| {
                let data: Value =
                    serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
                (
                    data["output"].as_str().unwrap().to_owned(),
                    data["offset"].as_u64().unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn a_stream_is_the_output_once_with_the_offsets_of_its_ends() {
        for (at, end, size) in [
            (0, 10, 3),
            (4, 10, 3),
            (0, 300_000, 1024),
            (0, 700_000, 300_000),
        ] {
            let mut next = at;
            for (text, offset) in events(at, end, size) {
                assert!(payload::is_plain(next, text.as_bytes()));
                next += text.len() as u64;
                assert_eq!(offset, next);
                assert!(text.len() as u64 <= size);
            }
            assert_eq!(next, end);
        }
        assert!(events(5, 5, 3).is_empty());
    }
}
