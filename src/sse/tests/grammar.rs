//! The event-stream grammar.

use proptest::prelude::*;

use crate::cases::cases;

use crate::sse::{EventParser, Limits, ParseError};

type Events = Vec<(String, String)>;

/// Parses `pieces` as they arrive.
fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Events, ParseError> {
    parse_with(&mut EventParser::new(Limits::default()), pieces)
}

fn parse_with<'a>(
    parser: &mut EventParser,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Events, ParseError> {
    let mut events = Vec::new();
    for mut piece in pieces {
        while let Some(event) = parser.next(&mut piece)? {
            events.push((event.name.into_owned(), event.data.into_owned()));
        }
    }
    Ok(events)
}

/// Every way to read the input that the tests care for gives these `data`s.
fn reads(input: &[u8], expected: &[&str]) {
    let data = |events: Events| events.into_iter().map(|(_, data)| data).collect::<Vec<_>>();
    for cut in 0..=input.len() {
        let (head, tail) = input.split_at(cut);
        assert_eq!(
            data(parse([head, tail]).unwrap()),
            expected,
            "{input:?} cut at {cut}"
        );
        assert_eq!(
            data(parse([head, &[], tail]).unwrap()),
            expected,
            "{input:?} cut at {cut}"
        );
    }
    assert_eq!(
        data(parse(input.chunks(1)).unwrap()),
        expected,
        "{input:?} byte by byte"
    );
}

/// The standard's algorithm over a whole stream, without a thought of speed.
fn plain_reading(input: &[u8]) -> Events {
    let text = String::from_utf8_lossy(input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input));
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    // What follows the last line end is not a line.
    lines.pop();
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), String::new());
    for line in lines {
        if line.is_empty() {
            if let Some(data) = data.strip_suffix('\n') {
                let name = if name.is_empty() { "message" } else { &name };
                events.push((name.to_owned(), data.to_owned()));
            }
            name.clear();
            data.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            _ => {}
        }
    }
    events
}

#[test]
fn d10_exactly_one_leading_space_is_removed_after_data() {
    reads(b"data:x\n\n", &["x"]);
    reads(b"data: x\n\n", &["x"]);
    reads(b"data:  x\n\n", &[" x"]);
    reads(b"data:\n\n", &[""]);
    reads(b"data\n\n", &[""]);
    reads(b"data: x  \n\n", &["x  "]);
    reads(b"data:\tx\n\n", &["\tx"]);
}

#[test]
fn d10_data_lines_are_joined_with_a_line_feed() {
    reads(b"data: a\ndata:b\ndata:  c\n\n", &["a\nb\n c"]);
    reads(b"data\ndata\n\n", &["\n"]);
    reads(b"data:\ndata:x\n\n", &["\nx"]);
    reads(b"data: a\n: comment\nid: 1\ndata: b\n\n", &["a\nb"]);
}

#[test]
fn line_feed_carriage_return_and_both_end_a_line() {
    for end in ["\n", "\r", "\r\n"] {
        let input = format!("data: a{end}data: b{end}{end}data: c{end}{end}{end}");
        reads(input.as_bytes(), &["a\nb", "c"]);
    }
    reads(b"data: a\r\ndata: b\r\r\ndata: c\n\r\n", &["a\nb", "c"]);
    // LF CR is two ends of lines, CR LF is one.
    reads(b"data: a\n\rdata: b\r\n\r\n", &["a", "b"]);
}

#[test]
fn d6_an_event_without_its_blank_line_is_never_dispatched() {
    for input in [
        &b"data: x"[..],
        b"data: x\n",
        b"data: x\r",
        b"data: x\r\n",
        b"data: {\"out",
    ] {
        reads(input, &[]);
    }
    reads(b"data: a\n\ndata: b\n", &["a"]);
}

#[test]
fn d6_a_blank_line_of_one_carriage_return_completes_the_event_at_once() {
    reads(b"data: x\n\r", &["x"]);
    reads(b"data: x\r\r", &["x"]);
}

#[test]
fn d8_one_byte_order_mark_at_the_start_is_skipped() {
    reads(b"\xef\xbb\xbfdata: first\n\n", &["first"]);
    reads(
        b"\xef\xbb\xbf\xef\xbb\xbfdata: first\n\ndata: second\n\n",
        &["second"],
    );
    reads(b"data: a\n\n\xef\xbb\xbfdata: b\n\n", &["a"]);
    reads(b"\xef\xbbdata: a\n\ndata: b\n\n", &["b"]);
    reads(b"\xef\n\ndata: b\n\n", &["b"]);
}

#[test]
fn d8_a_byte_order_mark_inside_the_data_is_kept() {
    reads(b"data: \xef\xbb\xbfx\n\n", &["\u{FEFF}x"]);
}

