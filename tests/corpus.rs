//! Kept inputs, as they are and changed at random: nothing that a service or a guest sends makes
//! a reader panic or contradict itself.
//!
//! `tests/corpus/` holds one input a line. `make test` reads each, cut at every byte, and a few
//! thousand changed ones; TEST_SCALE multiplies those, TEST_SEED replaces the seed. What fails
//! says which line to add.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "an input that is read wrongly has to fail the test, and a long run says how long it was"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use beachside_runloop::shell::{
    Content, Nonce, START_FAILURE_EXIT_CODE, read_clean_up, read_partial, read_result,
    read_start_failure, read_written,
};
use beachside_runloop::sse::{Limits, OutputDecoder};
use beachside_runloop::wire::accounts::Account;
use beachside_runloop::wire::blueprints::{Blueprint, BlueprintPage};
use beachside_runloop::wire::devboxes::{Devbox, DevboxPage};
use beachside_runloop::wire::executions::Execution;
use beachside_runloop::wire::policies::{NetworkPolicy, NetworkPolicyPage};
use beachside_runloop::wire::snapshots::{Snapshot, SnapshotPage, SnapshotStatus};
use serde::de::DeserializeOwned;

/// Changed inputs of each kind in `make test`.
const CHANGED: f64 = 3000.0;

#[test]
fn r21_output_streams_read_the_same_in_one_piece_and_in_two() {
    replay("sse", include_str!("corpus/sse.txt"), read_stream);
}

#[test]
fn c2_records_are_read_or_refused() {
    replay("record", include_str!("corpus/record.txt"), |bytes, _| {
        read_record(&String::from_utf8_lossy(bytes));
    });
}

#[test]
fn answers_are_read_or_refused_as_every_type_there_is() {
    replay("wire", include_str!("corpus/wire.txt"), |bytes, _| {
        read_as_all(bytes);
    });
}

/// Reads a stream whole, and in two pieces.
fn read_stream(bytes: &[u8], cut: usize) {
    let limits = Limits::default();
    let mut whole = OutputDecoder::new(0, None, limits);
    let mut text = String::new();
    let ended = whole.feed(bytes, &mut text);
    // An escape is longer than what it stands for, except half a pair alone.
    assert!(text.len() <= bytes.len() + 3, "more text than input");

    let (first, second) = bytes.split_at(cut.min(bytes.len()));
    let mut pieces = OutputDecoder::new(0, None, limits);
    let mut again = String::new();
    let ended_again = pieces
        .feed(first, &mut again)
        .and_then(|()| pieces.feed(second, &mut again));
    assert_eq!((&again, &ended_again), (&text, &ended), "cut at {cut}");
    assert_eq!(pieces.doubt(), whole.doubt(), "cut at {cut}");

    // Whatever came, another connection can be opened behind it.
    let from = pieces.reopen();
    let _ = pieces.feed(bytes, &mut again);
    assert_eq!(from, whole.reopen());
}

fn read_record(text: &str) {
    let nonce = Nonce::from_random([5; 16]);
    if let Ok(Ok(result)) = read_result(text, &nonce) {
        for stream in [&result.stdout, &result.stderr] {
            assert!(stream.content.len() <= stream.total_bytes);
            if let Content::File { path, .. } = &stream.content {
                assert!(path.starts_with(&nonce.directory_prefix()));
            }
        }
        let directory = result.left_directory.unwrap_or_default();
        assert!(directory.is_empty() || directory.starts_with(&nonce.directory_prefix()));
        assert_eq!(
            directory.matches('/').count(),
            if directory.is_empty() { 0 } else { 2 }
        );
    }
    let _ = read_partial(text, &nonce);
    let _ = read_clean_up(text, &nonce);
    let _ = read_written(text, &nonce);
    let _ = read_start_failure(START_FAILURE_EXIT_CODE, text, &nonce);
}

fn read_as_all(text: &[u8]) -> usize {
    fn taken<T: DeserializeOwned>(text: &[u8]) -> usize {
        usize::from(serde_json::from_slice::<T>(text).is_ok())
    }
    taken::<Account>(text)
        + taken::<Blueprint>(text)
        + taken::<BlueprintPage>(text)
        + taken::<Devbox>(text)
        + taken::<DevboxPage>(text)
        + taken::<Execution>(text)
        + taken::<NetworkPolicy>(text)
        + taken::<NetworkPolicyPage>(text)
        + taken::<Snapshot>(text)
        + taken::<SnapshotPage>(text)
        + taken::<SnapshotStatus>(text)
}

/// Gives `read` every kept input, every beginning of one, and changed ones, each with a place.
fn replay(kind: &str, corpus: &str, read: impl Fn(&[u8], usize)) {
    let kept: Vec<Vec<u8>> = corpus
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(unescaped)
        .collect();
    assert!(kept.len() > 20, "{kind}: only {} kept inputs", kept.len());
    let tried = |input: &[u8], cut| {
        if let Err(cause) = catch_unwind(AssertUnwindSafe(|| read(input, cut))) {
            let why = cause.downcast_ref::<String>().cloned().unwrap_or_default();
            panic!("{why}\nadd to tests/corpus/{kind}.txt:\n{}", escaped(input));
        }
    };
    for input in &kept {
        for cut in 0..=input.len() {
            tried(input, cut);
            tried(input.get(..cut).unwrap(), cut / 2);
        }
    }
    let number = |name: &str| std::env::var(name).ok()?.parse::<f64>().ok();
    let count = (CHANGED * number("TEST_SCALE").unwrap_or(1.0)).ceil() as u64;
    let seed = number("TEST_SEED").map_or(1, |seed| seed as u64);
    let mut random = Random(seed);
    for _ in 0..count {
        let input = changed(&kept, &mut random);
        let cut = random.below(input.len() + 1);
        tried(&input, cut);
    }
    println!("{{\"seed\": {seed}, \"{kind}\": {count}}}");
}

/// One of the kept inputs with one to four changes.
fn changed(kept: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let pick = |random: &mut Random| kept.get(random.below(kept.len())).unwrap();
    let mut input = pick(random).clone();
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        let to = at + random.below(input.len() + 1 - at).min(40);
        match random.below(6) {
            0 => drop(input.drain(at..to)),
            1 => {
                let again = input.get(at..to).unwrap().repeat(1 + random.below(3));
                drop(input.splice(at..at, again));
            }
            2 => {
                let other = pick(random);
                let from = random.below(other.len() + 1);
                let length = random.below(other.len() + 1 - from);
                drop(input.splice(at..to, other.get(from..from + length).unwrap().to_vec()));
            }
            3 => input.insert(at, random.below(256) as u8),
            4 => {
                let special = b"\r\n\\\":{}[]0-e.\0\xff\xc3 ";
                input.insert(at, *special.get(random.below(special.len())).unwrap());
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
    input
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

fn unescaped(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = line.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'\\') => bytes.push(b'\\'),
            Some(b'x') => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                let digits = str::from_utf8(&digits).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
            }
            // As JSON has them.
            Some(other) => bytes.extend([b'\\', other]),
            None => panic!("a line ends in a backslash"),
        }
    }
    bytes
}

fn escaped(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\\' => "\\\\".to_owned(),
        b' '..=b'~' => char::from(*byte).to_string(),
        other => format!("\\x{other:02x}"),
    };
    bytes.iter().map(one).collect()
}

#[test]
fn an_input_is_written_as_it_is_read() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(unescaped(&escaped(&all)), all);
}
