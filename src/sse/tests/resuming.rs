//! Reopened streams against the model: every byte once, or a doubt.

use proptest::prelude::*;

use crate::cases::cases;

use super::model::{Atom, Content, Output, Service, service};
use crate::sse::{Doubt, Limits, OffsetMode, OutputDecoder};

/// One connection: how much of it arrives, in pieces of which sizes, and by
/// how many pieces of output it starts too early (or, below zero, too late).
#[derive(Debug, Clone)]
struct Connection {
    arrives: f64,
    reads: usize,
    shift: isize,
}

#[derive(Debug)]
struct Outcome {
    text: String,
    doubt: Option<Doubt>,
    fetched_units: u64,
    reopened: u64,
}

/// Reads a service to its end over the given connections and one that is not cut.
fn read(service: &Service, from: u64, connections: &[Connection]) -> Outcome {
    let mut decoder = OutputDecoder::new(from, None, Limits::default());
    let mut text = String::new();
    let mut offset = from;
    let mut fetched_units = 0;
    let last = Connection {
        arrives: 1.0,
        reads: 7,
        shift: connections.last().map_or(0, |c| c.shift),
    };
    for (turn, connection) in connections.iter().chain([&last]).enumerate() {
        // Before the first chunk, an offset alone tells nothing of what is
        // missing, or of what was not asked for.
        let is_told = decoder.mode().is_some();
        let shift = if turn > 0 && is_told {
            connection.shift
        } else {
            0
        };
        let sent = service.open(offset, turn, shift);
        fetched_units += sent.units;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share"
        )]
        let arrives = (sent.bytes.len() as f64 * connection.arrives) as usize;
        for piece in sent.bytes[..arrives].chunks(connection.reads) {
            decoder.feed(piece, &mut text).unwrap();
        }
        offset = decoder.reopen();
    }
    decoder.finish(&mut text);
    Outcome {
        text,
        doubt: decoder.doubt(),
        fetched_units,
        reopened: connections.len() as u64,
    }
}

fn connections(shift: impl Strategy<Value = isize>) -> impl Strategy<Value = Vec<Connection>> {
    let connection = (0.0..1.0, prop_oneof![1usize..5, 5usize..400], shift).prop_map(
        |(arrives, reads, shift)| Connection {
            arrives,
            reads,
            shift,
        },
    );
    prop::collection::vec(connection, 0..8)
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn r21_d1_d2_every_character_comes_once_over_any_number_of_cuts(
        service in service(Content::Any),
        connections in connections(Just(0)),
    ) {
        let outcome = read(&service, 0, &connections);
        prop_assert_eq!(&outcome.text, &service.output.text);
        prop_assert_eq!(outcome.doubt, None);
    }

    #[test]
    fn r21_d11_what_the_service_sends_again_is_cut(
        service in service(Content::Plain),
        connections in connections(0isize..30),
    ) {
        let outcome = read(&service, 0, &connections);
        prop_assert_eq!(&outcome.text, &service.output.text);
        prop_assert_eq!(outcome.doubt, None);
    }

    #[test]
    fn r21_d2_where_replaced_bytes_hide_what_was_sent_again_nothing_is_lost(
        service in service(Content::Replaced),
        connections in connections(0isize..30),
    ) {
        let outcome = read(&service, 0, &connections);
        let mut delivered = outcome.text.chars();
        let is_all_there = service.output.text.chars().all(|wanted| delivered.any(|c| c == wanted));
        prop_assert!(is_all_there, "{:?}", outcome.text);
        if service.mode == OffsetMode::Start && outcome.doubt.is_none() {
            prop_assert_eq!(&outcome.text, &service.output.text);
        }
    }

    #[test]
    fn r21_a_gap_is_never_silent(
        service in service(Content::Plain),
        connections in connections(-20isize..1),
    ) {
        let outcome = read(&service, 0, &connections);
        // Text that never came behind the last that did is not the offsets' to tell.
        if outcome.doubt.is_none() {
            prop_assert!(service.output.text.starts_with(&outcome.text));
        }
    }

    #[test]
    fn r21_a_reopening_fetches_at_most_one_chunk_again(
        service in service(Content::Any),
        connections in connections(Just(0)),
    ) {
        // Whole connections, so that what was sent is what was fetched.
        let connections: Vec<_> =
            connections.into_iter().map(|c| Connection { arrives: 1.0, ..c }).collect();
        let outcome = read(&service, 0, &connections);
        let again = outcome.fetched_units - service.output.units();
        prop_assert!(again <= outcome.reopened * service.largest_chunk_units());
    }

    #[test]
    fn r21_a_reader_opened_at_any_offset_gets_the_text_from_there(
        service in service(Content::Plain),
        connections in connections(0isize..30),
        share in 0.0..1.0,
    ) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        let mut from = (service.output.text.len() as f64 * share) as usize;
        while !service.output.text.is_char_boundary(from) {
            from -= 1;
        }
        let outcome = read(&service, from as u64, &connections);
        let answers_as_asked = !service.stored && connections.iter().all(|c| c.shift == 0);
        if answers_as_asked || outcome.doubt.is_none() {
            prop_assert_eq!(&outcome.text, &service.output.text[from..]);
            prop_assert_eq!(outcome.doubt, None);
        }
    }

    #[test]
    fn r21_a_position_is_where_another_reader_goes_on(
        service in service(Content::Plain),
        connection in connections(Just(0)),
        reads in 1usize..100,
    ) {
        let arrives = connection.first().map_or(1.0, |connection| connection.arrives);
        let mut decoder = OutputDecoder::new(0, None, Limits::default());
        let mut text = String::new();
        let sent = service.open(0, 0, 0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        let arrives = (sent.bytes.len() as f64 * arrives) as usize;
        for piece in sent.bytes[..arrives].chunks(reads) {
            decoder.feed(piece, &mut text).unwrap();
        }
        let rest = read(&service, decoder.position(), &[]);
        prop_assert_eq!(text + &rest.text, service.output.text);
        prop_assert_eq!(rest.doubt, None);
    }
}

