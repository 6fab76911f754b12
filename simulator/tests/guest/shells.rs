//! Named shells.

use std::time::{Duration, Instant};

use runloop_simulator::guest::{Guest, KillScope, Machine, ProcessState};

use crate::in_both;
use crate::support::{Outcome, boot, eventually, outcome, print, shows, text};

in_both!(
    directory_and_variables_persist,
    commands_run_one_at_a_time_in_order,
    shells_are_independent,
    each_command_has_its_own_outputs,
    a_script_keeps_the_meaning_it_has_in_a_file,
    leaving_the_shell_ends_the_command_and_the_next_gets_a_fresh_one,
    a_background_job_holds_its_command_but_not_the_queue,
    a_killed_command_ends_and_a_queued_one_never_runs,
    a_long_script_is_not_cut,
    nothing_is_left_of_a_command,
    a_suspend_ends_the_shell_and_its_queue,
);

async fn run(guest: &Guest, shell: &str, script: &str) -> Outcome {
    outcome(&guest.shell(shell).spawn(script).unwrap()).await
}

async fn directory_and_variables_persist(machine: Machine) {
    let guest = boot(&machine).await;
    assert_eq!(
        run(&guest, "a", "cd /usr; export OUT=1; IN=2; f() { echo f; }")
            .await
            .code,
        0
    );
    let outcome = run(
        &guest,
        "a",
        "pwd; echo $OUT $IN; f; bash -c 'echo ${OUT-} ${IN-}'",
    )
    .await;
    assert_eq!(outcome.stdout, "/usr\n1 2\nf\n1\n");
}

async fn commands_run_one_at_a_time_in_order(machine: Machine) {
    let guest = boot(&machine).await;
    let shell = guest.shell("a");
    let start = Instant::now();
    let spawn = |number| {
        shell
            .spawn(format!("sleep 0.2; echo {number} >> order"))
            .unwrap()
    };
    let processes: Vec<_> = (0..4).map(spawn).collect();
    assert_eq!(processes[3].state(), ProcessState::Queued);
    for process in &processes {
        assert_eq!(process.finished().await, 0);
    }
    assert!(start.elapsed() >= Duration::from_millis(800));
    assert_eq!(print(&guest, "cat order").await, "0\n1\n2\n3\n");
}

async fn shells_are_independent(machine: Machine) {
    let guest = boot(&machine).await;
    run(&guest, "a", "cd /usr; export NAME=a").await;
    run(&guest, "b", "cd /etc; export NAME=b").await;
    let blocked = guest
        .shell("a")
        .spawn("while [ ! -e ~/go ]; do sleep 0.02; done")
        .unwrap();
    assert_eq!(
        run(&guest, "b", "pwd; echo $NAME; echo > ~/go")
            .await
            .stdout,
        "/etc\nb\n"
    );
    assert_eq!(blocked.finished().await, 0);
    assert_eq!(
        run(&guest, "a", "pwd; echo $NAME").await.stdout,
        "/usr\na\n"
    );
}

async fn each_command_has_its_own_outputs(machine: Machine) {
    let guest = boot(&machine).await;
    for number in 0..5 {
        let script = format!("echo out {number}; echo err {number} >&2; (exit {number})");
        let expected = Outcome {
            code: number,
            stdout: format!("out {number}\n"),
            stderr: format!("err {number}\n"),
        };
        assert_eq!(run(&guest, "a", &script).await, expected);
    }
    let descriptors =
        "cat; bash -c 'for n in {0..400}; do [ -e /proc/self/fd/$n ] && echo $n; done'";
    assert_eq!(run(&guest, "a", descriptors).await.stdout, "0\n1\n2\n");
}

