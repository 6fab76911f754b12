//! The `runloop-simulator` binary: how it starts, what it says, how it ends.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests say what they expect by panicking"
)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const BINARY: &str = env!("CARGO_BIN_EXE_runloop-simulator");
const PATIENCE: Duration = Duration::from_secs(20);

fn spawn(arguments: &[&str], stdin: Stdio) -> Child {
    let mut command = Command::new(BINARY);
    command
        .args(arguments)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The first line of stdout, which must be JSON.
fn announcement(child: &mut Child) -> serde_json::Value {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    serde_json::from_str(&line).unwrap()
}

fn ended(child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(begin.elapsed() < PATIENCE, "it still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn everything_else(child: &mut Child) -> (String, String) {
    let (mut out, mut err) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    (out, err)
}

#[test]
fn it_says_where_it_listens_in_one_line_and_ends_with_its_stdin() {
    let mut child = spawn(&["--port", "0"], Stdio::piped());
    let said = announcement(&mut child);
    assert!(
        said["url"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:"),
        "{said}"
    );
    assert!(
        matches!(said["isolation"].as_str(), Some("namespaces" | "plain")),
        "{said}"
    );
    assert_eq!(said["version"], env!("CARGO_PKG_VERSION"));
    drop(child.stdin.take());
    assert!(ended(&mut child).success());
    let (out, err) = everything_else(&mut child);
    assert_eq!(out, "");
    assert!(err.contains("stdin reached its end"), "{err}");
}

#[test]
fn it_ends_with_sigterm_when_detached_from_its_parent() {
    let mut child = spawn(&["--detach"], Stdio::null());
    announcement(&mut child);
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    assert!(ended(&mut child).success());
}

#[test]
fn it_ends_when_the_process_that_started_it_is_gone() {
    let script = format!("{BINARY} </dev/null & echo $!; wait");
    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    let pid = lines.next().unwrap().unwrap();
    lines.next().unwrap().unwrap();
    let simulator = Pid::from_raw(pid.parse().unwrap());
    shell.kill().unwrap();
    shell.wait().unwrap();
    let begin = Instant::now();
    // The pipe closes when nobody holds its end any more.
    assert!(lines.next().is_none());
    while kill(simulator, None).is_ok() {
        assert!(begin.elapsed() < PATIENCE, "it still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_it_cannot_use_is_an_error_in_one_sentence() {
    for (arguments, expected) in [
        (vec!["--set", "typo=1"], "unknown field `typo`"),
        (vec!["--set", "boot_ms=soon"], "invalid type"),
        (vec!["--set", "boot_ms"], "not NAME=VALUE"),
        (
            vec!["--port", "1", "--state", "/proc/nothing"],
            "cannot start",
        ),
    ] {
        let mut child = spawn(&arguments, Stdio::null());
        assert!(!ended(&mut child).success());
        let (out, err) = everything_else(&mut child);
        assert_eq!(out, "");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
}

#[test]
fn every_switch_can_be_set_at_the_start() {
    let settings = runloop_simulator::Settings::default();
    let assignments = [
        "boot_ms=5",
        "stream_offset=start",
        "tools=[\"sh\"]",
        "retry_after=null",
    ];
    let set = assignments
        .iter()
        .try_fold(settings, |settings, text| settings.with_assignment(text));
    let set = set.unwrap();
    assert_eq!(set.boot_ms, 5);
    assert_eq!(set.stream_offset, runloop_simulator::ChunkOffset::Start);
    assert_eq!(set.tools, Some(vec!["sh".to_owned()]));
    assert_eq!(set.retry_after, None);
}
