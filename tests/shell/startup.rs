//! Shells that were changed before the script began: profiles, `BASH_ENV`, exported functions.

use std::fs;

use beachside_runloop::shell::{RecordError, read_result, wrap};

use crate::harness::{Guest, Shell, argv, nonce, text};

/// What a profile might do that must not change a result.
const DISTURBANCES: [&str; 12] = [
    "echo MOTD; echo W >&2",
    "printf 'no newline'",
    "set -e; set -u",
    "set -f; set -C; set -x; set -v; set -a",
    "alias printf=false echo=false rm=false wc=false test=false head=false; cd /",
    "alias env=false mktemp=false cd=false exec=false exit=false trap=false unset=false",
    "rm() { echo fake; }; wc() { echo 1; }; head() { :; }; base64() { echo AAAA; }; cd() { :; }",
    "test() { false; }; echo() { :; }; command() { :; }; env() { :; }; mktemp() { echo /; }; tr() { :; }; true() { false; }",
    "trap 'echo bye; exit 0' EXIT",
    "umask 077; IFS=/0123456789abcdef",
    "read x; exec </dev/null",
    "d=/ o=1 e=2 code=7; HISTFILE=/dev/null; _bs_d=/nowhere; _bs_c=3",
];

#[test]
fn e6_start_up_files_do_not_change_a_result() {
    for mut guest in Guest::each() {
        let login = match guest.shell {
            Shell::Dash | Shell::Busybox => "-l",
            Shell::Bash => "--login",
        };
        guest.flags = vec![login];
        for disturbance in DISTURBANCES {
            fs::write(guest.home().join(".profile"), format!("{disturbance}\n")).unwrap();
            // /etc/profile runs first and may set a PATH of its own.
            let path = guest.bin().to_str().unwrap().to_owned();
            let profile = format!("PATH={path}\n{disturbance}\n");
            fs::write(guest.home().join(".profile"), profile).unwrap();
            let finished = guest.exec(&argv(&["/usr/bin/printf", "ok"]));
            assert_eq!(
                (
                    finished.code,
                    finished.stdout_text().as_str(),
                    finished.stderr_text().as_str()
                ),
                (0, "ok", ""),
                "{:?} {disturbance}",
                guest.shell
            );
            let finished = guest.exec(&text("pwd; exit 3"));
            let home = format!("{}\n", guest.home().display());
            assert_eq!(
                (finished.code, finished.stdout_text()),
                (3, home),
                "{:?} {disturbance}",
                guest.shell
            );
        }
    }
}

#[test]
fn e6_bash_env_does_not_change_a_result() {
    let mut guest = Guest::new(Shell::Bash);
    let file = guest.home().join("env.sh");
    guest
        .environment
        .insert("BASH_ENV".into(), file.to_str().unwrap().to_owned());
    guest
        .environment
        .insert("ENV".into(), file.to_str().unwrap().to_owned());
    let more = [
        "shopt -s expand_aliases; alias printf=false echo=false rm=false unalias=false trap=false",
        "unset() { :; }; set() { :; }; trap() { :; }; exec() { :; }; exit() { :; }",
        "set -o posix",
        "set -m",
        "set -T; trap 'echo debug' DEBUG",
        "set -E; trap 'echo err' ERR",
        "shopt -s nullglob failglob xpg_echo",
        "set -k",
        "readonly -f rm 2>/dev/null; readonly HOME PATH",
    ];
    for disturbance in DISTURBANCES.iter().chain(&more) {
        fs::write(&file, format!("{disturbance}\n")).unwrap();
        let finished = guest.exec(&argv(&["/usr/bin/printf", "ok"]));
        assert_eq!(
            (finished.code, finished.stdout_text().as_str()),
            (0, "ok"),
            "{disturbance}"
        );
        assert_eq!(finished.stderr_text(), "", "{disturbance}");
    }
}

#[test]
fn e6_exported_functions_and_options_do_not_change_a_result() {
    let mut guest = Guest::new(Shell::Bash);
    for name in [
        "rm", "wc", "head", "cd", "echo", "test", "command", "env", "mktemp", "unset", "set",
        "trap", "exec",
    ] {
        guest
            .environment
            .insert(format!("BASH_FUNC_{name}%%"), "() { printf fake; }".into());
    }
    guest.environment.insert(
        "SHELLOPTS".into(),
        "errexit:nounset:xtrace:noclobber".into(),
    );
    let finished = guest.exec(&argv(&["/usr/bin/printf", "ok"]));
    assert_eq!((finished.code, finished.stdout_text().as_str()), (0, "ok"));
}

#[test]
fn e6_a_profile_that_ends_the_shell_shows_as_a_missing_record_never_as_success() {
    for mut guest in Guest::each() {
        guest.flags = vec!["-l"];
        for ending in ["exit 0", "exec true", "kill -9 $$"] {
            fs::write(guest.home().join(".profile"), format!("{ending}\n")).unwrap();
            let nonce = nonce();
            let printed = guest.run(&wrap(&text("true"), &nonce).unwrap());
            assert_eq!(
                read_result(&printed, &nonce),
                Err(RecordError::Missing),
                "{:?}",
                guest.shell
            );
        }
    }
}

#[test]
fn e6_variables_for_shells_reach_the_command_and_leave_the_wrapper_alone() {
    for guest in Guest::each() {
        let file = guest.home().join("startup.sh");
        fs::write(&file, "echo noise; cd /; exit 4\n").unwrap();
        let path = file.to_str().unwrap().to_owned();
        for command in [argv(&["/usr/bin/printf", "ok"]), text("printf ok")] {
            let mut command = command;
            for name in ["BASH_ENV", "ENV"] {
                command.environment.push((name.into(), path.clone()));
            }
            let finished = guest.exec(&command);
            assert_eq!(
                (finished.code, finished.stdout_text().as_str()),
                (0, "ok"),
                "{:?}",
                guest.shell
            );
        }
    }
}

#[test]
fn b5_the_service_may_put_words_around_the_script() {
    for guest in Guest::each() {
        let nonce = nonce();
        let command = wrap(&text("echo in; exit 3"), &nonce).unwrap().command;
        for script in [
            format!("cd / && {command}"),
            format!("{{ {command}\n}}; echo after $?"),
            format!("echo before; {command}\necho after $?"),
            format!("eval {}", beachside_runloop::shell::quote(&command)),
        ] {
            let output = guest.process(&script).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let result = read_result(&printed, &nonce).unwrap().unwrap();
            assert_eq!(result.exit_code, 3, "{:?} {script}", guest.shell);
            if script.contains("after") {
                assert!(printed.ends_with("after 3\n"), "{printed}");
            }
        }
    }
}
