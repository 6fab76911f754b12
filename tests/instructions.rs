//! How many instructions the pure rooms take: a regression shows on any
//! machine, however busy, and so does work that grows faster than its input.
//!
//! Each case runs this very program again under valgrind's callgrind, which
//! counts inside [`measured_sse`] and its like only; the child is the test
//! [`child`]. The counts are those of the test profile (not optimized), so they say
//! how the work changed, not how long it takes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a count that cannot be taken has to fail the test"
)]

use std::fmt::Write;
use std::process::{self, Stdio};

use beachside_runloop::shell::{Command, Nonce, Program, quote, read_result, wrap};
use beachside_runloop::sse::{Limits, OutputDecoder};

const CASE: &str = "BEACHSIDE_TEST_CASE";
const BYTES: &str = "BEACHSIDE_TEST_BYTES";

/// What is counted, for how many bytes, and the instructions of the commit that last changed it.
const COUNTS: [(&str, usize, u64); 3] = [
    ("sse", 65_536, 9_402_765),
    ("record", 16_384, 5_891_925),
    ("quote", 16_384, 1_659_406),
];

/// In percent. Below it a count has become better: write the new one down.
const TOLERANCE: u64 = 10;

#[test]
fn the_pure_rooms_take_no_more_instructions_than_before_and_grow_with_their_input() {
    if !has_valgrind() {
        eprintln!("skipped: valgrind is not installed");
        return;
    }
    let found = COUNTS.map(|(case, bytes, _)| (case, bytes, count(case, bytes)));
    for ((case, bytes, known), (_, _, counted)) in COUNTS.into_iter().zip(found) {
        assert!(
            counted * 100 <= known * (100 + TOLERANCE),
            "{case}: {counted} instructions for {bytes} bytes, {known} before; all: {found:?}"
        );
        if counted * 100 < known * (100 - TOLERANCE) {
            eprintln!("{case}: only {counted} instructions, {known} before: write that down");
        }
        let fourfold = count(case, bytes * 4);
        assert!(
            fourfold * 10 <= counted * 44,
            "{case}: four times the input makes {fourfold} of {counted}"
        );
    }
}

#[test]
#[ignore = "the other tests run it under valgrind"]
fn child() {
    let bytes: usize = std::env::var(BYTES).unwrap().parse().unwrap();
    match std::env::var(CASE).unwrap().as_str() {
        "sse" => {
            let transcript = transcript(bytes);
            let mut out = String::with_capacity(2 * bytes);
            let mut decoder = OutputDecoder::new(0, None, Limits::default());
            measured_sse(&mut decoder, &transcript, &mut out);
            assert_eq!(out.len(), bytes);
        }
        "record" => {
            let nonce = Nonce::from_random([7; 16]);
            let record = record(&nonce, bytes);
            let length = measured_record(&record, &nonce);
            assert_eq!(length, bytes as u64);
        }
        "quote" => {
            let text = "it's a 'word' of $shell text\n".repeat(bytes / 29 + 1);
            let quoted = measured_quote(text.get(..bytes).unwrap());
            assert!(quoted.len() > bytes);
        }
        other => panic!("no case {other}"),
    }
}

#[inline(never)]
fn measured_sse(decoder: &mut OutputDecoder, transcript: &[u8], out: &mut String) {
    for piece in transcript.chunks(8192) {
        decoder.feed(piece, out).unwrap();
    }
}

#[inline(never)]
fn measured_record(record: &str, nonce: &Nonce) -> u64 {
    let result = read_result(record, nonce).unwrap().unwrap();
    result.stdout.content.len()
}

#[inline(never)]
fn measured_quote(text: &str) -> String {
    quote(text)
}

/// So many bytes of output in events of 1 KiB, as the service sends them.
fn transcript(bytes: usize) -> Vec<u8> {
    let line = "a line of output with \\\"quotes\\\" and an end\\n";
    let plain = line.replace("\\\"", "\"").replace("\\n", "\n");
    let (mut text, mut sent) = (String::new(), 0);
    while sent < bytes {
        let mut output = String::new();
        let mut length = 0;
        while length + plain.len() <= 1024.min(bytes - sent) {
            output.push_str(line);
            length += plain.len();
        }
        let rest = 1024.min(bytes - sent) - length;
        output.push_str(&"x".repeat(rest));
        sent += length + rest;
        let json = format!("{{\"output\":\"{output}\",\"offset\":{sent}}}");
        write!(text, "event: message\ndata: {json}\n\n").unwrap();
    }
    text.into_bytes()
}

/// What the wrapper of a command prints that writes so many bytes.
fn record(nonce: &Nonce, bytes: usize) -> String {
    let text = format!("head -c {bytes} /dev/zero | tr '\\000' x");
    let mut command = Command::new(Program::ShellText(text));
    command.inline_limit_bytes = 4 * 1024 * 1024;
    let wrapped = wrap(&command, nonce).unwrap();
    let output = process::Command::new("/bin/sh")
        .args(["-c", &wrapped.command])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn has_valgrind() -> bool {
    let version = process::Command::new("valgrind").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

fn count(case: &str, bytes: usize) -> u64 {
    let output = process::Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(["--collect-atstart=no"])
        .arg(format!("--toggle-collect=*measured_{case}*"))
        .arg(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--ignored", "--test-threads=1"])
        .env(CASE, case)
        .env(BYTES, bytes.to_string())
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {log}");
    let collected = log.lines().find_map(|line| line.split_once("Collected : "));
    let (_, number) = collected.unwrap_or_else(|| panic!("{case}: nothing was counted: {log}"));
    number.trim().parse().unwrap()
}
