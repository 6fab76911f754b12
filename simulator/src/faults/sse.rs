//! How an event stream looks on the wire, and how a rule spoils it.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};

use super::cut::{End, cut_after};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: Option<&'static str>,
    /// One line of JSON.
    pub(crate) data: String,
}

/// The ends of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Newline {
    #[default]
    Lf,
    Crlf,
    Cr,
}

/// What is missing at the end of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BadEnd {
    /// The blank line after the last event.
    NoBlankLine,
    /// That and the last line's own end.
    NoNewline,
    /// The second half of the last event.
    HalfEvent,
}

/// How one space follows `data:`, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DataStyle {
    /// `data: {…}`
    #[default]
    Space,
    /// `data:{…}`
    NoSpace,
    /// One `data:` line for each line of the indented JSON.
    ManyLines,
}

/// An error event instead of the rest.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorEvent {
    /// Any JSON: the service sends a string, clients parse it as a number.
    pub(crate) code: serde_json::Value,
    #[serde(default)]
    pub(crate) message: String,
    /// Events to let through first.
    #[serde(default)]
    pub(crate) after_events: usize,
}

/// Output that comes after the execution is already completed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LateTail {
    /// How much of the end is late.
    pub(crate) bytes: u64,
    /// How long after the completion it comes.
    pub(crate) milliseconds: u64,
}

/// Everything that can be wrong with a stream; each field by itself or with
/// others.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SseFault {
    /// Bytes sent at once; 1 sends every byte by itself.
    pub(crate) chunk_bytes: Option<usize>,
    pub(crate) newline: Newline,
    /// A byte-order mark comes first.
    pub(crate) bom: bool,
    /// A comment of this text comes before every event.
    pub(crate) comment: Option<String>,
    pub(crate) data: DataStyle,
    /// The stream ends when so many bytes of it are sent.
    pub(crate) cut_at_byte: Option<usize>,
    /// Such a cut is an orderly end of the response, not a broken connection.
    pub(crate) cut_clean: bool,
    /// The replay begins so many bytes before the offset that was asked for.
    pub(crate) overlap_bytes: u64,
    /// Only the newest bytes can be replayed; older ones are lost.
    pub(crate) window_bytes: Option<u64>,
    pub(crate) bad_end: Option<BadEnd>,
    pub(crate) late_tail: Option<LateTail>,
    pub(crate) error: Option<ErrorEvent>,
}

/// The body of an event stream.
pub(crate) fn body(
    events: impl Stream<Item = Event> + Send + 'static,
    fault: Option<SseFault>,
) -> Body {
    match fault {
        None => Body::from_stream(
            events.map(|event| Ok::<_, Infallible>(frame(&event, &SseFault::default()))),
        ),
        Some(fault) => spoiled(events, fault),
    }
}

fn spoiled(events: impl Stream<Item = Event> + Send + 'static, fault: SseFault) -> Body {
    let limit = fault
        .error
        .as_ref()
        .map_or(usize::MAX, |error| error.after_events);
    let last = fault.error.as_ref().map(|error| Event {
        name: Some("error"),
        data: serde_json::json!({ "code": error.code, "message": error.message }).to_string(),
    });
    let events = events.take(limit).chain(stream::iter(last));
    let framing = fault.clone();
    let frames = with_bad_end(
        events.map(move |event| frame(&event, &framing)),
        fault.bad_end,
    );
    let bom = fault.bom.then(|| Bytes::from_static(b"\xef\xbb\xbf"));
    let pieces = in_pieces(stream::iter(bom).chain(frames), fault.chunk_bytes);
    let end = if fault.cut_clean {
        End::Clean
    } else {
        End::Broken
    };
    match fault.cut_at_byte {
        None => Body::from_stream(pieces.map(Ok::<_, Infallible>)),
        Some(limit) => Body::from_stream(cut_after(pieces, limit, end)),
    }
}

fn frame(event: &Event, fault: &SseFault) -> Bytes {
    let newline = match fault.newline {
        Newline::Lf => "\n",
        Newline::Crlf => "\r\n",
        Newline::Cr => "\r",
    };
    let mut text = String::with_capacity(event.data.len() + 32);
    let mut line = |parts: &[&str]| {
        parts.iter().for_each(|part| text.push_str(part));
        text.push_str(newline);
    };
    if let Some(comment) = &fault.comment {
        line(&[":", comment]);
    }
    if let Some(name) = event.name {
        line(&["event: ", name]);
    }
    match fault.data {
        DataStyle::Space => line(&["data: ", &event.data]),
        DataStyle::NoSpace => line(&["data:", &event.data]),
        DataStyle::ManyLines => {
            let indented = serde_json::from_str::<serde_json::Value>(&event.data)
                .and_then(|value| serde_json::to_string_pretty(&value))
                .unwrap_or_else(|_error| event.data.clone());
            indented.lines().for_each(|part| line(&["data: ", part]));
        }
    }
    line(&[]);
    Bytes::from(text)
}