#[test]
fn comments_unknown_fields_and_events_without_data_are_passed_over() {
    reads(b": keep-alive\n\n:\n\n: x\ndata: a\n\n", &["a"]);
    reads(
        b"foo: bar\nDATA: x\n data: y\ndata : z\ndata: a\n\n",
        &["a"],
    );
    reads(b"event: ping\n\nid: 7\n\ndata: a\n\n", &["a"]);
    assert_eq!(
        parse([&b"event: ping\n\ndata: a\n\n"[..]]).unwrap(),
        [("message".into(), "a".into())],
        "the name of an event without data does not reach the next one"
    );
}

#[test]
fn the_last_event_field_names_the_event() {
    assert_eq!(
        parse([&b"event: a\nevent: error\ndata: x\n\nevent:\ndata: y\n\nevent\ndata: z\n\n"[..]])
            .unwrap(),
        [
            ("error".into(), "x".into()),
            ("message".into(), "y".into()),
            ("message".into(), "z".into())
        ]
    );
}

#[test]
fn an_id_lasts_until_the_next_one_and_one_with_nul_is_ignored() {
    let mut parser = EventParser::default();
    let mut id_after = |input: &[u8]| {
        parse_with(&mut parser, [input]).unwrap();
        parser.last_event_id().into_owned()
    };
    assert_eq!(id_after(b"id: 1\n"), "", "not before the block ends");
    assert_eq!(id_after(b"\n"), "1");
    assert_eq!(id_after(b"data: x\n\n"), "1");
    assert_eq!(id_after(b"id: a\0b\ndata: x\n\n"), "1");
    assert_eq!(id_after(b"id\n\n"), "");
}

#[test]
fn retry_is_read_when_it_is_all_digits() {
    let mut parser = EventParser::default();
    let mut retry_after = |input: &[u8]| {
        parse_with(&mut parser, [input]).unwrap();
        parser.retry_ms()
    };
    assert_eq!(retry_after(b"retry: 1.5\nretry: -1\nretry:\n\n"), None);
    assert_eq!(retry_after(b"retry: 2500\n"), Some(2500));
    assert_eq!(
        retry_after(b"retry: 99999999999999999999\nretry: x\n"),
        Some(2500)
    );
}

#[test]
fn d5_a_character_cut_between_inputs_is_whole_and_a_bad_byte_is_replaced() {
    reads("data: é日😀\n\n".as_bytes(), &["é日😀"]);
    reads(
        b"data: a\xff\xc3\n\ndata: \xf0\x9f\x98\n\n",
        &["a\u{FFFD}\u{FFFD}", "\u{FFFD}"],
    );
}

#[test]
fn a_line_or_an_event_past_its_limit_is_a_typed_error() {
    let limits = Limits {
        max_line_bytes: 10,
        max_event_bytes: 12,
    };
    let parse =
        |pieces: &[&[u8]]| parse_with(&mut EventParser::new(limits), pieces.iter().copied());
    assert_eq!(parse(&[b"data: 6789\n\n"]).unwrap().len(), 1);
    let too_long = Err(ParseError::LineTooLong { max_bytes: 10 });
    assert_eq!(parse(&[b"data: 67890\n\n"]), too_long);
    assert_eq!(parse(&[b"data: 6", b"7890"]), too_long);
    assert_eq!(
        parse(&[b": 3456", b"7890", b"1"]),
        too_long,
        "a comment too"
    );

    assert_eq!(
        parse(&[b"data:12345\ndata:67890\ndata:\n\n"])
            .unwrap()
            .len(),
        1
    );
    let too_long = Err(ParseError::EventTooLong { max_bytes: 12 });
    assert_eq!(parse(&[b"data:12345\ndata:67890\ndata:1\n\n"]), too_long);
    assert_eq!(
        parse(&[b"data:12345\nda", b"ta:67890\ndata:1\n\n"]),
        too_long
    );
    assert_eq!(parse(&[b"event:abcd\nid:12345\ndata:6789\n\n"]), too_long);
    assert_eq!(
        parse(&[b"data:12345\n\ndata:67890\n\ndata:12345\n\n"])
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn a_large_event_in_small_inputs_is_read_in_linear_time() {
    // A parser that searches or copies from the start of the line each time
    // would touch 2^45 bytes here.
    let data = "x".repeat(8 << 20);
    let input = format!("data: {data}\n\n");
    let events = parse(input.as_bytes().chunks(2)).unwrap();
    assert_eq!(events.len(), 1);
    assert!(events[0].1 == data);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn any_stream_cut_anywhere_reads_as_the_standard_says(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                &b"data"[..], b"data:", b"data: ", b"event:", b"event", b"id:", b"retry: 5",
                b":", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"x", b"{\"a\"}",
                b"\xef\xbb\xbf", b"\xef\xbb", b"\xff", "é".as_bytes(), b"\xf0\x9f", b"\0",
            ]),
            0..40,
        ),
        sizes in prop::collection::vec(1usize..12, 1..40),
    ) {
        let input = tokens.concat();
        let mut pieces = Vec::new();
        let mut rest = input.as_slice();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, tail) = rest.split_at(rest.len().min(*size));
            pieces.push(piece);
            rest = tail;
        }
        prop_assert_eq!(parse(pieces).unwrap(), plain_reading(&input));
    }
}