async fn a_script_keeps_the_meaning_it_has_in_a_file(machine: Machine) {
    let guest = boot(&machine).await;
    let quotes = r#"echo 'it'"'"'s' "a  b" '$HOME' \\"#;
    assert_eq!(
        run(&guest, "a", quotes).await.stdout,
        "it's a  b $HOME \\\n"
    );
    assert_eq!(
        run(&guest, "a", "cat <<'EOF'\n'x'\nEOF").await.stdout,
        "'x'\n"
    );
    run(&guest, "a", "declare KEPT=yes; break; return; # comment").await;
    assert_ne!(run(&guest, "a", "echo 'unclosed").await.code, 0);
    assert_eq!(run(&guest, "a", "echo $KEPT").await.stdout, "yes\n");
}

async fn leaving_the_shell_ends_the_command_and_the_next_gets_a_fresh_one(machine: Machine) {
    let guest = boot(&machine).await;
    for (script, code) in [
        ("V=1; echo out; exit 7", 7),
        ("V=1; exec true", 0),
        ("V=1; set -e; false; true", 1),
        ("V=1; kill -KILL $$", 137),
    ] {
        assert_eq!(run(&guest, "a", script).await.code, code, "{script}");
        assert_eq!(run(&guest, "a", "echo ${V-fresh}").await.stdout, "fresh\n");
    }
}

async fn a_background_job_holds_its_command_but_not_the_queue(machine: Machine) {
    let guest = boot(&machine).await;
    let shell = guest.shell("a");
    let first = shell
        .spawn("while [ ! -e go ]; do sleep 0.02; done & echo started")
        .unwrap();
    assert_eq!(first.exited().await, 0);
    assert_eq!(run(&guest, "a", "echo next").await.stdout, "next\n");
    assert_eq!(first.state(), ProcessState::Exited(0));
    assert!(!first.kill(KillScope::Group).await.unwrap());
    assert_eq!(run(&guest, "a", "jobs -p | wc -l").await.stdout, "1\n");
    print(&guest, "touch go").await;
    assert_eq!(first.finished().await, 0);
    assert_eq!(text(first.stdout()), "started\n");
}

async fn a_killed_command_ends_and_a_queued_one_never_runs(machine: Machine) {
    let guest = boot(&machine).await;
    let shell = guest.shell("a");
    let running = shell.spawn("echo up; sleep 1000").unwrap();
    let queued = shell.spawn("touch ran").unwrap();
    let last = shell.spawn("[ -e ran ]").unwrap();
    shows(running.stdout(), "up").await;
    assert!(queued.kill(KillScope::Group).await.unwrap());
    // It ends in its queue, behind a command that goes on.
    assert_eq!(queued.state(), ProcessState::Finished(137));
    assert!(queued.stdout().is_closed() && queued.stderr().is_closed());
    assert!(!queued.kill(KillScope::Group).await.unwrap());
    assert_eq!(running.state(), ProcessState::Running);
    assert!(running.kill(KillScope::Group).await.unwrap());
    assert_eq!(running.finished().await, 137);
    assert_eq!(last.finished().await, 1);
}

async fn a_long_script_is_not_cut(machine: Machine) {
    let guest = boot(&machine).await;
    let long = "x".repeat(200_000);
    assert_eq!(
        run(&guest, "a", &format!("V={long}; echo ${{#V}}"))
            .await
            .stdout,
        "200000\n"
    );
}

async fn nothing_is_left_of_a_command(machine: Machine) {
    let guest = boot(&machine).await;
    for _ in 0..20 {
        run(&guest, "a", "true").await;
    }
    eventually("no file is left", async || {
        guest.temporary_files().await.unwrap().is_empty()
    })
    .await;
}

async fn a_suspend_ends_the_shell_and_its_queue(machine: Machine) {
    let guest = boot(&machine).await;
    let shell = guest.shell("a");
    let running = shell.spawn("cd /usr; echo up; sleep 1000").unwrap();
    let queued = shell.spawn("true").unwrap();
    shows(running.stdout(), "up").await;
    guest.suspend().await.unwrap();
    assert_eq!(running.finished().await, 137);
    assert_eq!(queued.finished().await, 137);
    guest.resume().await.unwrap();
    let place = run(&guest, "a", "[ \"$PWD\" = \"$HOME\" ] && echo home").await;
    assert_eq!(place.stdout, "home\n");
}