/// Takes the end off the last frame. Each frame waits for the next one, since
/// only the last is treated differently.
fn with_bad_end(
    frames: impl Stream<Item = Bytes> + Send + 'static,
    end: Option<BadEnd>,
) -> stream::BoxStream<'static, Bytes> {
    let Some(end) = end else {
        return frames.boxed();
    };
    let marked = frames.map(Some).chain(stream::iter([None]));
    marked
        .scan(None::<Bytes>, move |held, frame| {
            let told = match frame {
                Some(frame) => held.replace(frame),
                None => held.take().map(|last| without_end(&last, end)),
            };
            futures::future::ready(Some(told))
        })
        .filter_map(futures::future::ready)
        .boxed()
}

fn without_end(frame: &Bytes, end: BadEnd) -> Bytes {
    // CRLF, CR and LF all end with one or two bytes, twice.
    let line_end = if frame.ends_with(b"\r\n") { 2 } else { 1 };
    let kept = match end {
        BadEnd::NoBlankLine => frame.len().saturating_sub(line_end),
        BadEnd::NoNewline => frame.len().saturating_sub(2 * line_end),
        BadEnd::HalfEvent => frame.len() / 2,
    };
    frame.slice(..kept)
}

/// Pieces of at most `size` bytes; a pause between two makes each a write of
/// its own.
fn in_pieces(
    bytes: impl Stream<Item = Bytes> + Send + 'static,
    size: Option<usize>,
) -> stream::BoxStream<'static, Bytes> {
    let Some(size) = size.map(|size| size.max(1)) else {
        return bytes.boxed();
    };
    let pieces = bytes.flat_map(move |bytes| {
        let starts = (0..bytes.len()).step_by(size);
        stream::iter(starts.map(move |start| bytes.slice(start..bytes.len().min(start + size))))
    });
    pieces
        .then(|piece| async {
            tokio::task::yield_now().await;
            piece
        })
        .boxed()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn sent(fault: SseFault) -> String {
        let events = ["{\"n\":1}", "{\"n\":2}"].map(|data| Event {
            name: None,
            data: data.into(),
        });
        let mut body = body(stream::iter(events), Some(fault));
        let mut all = Vec::new();
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => all.extend_from_slice(&frame.into_data().unwrap()),
                Err(_) => all.extend_from_slice(b"<broken>"),
            }
        }
        String::from_utf8(all).unwrap()
    }

    #[tokio::test]
    async fn frames_are_as_the_rule_says() {
        let plain = "data: {\"n\":1}\n\ndata: {\"n\":2}\n\n";
        assert_eq!(sent(SseFault::default()).await, plain);
        let one = SseFault {
            chunk_bytes: Some(1),
            ..Default::default()
        };
        assert_eq!(sent(one).await, plain);
        let strange = SseFault {
            newline: Newline::Crlf,
            bom: true,
            comment: Some("hi".into()),
            data: DataStyle::NoSpace,
            ..Default::default()
        };
        assert_eq!(
            sent(strange).await,
            "\u{feff}:hi\r\ndata:{\"n\":1}\r\n\r\n:hi\r\ndata:{\"n\":2}\r\n\r\n"
        );
        let lines = SseFault {
            data: DataStyle::ManyLines,
            ..Default::default()
        };
        assert!(
            sent(lines)
                .await
                .starts_with("data: {\ndata:   \"n\": 1\ndata: }\n\n")
        );
    }

    #[tokio::test]
    async fn the_end_is_spoiled_as_the_rule_says() {
        let end = |bad_end| SseFault {
            bad_end: Some(bad_end),
            ..Default::default()
        };
        assert!(
            sent(end(BadEnd::NoBlankLine))
                .await
                .ends_with("data: {\"n\":2}\n")
        );
        assert!(
            sent(end(BadEnd::NoNewline))
                .await
                .ends_with("data: {\"n\":2}")
        );
        assert!(sent(end(BadEnd::HalfEvent)).await.ends_with("data: {"));
        let cut = SseFault {
            cut_at_byte: Some(17),
            ..Default::default()
        };
        assert_eq!(sent(cut).await, "data: {\"n\":1}\n\nda<broken>");
        let clean = SseFault {
            cut_at_byte: Some(17),
            cut_clean: true,
            ..Default::default()
        };
        assert_eq!(sent(clean).await, "data: {\"n\":1}\n\nda");
    }

    #[tokio::test]
    async fn an_error_event_replaces_the_rest() {
        let error = ErrorEvent {
            code: 408.into(),
            message: "m".into(),
            after_events: 1,
        };
        let fault = SseFault {
            error: Some(error),
            ..Default::default()
        };
        assert_eq!(
            sent(fault).await,
            "data: {\"n\":1}\n\nevent: error\ndata: {\"code\":408,\"message\":\"m\"}\n\n"
        );
    }
}
