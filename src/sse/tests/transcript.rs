//! One transcript with everything in it, cut at every byte.

use crate::sse::{Limits, OffsetMode, OutputDecoder, ServiceError, StreamError};

/// Comments, all three line ends, a byte-order mark, several data lines, an
/// unknown event and field, both kinds of characters above U+FFFF, an escaped
/// pair over two chunks, a number as a string.
const EVENTS: &[(&str, &str)] = &[
    ("\u{FEFF}: hello\n\n", ""),
    (
        "data: {\"output\":\"first\\n\",\"offset\":@}\n\n",
        "first\n",
    ),
    (
        "event: message\r\ndata: {\"output\":\"é\u{FEFF}日\",\r\ndata: \"offset\":\"@\"}\r\n\r\n",
        "é\u{FEFF}日",
    ),
    (
        ": alive\r\rdata: {\"offset\":@,\"output\":\"😀 \\u001b[0m\"}\r\r",
        "😀 \u{1b}[0m",
    ),
    ("id: 7\nfoo: bar\nevent: stats\ndata: 12%\n\n", ""),
    (
        "retry: 10\ndata:{\"output\":\"\",\"offset\":@,\"x\":{\"y\":[]}}\n\n",
        "",
    ),
    (
        "data: {\"output\":\"last\\\\\",\"offset\":@}\r\n\r\n",
        "last\\",
    ),
];

/// The transcript from a cursor on, and all of its text.
fn transcript(mode: OffsetMode, from: u64) -> (Vec<u8>, String) {
    let (mut bytes, mut text) = (Vec::new(), String::new());
    for (event, output) in EVENTS {
        let before = text.len() as u64;
        text.push_str(output);
        let offset = if mode == OffsetMode::Start {
            before
        } else {
            text.len() as u64
        };
        let is_sent = if mode == OffsetMode::Start {
            before >= from
        } else {
            offset > from || from == 0
        };
        if is_sent {
            bytes.extend_from_slice(event.replace('@', &offset.to_string()).as_bytes());
        }
    }
    (bytes, text)
}

#[test]
fn r21_d4_d5_a_transcript_cut_at_every_byte_gives_every_character_once() {
    for mode in [OffsetMode::Start, OffsetMode::End] {
        let (bytes, expected) = transcript(mode, 0);
        for cut in 0..=bytes.len() {
            // Cut between two reads of one connection, and between connections.
            let mut decoder = OutputDecoder::new(0, None, Limits::default());
            let mut text = String::new();
            decoder.feed(&bytes[..cut], &mut text).unwrap();
            decoder.feed(&bytes[cut..], &mut text).unwrap();
            decoder.finish(&mut text);
            assert_eq!(
                (&text, decoder.doubt()),
                (&expected, None),
                "{mode:?} read up to {cut}"
            );

            for reads in [1, 3, 1000] {
                let mut decoder = OutputDecoder::new(0, None, Limits::default());
                let mut text = String::new();
                for piece in bytes[..cut].chunks(reads) {
                    decoder.feed(piece, &mut text).unwrap();
                }
                let (rest, _) = transcript(mode, decoder.reopen());
                for piece in rest.chunks(reads) {
                    decoder.feed(piece, &mut text).unwrap();
                }
                decoder.finish(&mut text);
                assert_eq!(
                    (&text, decoder.doubt()),
                    (&expected, None),
                    "{mode:?} lost at {cut}"
                );
            }
        }
    }
}

#[test]
fn an_error_event_ends_the_connection_and_keeps_what_came_before() {
    let mut decoder = OutputDecoder::new(0, None, Limits::default());
    let mut text = String::new();
    let bytes = b"data: {\"output\":\"ab\",\"offset\":2}\n\n\
        event: error\ndata: {\"code\":\"408\",\"message\":\"idle\"}\n\n";
    assert_eq!(
        decoder.feed(bytes, &mut text),
        Err(StreamError::Service(ServiceError {
            code: Some(408),
            message: "idle".into()
        }))
    );
    assert_eq!(text, "ab");
    assert_eq!(decoder.reopen(), 2);
}

#[test]
fn an_event_that_is_no_chunk_is_an_error_that_shows_nothing_of_it() {
    let mut decoder = OutputDecoder::new(0, None, Limits::default());
    let error = decoder
        .feed(b"data: {\"secret\n\n", &mut String::new())
        .unwrap_err();
    assert_eq!(error, StreamError::NotAChunk);
    assert!(!format!("{error} {error:?}").contains("secret"));
}

#[test]
fn a_decoder_shows_nothing_of_what_it_holds() {
    let mut decoder = OutputDecoder::new(0, None, Limits::default());
    let bytes = b"data: {\"output\":\"secret\",\"offset\":0}\n\ndata: secret\ndata: sec";
    decoder.feed(bytes, &mut String::new()).unwrap();
    let shown = format!("{decoder:?}");
    assert!(shown.contains("Start") && !shown.contains("sec"), "{shown}");
    assert!(!shown.contains(&format!("{:?}", b"sec")), "{shown}");
}

#[test]
fn an_event_past_the_limit_is_a_typed_error() {
    let limits = Limits {
        max_line_bytes: 100,
        max_event_bytes: 100,
    };
    let mut decoder = OutputDecoder::new(0, None, limits);
    let error = decoder.feed(&[b'x'; 101], &mut String::new()).unwrap_err();
    assert!(matches!(error, StreamError::Limit(_)), "{error:?}");
}