fn both_modes(check: impl Fn(OffsetMode)) {
    check(OffsetMode::Start);
    check(OffsetMode::End);
}

fn steady(output: Output, mode: OffsetMode, size: usize) -> Service {
    Service {
        output,
        mode,
        sizes: vec![size],
        stored: true,
        line_ends: vec!["\n"],
    }
}

fn cut_at(shares: &[f64], shift: isize) -> Vec<Connection> {
    shares
        .iter()
        .map(|share| Connection {
            arrives: *share,
            reads: 64,
            shift,
        })
        .collect()
}

#[test]
fn d1_thirty_thousand_numbered_lines_survive_fifty_cuts() {
    let text: String = (0..30_000).map(|line| format!("line {line}\n")).collect();
    let atoms: Vec<_> = text.chars().map(Atom::Text).collect();
    both_modes(|mode| {
        let service = steady(Output::of(&atoms, false), mode, 1000);
        let outcome = read(&service, 0, &cut_at(&[0.031; 50], 0));
        assert!(outcome.text == text, "{mode:?}");
        assert_eq!(outcome.doubt, None, "{mode:?}");
    });
}

#[test]
fn d2_runs_of_replaced_bytes_and_cut_characters_come_once_in_every_count() {
    let mut atoms = vec![Atom::Bad { bytes: 1 }; 1000];
    atoms.extend(vec![Atom::Text('é'); 1000]);
    atoms.extend("END".chars().map(Atom::Text));
    for counts_text in [false, true] {
        both_modes(|mode| {
            let service = steady(Output::of(&atoms, counts_text), mode, 100);
            let outcome = read(&service, 0, &cut_at(&[0.25, 0.1, 0.4, 0.0, 0.7], 0));
            assert!(
                outcome.text == service.output.text,
                "{mode:?} {counts_text}"
            );
            assert_eq!(outcome.doubt, None, "{mode:?} {counts_text}");
        });
    }
}

#[test]
fn d11_a_thousand_equal_lines_stay_a_thousand() {
    let text = "same\n".repeat(1000);
    let atoms: Vec<_> = text.chars().map(Atom::Text).collect();
    both_modes(|mode| {
        let service = steady(Output::of(&atoms, false), mode, 33);
        let outcome = read(&service, 0, &cut_at(&[0.3, 0.57], 500));
        assert_eq!(outcome.text.matches("same\n").count(), 1000, "{mode:?}");
        assert_eq!(outcome.text.len(), text.len(), "{mode:?}");
        assert_eq!(outcome.doubt, None, "{mode:?}");
    });
}

/// Feeds chunks to a decoder, a reopening where there is a `None`.
fn feed(from: u64, chunks: &[Option<(&str, u64)>]) -> (String, Option<Doubt>, u64) {
    let mut decoder = OutputDecoder::new(from, None, Limits::default());
    let mut text = String::new();
    for chunk in chunks {
        match chunk {
            Some((json, offset)) => {
                let event = format!("data: {{\"output\":\"{json}\",\"offset\":{offset}}}\n\n");
                decoder.feed(event.as_bytes(), &mut text).unwrap();
            }
            None => {
                decoder.reopen();
            }
        }
    }
    let position = decoder.position();
    decoder.finish(&mut text);
    (text, decoder.doubt(), position)
}

