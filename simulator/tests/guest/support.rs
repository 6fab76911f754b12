//! What the tests of Devboxes share.

use std::future::Future;
use std::io::Write;
use std::time::Duration;

use runloop_simulator::guest::{
    BoxSpec, Guest, Isolation, IsolationChoice, Machine, MachineOptions, Process, Spawn, Spool,
};

/// Far beyond what any test here needs, for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes each named function, `async fn(Machine)`, a test of both kinds of Devbox.
#[macro_export]
macro_rules! in_both {
    ($($name:ident),+ $(,)?) => {
        mod plain {
            $(#[tokio::test] async fn $name() { $crate::support::plain(super::$name).await })+
        }
        $crate::in_namespaces!($($name),+);
    };
}

/// Makes each named function a test of Devboxes with namespaces.
#[macro_export]
macro_rules! in_namespaces {
    ($($name:ident),+ $(,)?) => {
        mod namespaces {
            $(#[tokio::test] async fn $name() { $crate::support::isolated(super::$name).await })+
        }
    };
}

pub(crate) async fn plain<F: Future<Output = ()>>(test: impl FnOnce(Machine) -> F) {
    let options = MachineOptions {
        isolation: IsolationChoice::Plain,
        ..Default::default()
    };
    within(test(Machine::start(options).await.unwrap())).await;
}

/// Without the rights the test ends here, and says so.
pub(crate) async fn isolated<F: Future<Output = ()>>(test: impl FnOnce(Machine) -> F) {
    let machine = Machine::start(MachineOptions::default()).await.unwrap();
    match machine.isolation() {
        Isolation::Namespaces => within(test(machine)).await,
        Isolation::Plain { reason } => skip(&format!("no namespaces here: {reason}")),
    }
}

/// Says that a test shows nothing, past what the test runner keeps of a test's output.
pub(crate) fn skip(reason: &str) {
    let name = std::thread::current().name().map(str::to_owned);
    let line = format!("SKIPPED {}: {reason}\n", name.unwrap_or_default());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// This test binary again, for one test and with a part to play in it. The shell text
/// `before` says how it is run and ends in what comes before the command: `exec`.
pub(crate) fn play(part: &str, test: &str, before: &str) -> std::process::Command {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("{before} \"$@\""), "sh"]);
    command.arg(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(PART, part);
    command
}

/// The part to play, in a process that `play` has started.
pub(crate) fn part() -> Option<String> {
    std::env::var(PART).ok()
}

const PART: &str = "RUNLOOP_SIMULATOR_TEST_PART";

/// Ends a test that hangs.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .expect("the test ends in time")
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(
            tokio::time::Instant::now() < deadline,
            "not in 30 s: {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn boot(machine: &Machine) -> Guest {
    machine.boot(BoxSpec::new("box"), None).await.unwrap()
}

/// A finished command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) async fn run(guest: &Guest, script: &str) -> Outcome {
    outcome(&guest.spawn(Spawn::new(script)).await.unwrap()).await
}

/// What a command that must succeed and say nothing on stderr printed.
pub(crate) async fn print(guest: &Guest, script: &str) -> String {
    let outcome = run(guest, script).await;
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{script}");
    outcome.stdout
}

pub(crate) async fn outcome(process: &Process) -> Outcome {
    let code = process.finished().await;
    Outcome {
        code,
        stdout: text(process.stdout()),
        stderr: text(process.stderr()),
    }
}

pub(crate) fn text(spool: &Spool) -> String {
    String::from_utf8(all(spool)).unwrap()
}

pub(crate) fn all(spool: &Spool) -> Vec<u8> {
    spool.read_at(0, usize::MAX).unwrap().to_vec()
}

/// Waits until an output holds `wanted`.
pub(crate) async fn shows(spool: &Spool, wanted: &str) {
    while !String::from_utf8_lossy(&all(spool)).contains(wanted) {
        assert!(!spool.is_closed(), "ended without {wanted:?}");
        spool.grown_past(spool.len()).await;
    }
}
