//! Commands in fresh shells.

use runloop_simulator::guest::{KillScope, Machine, ProcessState, Spawn, Stdin};

use crate::in_both;
use crate::support::{Outcome, all, boot, eventually, outcome, print, run, shows, text};

in_both!(
    outputs_and_exit_codes_stay_apart,
    the_outputs_and_the_input_can_be_opened_by_name,
    a_signal_shows_as_128_and_its_number,
    each_command_gets_a_fresh_bash_in_the_home_directory,
    startup_files_are_not_read,
    a_script_up_to_the_system_limit_runs_and_one_byte_more_is_126,
    a_missing_newline_or_quote_ends_the_command,
    a_background_child_that_holds_an_output_holds_the_completion,
    killing_the_leader_leaves_its_children,
    killing_the_group_ends_its_children_even_after_the_leader,
    killing_what_has_finished_does_nothing,
    an_interrupt_reaches_the_group,
    input_arrives_byte_for_byte_and_ends,
    input_is_dev_null_unless_asked_for,
    writing_to_what_has_ended_is_a_broken_pipe,
    a_large_output_is_whole_and_growing_while_it_runs,
    i8_orphans_are_reaped_and_no_file_is_left,
    a_script_with_a_nul_is_refused,
);

async fn outputs_and_exit_codes_stay_apart(machine: Machine) {
    let guest = boot(&machine).await;
    for code in [0, 1, 42, 255] {
        let outcome = run(&guest, &format!("echo out; echo err >&2; exit {code}")).await;
        assert_eq!(
            outcome,
            Outcome {
                code,
                stdout: "out\n".into(),
                stderr: "err\n".into()
            }
        );
    }
}

async fn a_signal_shows_as_128_and_its_number(machine: Machine) {
    let guest = boot(&machine).await;
    for (name, number) in [("KILL", 9), ("TERM", 15), ("PIPE", 13)] {
        let outcome = run(&guest, &format!("kill -{name} $$")).await;
        assert_eq!(outcome.code, 128 + number, "{name}");
    }
}

async fn each_command_gets_a_fresh_bash_in_the_home_directory(machine: Machine) {
    let guest = boot(&machine).await;
    let script = "[[ $PWD = \"$HOME\" ]] && echo {1..3} $BASH_SUBSHELL; shopt -q login_shell; \
                  echo $? ${-//[^il]/}; export LEFT=over; cd /";
    assert_eq!(print(&guest, script).await, "1 2 3 0\n1\n");
    assert_eq!(
        print(&guest, "[[ $PWD = \"$HOME\" ]] && echo ${LEFT-nothing}").await,
        "nothing\n"
    );
}

async fn startup_files_are_not_read(machine: Machine) {
    let guest = boot(&machine).await;
    for name in [
        ".bashrc",
        ".profile",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
    ] {
        guest
            .write_file(name, "echo noise; exit 9".into())
            .await
            .unwrap();
    }
    assert_eq!(print(&guest, "echo ok").await, "ok\n");
}

async fn a_script_up_to_the_system_limit_runs_and_one_byte_more_is_126(machine: Machine) {
    let guest = boot(&machine).await;
    // MAX_ARG_STRLEN is 131,072 with the terminating NUL.
    for (bytes, expected) in [(131_071, 7), (131_072, 126)] {
        let script = format!("exit 7{}", " ".repeat(bytes - "exit 7".len()));
        let outcome = run(&guest, &script).await;
        assert_eq!((outcome.code, outcome.stdout.as_str()), (expected, ""));
        assert_eq!(
            outcome.stderr.contains("Argument list too long"),
            expected == 126
        );
    }
}

async fn a_missing_newline_or_quote_ends_the_command(machine: Machine) {
    let guest = boot(&machine).await;
    assert_eq!(print(&guest, "cat <<'EOF'\nhello\nEOF").await, "hello\n");
    assert_eq!(run(&guest, "echo 'unclosed").await.code, 2);
    assert_eq!(print(&guest, "true # x").await, "");
}

async fn a_background_child_that_holds_an_output_holds_the_completion(machine: Machine) {
    let guest = boot(&machine).await;
    let script = "(while [ ! -e go ]; do sleep 0.02; done; echo late) & echo early; exit 4";
    let process = guest.spawn(Spawn::new(script)).await.unwrap();
    assert_eq!(process.exited().await, 4);
    assert_eq!(process.state(), ProcessState::Exited(4));
    shows(process.stdout(), "early").await;
    guest.write_file("go", "".into()).await.unwrap();
    assert_eq!(process.finished().await, 4);
    assert_eq!(text(process.stdout()), "early\nlate\n");
    assert_eq!(process.state(), ProcessState::Finished(4));
}

async fn killing_the_leader_leaves_its_children(machine: Machine) {
    let guest = boot(&machine).await;
    let script = "sleep 1000 & echo $!; wait; echo not reached";
    let process = guest.spawn(Spawn::new(script)).await.unwrap();
    shows(process.stdout(), "\n").await;
    assert!(process.kill(KillScope::Leader).await.unwrap());
    assert_eq!(process.exited().await, 137);
    let pid = text(process.stdout());
    assert_eq!(run(&guest, &format!("kill -0 {pid}")).await.code, 0);
    assert_eq!(process.state(), ProcessState::Exited(137));
    print(&guest, &format!("kill {pid}")).await;
    assert_eq!(process.finished().await, 137);
}

