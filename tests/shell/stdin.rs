//! What a program reads from its standard input.

use std::fs;
use std::os::unix::fs::symlink;

use beachside_runloop::shell::{CleanUp, Refusal, read_result, wrap};

use crate::harness::{Guest, argv, litter, nonce, text};

#[test]
fn g1_without_input_a_command_gets_the_end_of_file_at_once() {
    for guest in Guest::each() {
        let finished = guest.exec(&argv(&["/bin/cat"]));
        assert_eq!(
            (finished.code, finished.stdout.len()),
            (0, 0),
            "{:?}",
            guest.shell
        );
        let finished = guest.exec_with_stdin(&argv(&["/bin/cat"]), b"");
        assert_eq!(
            (finished.code, finished.stdout.len()),
            (0, 0),
            "{:?}",
            guest.shell
        );
    }
}

#[test]
fn r16_g1_g3_input_arrives_byte_for_byte() {
    let all: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for guest in Guest::each() {
        for bytes in [
            b"hello".as_slice(),
            b"a\n\n",
            b"\xff",
            b"\0",
            &all,
            b"\xef\xbb\xbfx",
        ] {
            let finished = guest.exec_with_stdin(&argv(&["/bin/cat"]), bytes);
            assert!(finished.stdout == bytes, "{:?}", guest.shell);
        }
        let finished = guest.exec_with_stdin(&argv(&["/usr/bin/sort"]), b"b\na\n");
        assert_eq!(finished.stdout_text(), "a\nb\n");
        assert_eq!(guest.exec_with_stdin(&argv(&["sh"]), b"exit 3\n").code, 3);
    }
}

#[test]
fn r16_the_input_file_has_no_name_and_no_other_reader_once_the_command_runs() {
    for guest in Guest::each() {
        let mut guest = guest;
        let tools = guest.bin().to_str().unwrap().to_owned();
        guest
            .environment
            .insert("PATH".into(), format!("{tools}:/bin:/usr/bin"));
        let script = "ls -d /tmp/beachside-stdin-* 2>/dev/null | grep -c \"$NONCE\"
            stat -L -c '%a %h' /proc/self/fd/0; cat";
        let nonce = nonce();
        let mut command = text(script);
        command.stdin_bytes = Some(3);
        command
            .environment
            .push(("NONCE".into(), nonce.to_string()));
        fs::write(nonce.stdin_path(), "abc").unwrap();
        let printed = guest.run(&wrap(&command, &nonce).unwrap());
        let result = read_result(&printed, &nonce).unwrap().unwrap();
        let stdout = crate::harness::fetch(&result.stdout);
        assert_eq!(
            String::from_utf8(stdout).unwrap(),
            "0\n600 0\nabc",
            "{:?}",
            guest.shell
        );
    }
}

#[test]
fn r16_input_that_is_missing_short_or_a_link_refuses_the_command() {
    for guest in Guest::each() {
        let marker = guest.home().join("started");
        let mut command = text(": >started");
        command.stdin_bytes = Some(5);
        let refusal = guest.try_exec(&command).unwrap_err();
        assert_eq!(refusal, Refusal::StdinMissing, "{:?}", guest.shell);

        let short = nonce();
        fs::write(short.stdin_path(), "abc").unwrap();
        let printed = guest.run(&wrap(&command, &short).unwrap());
        assert_eq!(
            read_result(&printed, &short).unwrap(),
            Err(Refusal::StdinIncomplete)
        );
        assert!(litter(&short).is_empty(), "{:?}", guest.shell);

        let planted = nonce();
        symlink("/etc/passwd", planted.stdin_path()).unwrap();
        let printed = guest.run(&wrap(&command, &planted).unwrap());
        assert_eq!(
            read_result(&printed, &planted).unwrap(),
            Err(Refusal::StdinMissing)
        );
        assert_eq!(guest.clean_up(&planted), CleanUp::Clean);
        assert!(!marker.exists(), "{:?}", guest.shell);
    }
}

#[test]
fn b4_input_reaches_the_command_itself_and_only_once() {
    for guest in Guest::each() {
        let script = "read -r first; printf '%s|' \"$first\"; /bin/cat";
        let finished = guest.exec_with_stdin(&text(script), b"one\ntwo\n");
        assert_eq!(finished.stdout_text(), "one|two\n", "{:?}", guest.shell);
    }
}
