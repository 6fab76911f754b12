//! Calls that do not start, and say why.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use beachside_runloop::shell::{Refusal, WorkingDirectoryFault, read_result, wrap};

use crate::harness::{Guest, TOOLS, is_root, litter, nonce, text};

#[test]
fn r19_a_missing_tool_is_named_and_the_command_does_not_start() {
    for tool in TOOLS.iter().filter(|tool| **tool != "sh") {
        for guest in Guest::each() {
            fs::remove_file(guest.bin().join(tool)).unwrap();
            let refusal = guest.try_exec(&text(": >started")).unwrap_err();
            assert_eq!(
                refusal,
                Refusal::MissingTool((*tool).to_owned()),
                "{:?}",
                guest.shell
            );
            assert!(!guest.home().join("started").exists());
        }
    }
}

#[test]
fn r19_every_path_through_the_wrapper_needs_no_tool_but_those_it_names() {
    for guest in Guest::each() {
        let installed = fs::read_dir(guest.bin()).unwrap().count();
        assert_eq!(
            installed,
            TOOLS.len(),
            "the guest's PATH holds nothing else"
        );
        for size in [0, 10, 100_000] {
            let write = format!("head -c {size} /dev/zero; head -c {size} /dev/zero >&2");
            let long = format!("{write} # {}", "x".repeat(125_000));
            for script in [write.as_str(), long.as_str()] {
                let mut command = text(script);
                command.working_directory = Some("/".into());
                command.environment.push(("A".into(), "b".into()));
                let finished = guest.exec_with_stdin(&command, b"input");
                assert_eq!(finished.code, 0);
                assert_eq!((finished.stdout.len(), finished.stderr.len()), (size, size));
            }
        }
    }
}

#[test]
fn e3_a_directory_that_cannot_be_entered_is_told_and_nothing_runs() {
    for guest in Guest::each() {
        let home = guest.home();
        fs::write(home.join("file"), "").unwrap();
        symlink("nowhere", home.join("dangling")).unwrap();
        for (directory, fault) in [
            ("/nope", WorkingDirectoryFault::Missing),
            ("nope", WorkingDirectoryFault::Missing),
            ("-", WorkingDirectoryFault::Missing),
            ("~", WorkingDirectoryFault::Missing),
            ("file", WorkingDirectoryFault::NotDirectory),
            ("dangling", WorkingDirectoryFault::NotDirectory),
        ] {
            let nonce = nonce();
            let mut command = text("true; : >/tmp/started-$NONCE; : >started");
            command
                .environment
                .push(("NONCE".into(), nonce.to_string()));
            command.working_directory = Some(directory.into());
            command.stdin_bytes = Some(1);
            fs::write(nonce.stdin_path(), "x").unwrap();
            let printed = guest.run(&wrap(&command, &nonce).unwrap());
            let outcome = read_result(&printed, &nonce).unwrap();
            assert_eq!(
                outcome,
                Err(Refusal::WorkingDirectory(fault)),
                "{:?} {directory}",
                guest.shell
            );
            assert!(litter(&nonce).is_empty(), "the uploaded input is gone too");
            assert!(!home.join("started").exists());
        }
    }
}

#[test]
fn e3_a_directory_without_permission_is_told_apart() {
    // Root enters every directory, so the guest runs as nobody here.
    for guest in Guest::each() {
        let closed = guest.home().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let nonce = nonce();
        let mut command = text("true");
        command.working_directory = Some("closed".into());
        let wrapped = wrap(&command, &nonce).unwrap();
        let output = guest.run_unprivileged(&wrapped.command);
        let outcome = read_result(&output, &nonce).unwrap();
        let fault = WorkingDirectoryFault::Permission;
        assert_eq!(
            outcome,
            Err(Refusal::WorkingDirectory(fault)),
            "{:?}",
            guest.shell
        );
    }
}

#[test]
fn r16_input_that_cannot_be_unlinked_refuses_the_command() {
    assert!(
        is_root(),
        "this test plants a file of another user: run it as root"
    );
    for guest in Guest::each() {
        let nonce = nonce();
        let mut command = text(": >/tmp/started-$NONCE");
        command
            .environment
            .push(("NONCE".into(), nonce.to_string()));
        command.stdin_bytes = Some(1);
        fs::write(nonce.stdin_path(), "x").unwrap();
        fs::set_permissions(nonce.stdin_path(), fs::Permissions::from_mode(0o644)).unwrap();
        let wrapped = wrap(&command, &nonce).unwrap();
        let printed = guest.run_unprivileged(&wrapped.command);
        assert_eq!(
            read_result(&printed, &nonce).unwrap(),
            Err(Refusal::StdinKept)
        );
        assert_eq!(
            litter(&nonce),
            [std::path::PathBuf::from(nonce.stdin_path())]
        );
        fs::remove_file(nonce.stdin_path()).unwrap();
    }
}

#[test]
fn e7_a_script_that_was_not_uploaded_is_told() {
    for guest in Guest::each() {
        let nonce = nonce();
        let wrapped = wrap(
            &text(&format!(": >started; # {}", "x".repeat(125_000))),
            &nonce,
        )
        .unwrap();
        assert!(wrapped.upload.is_some());
        let output = guest.process(&wrapped.command).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            read_result(&printed, &nonce).unwrap(),
            Err(Refusal::ScriptMissing)
        );
        assert!(!guest.home().join("started").exists());
    }
}

#[test]
fn e7_a_script_that_was_cut_on_its_way_does_nothing() {
    for guest in Guest::each() {
        let nonce = nonce();
        let wrapped = wrap(&text(": >started"), &nonce).unwrap();
        let script = wrapped.command;
        for part in 1..10 {
            let cut = script.get(..script.len() * part / 10).unwrap();
            let output = guest.process(cut).output().unwrap();
            assert!(
                output.stdout.is_empty(),
                "{:?}",
                String::from_utf8_lossy(&output.stdout)
            );
            assert!(
                !guest.home().join("started").exists(),
                "{:?} {part}",
                guest.shell
            );
            assert!(litter(&nonce).is_empty(), "{:?} {part}", guest.shell);
        }
    }
}