async fn killing_the_group_ends_its_children_even_after_the_leader(machine: Machine) {
    let guest = boot(&machine).await;
    let process = guest
        .spawn(Spawn::new("sleep 1000 & sleep 1000 & echo up; wait"))
        .await
        .unwrap();
    shows(process.stdout(), "up").await;
    assert!(process.kill(KillScope::Group).await.unwrap());
    assert_eq!(process.finished().await, 137);
    let process = guest
        .spawn(Spawn::new("sleep 1000 & exit 6"))
        .await
        .unwrap();
    assert_eq!(process.exited().await, 6);
    assert!(!process.kill(KillScope::Leader).await.unwrap());
    assert!(process.kill(KillScope::Group).await.unwrap());
    assert_eq!(process.finished().await, 6);
    eventually("no process is left", async || {
        guest.processes().await.unwrap().is_empty()
    })
    .await;
}

async fn killing_what_has_finished_does_nothing(machine: Machine) {
    let guest = boot(&machine).await;
    let process = guest.spawn(Spawn::new("exit 3")).await.unwrap();
    assert_eq!(process.finished().await, 3);
    for scope in [KillScope::Leader, KillScope::Group] {
        assert!(!process.kill(scope).await.unwrap());
    }
    assert_eq!(process.state(), ProcessState::Finished(3));
}

async fn an_interrupt_reaches_the_group(machine: Machine) {
    let guest = boot(&machine).await;
    let script = "trap 'echo caught; exit 5' INT; echo up; sleep 1000; echo not reached";
    let process = guest.spawn(Spawn::new(script)).await.unwrap();
    shows(process.stdout(), "up").await;
    assert!(process.interrupt().await.unwrap());
    let expected = Outcome {
        code: 5,
        stdout: "up\ncaught\n".into(),
        stderr: String::new(),
    };
    assert_eq!(outcome(&process).await, expected);
}

async fn the_outputs_and_the_input_can_be_opened_by_name(machine: Machine) {
    let guest = boot(&machine).await;
    let script = "head -c 3 /dev/stdin >/dev/stdout; echo err >/dev/stderr";
    let spawn = Spawn {
        stdin: Stdin::Pipe,
        ..Spawn::new(script)
    };
    let process = guest.spawn(spawn).await.unwrap();
    process.write_stdin(b"in\n").await.unwrap();
    let expected = Outcome {
        code: 0,
        stdout: "in\n".into(),
        stderr: "err\n".into(),
    };
    assert_eq!(outcome(&process).await, expected);
}

async fn input_arrives_byte_for_byte_and_ends(machine: Machine) {
    let guest = boot(&machine).await;
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let spawn = Spawn {
        stdin: Stdin::Pipe,
        ..Spawn::new("cat")
    };
    let process = guest.spawn(spawn).await.unwrap();
    process.write_stdin(&bytes).await.unwrap();
    process.close_stdin().await;
    assert_eq!(process.finished().await, 0);
    assert_eq!(all(process.stdout()), bytes);
}

async fn input_is_dev_null_unless_asked_for(machine: Machine) {
    let guest = boot(&machine).await;
    assert_eq!(
        print(&guest, "cat; readlink /proc/self/fd/0").await,
        "/dev/null\n"
    );
    let process = guest.spawn(Spawn::new("true")).await.unwrap();
    let error = process.write_stdin(b"x").await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

async fn writing_to_what_has_ended_is_a_broken_pipe(machine: Machine) {
    let guest = boot(&machine).await;
    let spawn = Spawn {
        stdin: Stdin::Pipe,
        ..Spawn::new("exit 0")
    };
    let process = guest.spawn(spawn).await.unwrap();
    process.finished().await;
    let error = process.write_stdin(b"x").await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

async fn a_large_output_is_whole_and_growing_while_it_runs(machine: Machine) {
    let guest = boot(&machine).await;
    let script = "seq 1 300000; while [ ! -e go ]; do sleep 0.02; done; seq 300001 600000";
    let process = guest.spawn(Spawn::new(script)).await.unwrap();
    shows(process.stdout(), "\n300000\n").await;
    assert_eq!(process.state(), ProcessState::Running);
    guest.write_file("go", "".into()).await.unwrap();
    assert_eq!(process.finished().await, 0);
    let expected: String = (1..=600_000).map(|line| format!("{line}\n")).collect();
    assert!(text(process.stdout()) == expected);
    let part = process.stdout().read_at(1_000_003, 77).unwrap();
    assert_eq!(part, expected.as_bytes()[1_000_003..1_000_080]);
    assert!(
        process
            .stdout()
            .read_at(expected.len() as u64, 10)
            .unwrap()
            .is_empty()
    );
    assert!(process.stdout().read_at(u64::MAX, 10).unwrap().is_empty());
}

async fn i8_orphans_are_reaped_and_no_file_is_left(machine: Machine) {
    let guest = boot(&machine).await;
    for _ in 0..50 {
        let started = (0..10).map(|_| guest.spawn(Spawn::new("sh -c 'sleep 0.05 &'")));
        for process in futures::future::try_join_all(started).await.unwrap() {
            assert_eq!(process.finished().await, 0);
        }
    }
    eventually("no process is left", async || {
        guest.processes().await.unwrap().is_empty()
    })
    .await;
    assert_eq!(guest.temporary_files().await.unwrap(), [""; 0]);
}

async fn a_script_with_a_nul_is_refused(machine: Machine) {
    let guest = boot(&machine).await;
    assert!(guest.spawn(Spawn::new("echo a\0b")).await.is_err());
    assert_eq!(print(&guest, "echo after").await, "after\n");
}