#[test]
fn a_replay_that_differs_is_a_doubt_and_nothing_behind_it_is_lost() {
    let start = [
        Some(("abc", 0)),
        Some(("def", 3)),
        None,
        Some(("dEf", 3)),
        Some(("ghi", 6)),
    ];
    assert_eq!(
        feed(0, &start),
        ("abcdefEfghi".into(), Some(Doubt::Mismatch), 9)
    );
    let end = [Some(("abc", 3)), Some(("def", 6)), None, Some(("Efghi", 9))];
    let (text, doubt, position) = feed(0, &end);
    assert!(
        text.starts_with("abcdef") && text.ends_with("ghi"),
        "{text}"
    );
    assert_eq!((doubt, position), (Some(Doubt::Mismatch), 9));
}

#[test]
fn offsets_that_skip_bytes_are_a_doubt_within_a_connection_and_after_it() {
    for chunks in [
        [Some(("abc", 3)), Some(("def", 7)), Some(("g", 8))],
        [Some(("abc", 3)), None, Some(("def", 7))],
        [Some(("abc", 0)), Some(("def", 4)), Some(("g", 7))],
        [Some(("abc", 0)), None, Some(("def", 4))],
        [Some(("abc", 3)), Some(("", 9)), None],
    ] {
        let (_, doubt, _) = feed(0, &chunks);
        assert_eq!(doubt, Some(Doubt::Gap), "{chunks:?}");
    }
}

#[test]
fn a_character_that_the_service_keeps_until_it_is_whole_is_no_gap() {
    // Two bytes of four were counted before the character could be sent.
    let end = [
        Some(("ab", 4)),
        Some(("😀c", 7)),
        Some(("", 9)),
        Some(("é", 9)),
    ];
    assert_eq!(feed(0, &end), ("ab😀cé".into(), None, 9));
    let start = [Some(("ab", 0)), Some(("😀c", 4)), Some(("d", 7))];
    assert_eq!(feed(0, &start), ("ab😀cd".into(), None, 8));
    // The rest of it never came.
    assert_eq!(feed(0, &[Some(("ab", 4))]).1, Some(Doubt::Gap));
}

#[test]
fn half_a_pair_at_the_end_of_the_output_is_replaced() {
    for mode_offset in [0, 5] {
        let chunks = [Some((r"ab\ud83d", mode_offset))];
        assert_eq!(feed(0, &chunks).0, "ab\u{FFFD}");
    }
}

#[test]
fn a_pair_cut_between_two_connections_is_one_character() {
    let end = [Some((r"ab\ud83d", 4)), None, Some((r"\ude00c", 7))];
    assert_eq!(feed(0, &end).0, "ab😀c");
    let start = [
        Some((r"ab\ud83d", 0)),
        None,
        Some((r"ab\ud83d", 0)),
        Some((r"\ude00c", 4)),
    ];
    assert_eq!(feed(0, &start), ("ab😀c".into(), None, 4));
    let whole = [Some((r"ab\ud83d", 0)), None, Some(("ab😀c", 0))];
    assert_eq!(feed(0, &whole), ("ab😀c".into(), None, 7));
}

#[test]
fn a_service_that_takes_a_start_as_read_already_is_followed() {
    let chunks = [
        Some(("abc", 0)),
        Some(("def", 3)),
        None,
        Some(("ghi", 6)),
        None,
        Some(("j", 9)),
    ];
    assert_eq!(feed(0, &chunks), ("abcdefghij".into(), None, 10));
}

#[test]
fn text_without_offsets_is_delivered_and_a_reopening_behind_it_is_a_doubt() {
    let mut decoder = OutputDecoder::new(0, None, Limits::default());
    let mut text = String::new();
    decoder
        .feed(
            b"data: {\"output\":\"abc\"}\n\ndata: {\"output\":\"def\"}\n\n",
            &mut text,
        )
        .unwrap();
    assert_eq!((text.as_str(), decoder.doubt()), ("abcdef", None));
    decoder.reopen();
    assert_eq!(decoder.doubt(), Some(Doubt::Untracked));
}

#[test]
fn offsets_that_count_characters_lose_nothing_on_one_connection() {
    let chunks = [Some(("éé", 2)), Some(("日a", 4)), Some(("b", 5))];
    assert_eq!(feed(0, &chunks), ("éé日ab".into(), None, 5));
}

#[test]
fn an_offset_that_stands_still_loses_nothing_on_one_connection() {
    let (text, doubt, _) = feed(0, &[Some(("ab", 0)), Some(("cd", 0)), Some(("ef", 0))]);
    assert_eq!((text.as_str(), doubt), ("abcdef", Some(Doubt::Mismatch)));
}
