//! The wrapper that becomes its command.

use std::fs;
use std::process::Output;

use beachside_runloop::shell::{
    Command, Nonce, Refusal, START_FAILURE_EXIT_CODE, WorkingDirectoryFault, read_start_failure,
    wrap_live,
};

use crate::harness::{Guest, argv, litter, nonce, text};

fn run(guest: &Guest, command: &Command, nonce: &Nonce) -> Output {
    guest
        .start(&wrap_live(command, nonce).unwrap())
        .wait_with_output()
        .unwrap()
}

fn failure(output: &Output, nonce: &Nonce) -> Option<Refusal> {
    let code = u8::try_from(output.status.code().unwrap()).unwrap();
    read_start_failure(code, &String::from_utf8_lossy(&output.stderr), nonce).unwrap()
}

#[test]
fn r20_a_live_command_owns_the_streams_and_has_no_input() {
    for guest in Guest::each() {
        let nonce = nonce();
        let mut command = text("pwd; /bin/cat; printf '%s' \"$V\" >&2; exit 7");
        command.environment.push(("V".into(), "it's\n\n".into()));
        command.working_directory = Some("/usr".into());
        let output = run(&guest, &command, &nonce);
        assert_eq!(output.status.code(), Some(7), "{:?}", guest.shell);
        assert_eq!(output.stdout, b"/usr\n");
        assert_eq!(output.stderr, b"it's\n\n");
        assert_eq!(failure(&output, &nonce), None);
        assert!(litter(&nonce).is_empty());
    }
}

#[test]
fn r20_nothing_of_the_wrapper_remains_beside_a_live_command() {
    for guest in Guest::each() {
        let nonce = nonce();
        let script = "PATH=/bin:/usr/bin; ls /proc/self/fd; trap; umask";
        let child = guest.start(&wrap_live(&text(&format!("echo $$; {script}")), &nonce).unwrap());
        let id = child.id();
        let output = child.wait_with_output().unwrap();
        let alone = guest
            .process(&format!("exec sh -c '{script}'"))
            .output()
            .unwrap();
        let expected = format!("{id}\n{}", String::from_utf8(alone.stdout).unwrap());
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            expected,
            "{:?}",
            guest.shell
        );
    }
}

#[test]
fn r20_a_live_command_ends_by_the_signal_itself() {
    use std::os::unix::process::ExitStatusExt as _;
    for guest in Guest::each() {
        let nonce = nonce();
        let output = run(&guest, &argv(&["sh", "-c", "kill -TERM $$"]), &nonce);
        assert_eq!(output.status.signal(), Some(15), "{:?}", guest.shell);
        assert_eq!(output.stderr, b"");
    }
}

#[test]
fn r20_e3_a_live_command_in_a_missing_directory_does_not_start_and_says_so() {
    for guest in Guest::each() {
        let nonce = nonce();
        let mut command = text(": >/tmp/started; : >started");
        command.working_directory = Some("/nope".into());
        let output = run(&guest, &command, &nonce);
        assert_eq!(
            output.status.code(),
            Some(i32::from(START_FAILURE_EXIT_CODE))
        );
        assert_eq!(output.stdout, b"");
        let fault = WorkingDirectoryFault::Missing;
        assert_eq!(
            failure(&output, &nonce),
            Some(Refusal::WorkingDirectory(fault))
        );
        assert!(!guest.home().join("started").exists());
    }
}

#[test]
fn r20_a_command_that_ends_with_the_same_code_is_not_taken_for_a_failure() {
    for guest in Guest::each() {
        let nonce = nonce();
        let output = run(
            &guest,
            &text("echo beachside:x:refused:temp:end:x >&2; exit 125"),
            &nonce,
        );
        assert_eq!(output.status.code(), Some(125));
        assert_eq!(failure(&output, &nonce), None);
    }
}

#[test]
fn b6_a_live_program_that_is_not_there_is_named_alone() {
    for guest in Guest::each() {
        let nonce = nonce();
        let output = run(&guest, &argv(&["echo hi"]), &nonce);
        assert_eq!(output.status.code(), Some(127), "{:?}", guest.shell);
        assert_eq!(output.stderr, b"echo hi: not found\n");
        assert_eq!(failure(&output, &nonce), None);
    }
}

#[test]
fn r19_a_live_command_names_a_missing_env() {
    for guest in Guest::each() {
        fs::remove_file(guest.bin().join("env")).unwrap();
        let nonce = nonce();
        let output = run(&guest, &text("true"), &nonce);
        assert_eq!(
            failure(&output, &nonce),
            Some(Refusal::MissingTool("env".into()))
        );
    }
}

#[test]
fn e7_a_long_live_command_travels_as_a_file_and_leaves_none() {
    for guest in Guest::each() {
        let nonce = nonce();
        let long = "x".repeat(130_000);
        let command = argv(&["/usr/bin/printf", "%s", &long]);
        assert!(wrap_live(&command, &nonce).unwrap().upload.is_some());
        let output = run(&guest, &command, &nonce);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(0), 130_000),
            "{:?}",
            guest.shell
        );
        assert!(litter(&nonce).is_empty());

        let lost = wrap_live(&command, &nonce).unwrap();
        let output = guest.process(&lost.command).output().unwrap();
        assert_eq!(
            failure(&output, &nonce),
            Some(Refusal::ScriptMissing),
            "{:?}",
            guest.shell
        );
    }
}
