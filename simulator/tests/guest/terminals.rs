//! Interactive shells on terminals.

use runloop_simulator::guest::{Machine, Pty, PtySignal};

use crate::in_both;
use crate::support::{boot, eventually};

in_both!(
    what_is_typed_is_run_and_shown,
    the_size_is_known_and_changes,
    a_signal_reaches_the_foreground_only,
    a_dropped_terminal_hangs_up,
    a_suspend_ends_the_terminal,
);

/// Reads until `wanted` was shown; everything shown since the last call.
async fn shown(pty: &Pty, wanted: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        let bytes = pty
            .read()
            .await
            .unwrap()
            .unwrap_or_else(|| panic!("ended with {seen:?}"));
        seen.push_str(&String::from_utf8_lossy(&bytes));
    }
    seen
}

fn interrupt() -> PtySignal {
    "SIGINT".parse().unwrap()
}

async fn end(pty: &Pty) {
    while pty.read().await.unwrap().is_some() {}
}

async fn what_is_typed_is_run_and_shown(machine: Machine) {
    let guest = boot(&machine).await;
    let pty = guest.pty(80, 24).await.unwrap();
    pty.write(b"cd /usr; echo \"at $PWD $TERM\" $(tty | cut -c 1-8)\n")
        .await
        .unwrap();
    shown(&pty, "at /usr xterm-256color /dev/pts").await;
    assert_eq!(pty.exit_code(), None);
    pty.write(b"exit 5\n").await.unwrap();
    end(&pty).await;
    assert_eq!(pty.exited().await, 5);
    assert_eq!(pty.exit_code(), Some(5));
    assert!(!pty.signal(interrupt()).await.unwrap());
    assert!(pty.resize(1, 1).await.is_err());
}

async fn the_size_is_known_and_changes(machine: Machine) {
    let guest = boot(&machine).await;
    let pty = guest.pty(101, 31).await.unwrap();
    pty.write(b"trap 'echo changed $(stty size)' WINCH; echo first $(stty size)\n")
        .await
        .unwrap();
    shown(&pty, "first 31 101").await;
    pty.resize(77, 22).await.unwrap();
    // bash runs a trap when the line that it waits for is there.
    pty.write(b"\n").await.unwrap();
    shown(&pty, "changed 22 77").await;
}

async fn a_signal_reaches_the_foreground_only(machine: Machine) {
    let guest = boot(&machine).await;
    let pty = guest.pty(80, 24).await.unwrap();
    pty.write(b"sh -c 'echo r\"\"eady; exec sleep 1000'\n")
        .await
        .unwrap();
    shown(&pty, "ready").await;
    assert!(pty.signal(interrupt()).await.unwrap());
    pty.write(b"echo code $?\n").await.unwrap();
    shown(&pty, "code 130").await;
    pty.write(b"sh -c 'echo r\"\"eady; exec sleep 1000'\n")
        .await
        .unwrap();
    shown(&pty, "ready").await;
    pty.write(b"\x03").await.unwrap();
    pty.write(b"echo code $?\n").await.unwrap();
    shown(&pty, "code 130").await;
}

async fn a_dropped_terminal_hangs_up(machine: Machine) {
    let guest = boot(&machine).await;
    let pty = guest.pty(80, 24).await.unwrap();
    pty.write(b"sleep 1000 & sh -c 'echo r\"\"eady; exec sleep 1000'\n")
        .await
        .unwrap();
    shown(&pty, "ready").await;
    drop(pty);
    eventually("no process is left", async || {
        guest.processes().await.unwrap().is_empty()
    })
    .await;
}

async fn a_suspend_ends_the_terminal(machine: Machine) {
    let guest = boot(&machine).await;
    let pty = guest.pty(80, 24).await.unwrap();
    pty.write(b"echo r\"\"eady\n").await.unwrap();
    shown(&pty, "ready").await;
    guest.suspend().await.unwrap();
    end(&pty).await;
    assert_eq!(pty.exited().await, 137);
}
