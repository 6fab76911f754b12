//! What a program receives: its arguments, its environment and its directory.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use beachside_runloop::shell::{Command, MAX_COMMAND_BYTES, MAX_STRING_BYTES, Program};

use crate::harness::{Guest, argv, text};

const SHOW: &str = "/usr/bin/printf";

#[test]
fn r14_e1_argv_stays_separate_arguments() {
    let odd = [
        "a b",
        "",
        "it's",
        "$(id)",
        "`id`",
        "*",
        "a\nb",
        "-n",
        "\\",
        "\"",
        "é",
        "\t",
        "!x",
        "~",
        "x\n\n",
        "{a,b}",
        "a=b",
        "--",
        "#",
        "日本",
        "\u{1}\u{7f}",
    ];
    for guest in Guest::each() {
        let mut words = vec![SHOW, "[%s]\\n"];
        words.extend(odd);
        let finished = guest.exec(&argv(&words));
        let expected: String = odd.iter().map(|word| format!("[{word}]\n")).collect();
        assert_eq!(finished.stdout_text(), expected, "{:?}", guest.shell);
        assert_eq!(finished.code, 0);
        assert_eq!(finished.stderr_text(), "");
    }
}

#[test]
fn r14_c6_trailing_newlines_of_arguments_and_variables_are_kept() {
    for guest in Guest::each() {
        let finished = guest.exec(&argv(&[SHOW, "%s", "x\n\n"]));
        assert_eq!(finished.stdout_text(), "x\n\n");
        let mut command = argv(&["/usr/bin/printenv", "V"]);
        command.environment.push(("V".into(), "v\n\n".into()));
        assert_eq!(guest.exec(&command).stdout_text(), "v\n\n\n");
    }
}

/// A program in the guest that prints its own name and its arguments.
fn install(guest: &Guest, name: &str) -> String {
    let path = guest.bin().join(name);
    fs::write(
        &path,
        "#!/bin/sh\nprintf '%s|' \"${0##*/}\" \"$@\" \"$MARK\"\n",
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn r14_e1_a_program_with_an_odd_name_is_found_on_path() {
    for guest in Guest::each() {
        for name in [
            "-x",
            "A=B",
            "-A=B",
            "with space",
            "it's",
            "é",
            "exit",
            "cd",
            "--",
        ] {
            let path = install(&guest, name);
            for variables in [vec![], vec![("MARK".to_owned(), "m".to_owned())]] {
                let mark = variables.first().map_or("", |(_, value)| value.as_str());
                for program in [name, path.as_str()] {
                    let mut command = argv(&[program, "-n", "x=y", ""]);
                    command.environment = variables.clone();
                    let finished = guest.exec(&command);
                    assert_eq!(
                        (
                            finished.code,
                            finished.stdout_text(),
                            finished.stderr_text()
                        ),
                        (0, format!("{name}|-n|x=y||{mark}|"), String::new()),
                        "{:?} {name}",
                        guest.shell
                    );
                }
            }
        }
    }
}

#[test]
fn b3_a_program_named_like_an_assignment_dies_by_a_signal_without_a_word_of_the_shell() {
    for guest in Guest::each() {
        for name in ["A=B", "-A=B"] {
            let path = guest.bin().join(name);
            fs::write(&path, "#!/bin/sh\nkill -9 $$\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            let finished = guest.exec(&argv(&[name]));
            let stderr = finished.stderr_text();
            assert_eq!(
                (finished.code, stderr.as_str()),
                (137, ""),
                "{:?}",
                guest.shell
            );
        }
    }
}

#[test]
fn r14_e5_environment_values_arrive_byte_for_byte() {
    let long = "x".repeat(100 * 1024);
    for guest in Guest::each() {
        for value in [
            "hello world",
            "a'b\"c",
            "$HOME",
            "x\ny",
            "",
            "é",
            "=",
            "v\n\n",
            "-i",
            &long,
        ] {
            for name in [
                "V",
                "__proto__",
                "_bs_d",
                "UID",
                "RANDOM",
                "OPTIND",
                "LINENO",
                "IFS",
                "PS4",
            ] {
                let mut command = argv(&["/usr/bin/printenv", name]);
                command.environment.push((name.into(), value.into()));
                let finished = guest.exec(&command);
                assert_eq!(
                    finished.stdout_text(),
                    format!("{value}\n"),
                    "{:?} {name}",
                    guest.shell
                );
            }
        }
    }
}

#[test]
fn r14_the_wrapper_leaves_no_variable_of_its_own_in_the_environment() {
    for mut guest in Guest::each() {
        guest
            .environment
            .insert("_bs_d".into(), "the image's own".into());
        guest
            .environment
            .insert("POSIXLY_CORRECT".into(), "1".into());
        let finished = guest.exec(&argv(&["/usr/bin/env"]));
        let names: Vec<_> = finished
            .stdout_text()
            .lines()
            .filter_map(|line| line.split('=').next().map(str::to_owned))
            .filter(|name| {
                !["PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "_bs_d"].contains(&name.as_str())
            })
            .collect();
        assert_eq!(names, ["POSIXLY_CORRECT"], "{:?}", guest.shell);
    }
}

#[test]
fn r14_shell_text_finds_its_shell_whatever_path_it_is_given() {
    for guest in Guest::each() {
        let mut command = text("echo $PATH; exit 3");
        command.environment.push(("PATH".into(), "/nowhere".into()));
        let finished = guest.exec(&command);
        assert_eq!(
            (finished.code, finished.stdout_text().as_str()),
            (3, "/nowhere\n")
        );
        let mut command = argv(&["printf", "%s", "own"]);
        command.environment.push(("PATH".into(), "/usr/bin".into()));
        assert_eq!(guest.exec(&command).stdout_text(), "own");
    }
}

#[test]
fn e2_shell_text_of_every_shape_ends_at_once() {
    for guest in Guest::each() {
        let odd = guest.bin().join("-o");
        fs::write(&odd, "#!/bin/sh\nprintf odd\n").unwrap();
        fs::set_permissions(&odd, fs::Permissions::from_mode(0o755)).unwrap();
        for (script, stdout) in [
            ("PATH=/bin:/usr/bin; cat <<'EOF'\nhello\nEOF", "hello\n"),
            ("printf a \\", "a"),
            ("printf a # x", "a"),
            ("printf a &\nwait", "a"),
            ("printf a\nprintf b", "ab"),
            ("", ""),
            ("# nothing", ""),
            ("printf '%s' 'it'\\''s'", "it's"),
            ("printf \"a\rb\"", "a\rb"),
            ("-o", "odd"),
        ] {
            let finished = guest.exec(&text(script));
            assert_eq!(
                finished.stdout_text(),
                stdout,
                "{:?} {script:?}",
                guest.shell
            );
            assert_eq!(finished.code, 0, "{:?} {script:?}", guest.shell);
        }
        for script in ["printf 'a", "if true", "(", "echo a; )"] {
            let finished = guest.exec(&text(script));
            assert!(
                (1..=2).contains(&finished.code),
                "{:?} {script:?} {}",
                guest.shell,
                finished.code
            );
            assert_ne!(finished.stderr_text(), "", "the shell says what is wrong");
        }
        assert_eq!(guest.exec(&text("true")).code, 0);
    }
}

#[test]
fn r14_e3_a_command_starts_in_its_directory_and_stays_there() {
    for guest in Guest::each() {
        for name in [
            "plain",
            "with space",
            "-",
            "-P",
            "new\nline",
            "end\n",
            "é日本",
            "$HOME",
            "~",
            "*",
            "it's",
        ] {
            let path = guest.home().join(name);
            fs::create_dir(&path).unwrap();
            let absolute = path.to_str().unwrap().to_owned();
            for directory in [name.to_owned(), absolute.clone()] {
                for script in ["pwd", "true & wait; pwd", "false || pwd", "true\npwd"] {
                    let mut command = text(script);
                    command.working_directory = Some(directory.clone());
                    let finished = guest.exec(&command);
                    assert_eq!(
                        finished.stdout_text(),
                        format!("{absolute}\n"),
                        "{:?}",
                        guest.shell
                    );
                }
            }
        }
    }
}

#[test]
fn r14_a_parent_behind_a_link_is_the_parent_of_where_the_link_leads() {
    for guest in Guest::each() {
        let home = guest.home();
        fs::create_dir_all(home.join("a/b")).unwrap();
        symlink("a/b", home.join("link")).unwrap();
        let mut command = text("pwd -P");
        command.working_directory = Some("link/..".into());
        let expected = format!("{}\n", home.join("a").display());
        assert_eq!(
            guest.exec(&command).stdout_text(),
            expected,
            "{:?}",
            guest.shell
        );
    }
}

#[test]
fn r14_without_a_directory_a_command_starts_at_home() {
    for guest in Guest::each() {
        let finished = guest.exec(&text("pwd"));
        assert_eq!(
            finished.stdout_text().trim_end(),
            guest.home().to_str().unwrap()
        );
    }
}

#[test]
fn r14_cdpath_does_not_move_a_relative_directory() {
    for mut guest in Guest::each() {
        fs::create_dir_all(guest.home().join("elsewhere/project")).unwrap();
        fs::create_dir(guest.home().join("project")).unwrap();
        let elsewhere = guest.home().join("elsewhere").to_str().unwrap().to_owned();
        guest.environment.insert("CDPATH".into(), elsewhere);
        let mut command = text("pwd");
        command.working_directory = Some("project".into());
        let expected = format!("{}\n", guest.home().join("project").display());
        assert_eq!(
            guest.exec(&command).stdout_text(),
            expected,
            "{:?}",
            guest.shell
        );
    }
}

#[test]
fn e7_the_wrapper_does_not_shrink_the_limit_of_one_argument() {
    for guest in Guest::each() {
        for bytes in [
            100 * 1024,
            MAX_COMMAND_BYTES - 1,
            MAX_COMMAND_BYTES,
            MAX_STRING_BYTES,
        ] {
            let long = "x".repeat(bytes);
            let finished = guest.exec(&argv(&[SHOW, "%s", &long]));
            assert_eq!(
                (finished.code, finished.stdout.len()),
                (0, bytes),
                "{:?}",
                guest.shell
            );
            let mut command = argv(&["/usr/bin/printenv", "V"]);
            let value = long.get(2..).unwrap().to_owned();
            command.environment.push(("V".into(), value));
            assert_eq!(
                guest.exec(&command).stdout.len(),
                bytes - 1,
                "{:?}",
                guest.shell
            );
        }
        let script = format!("exit 7 #{}", "x".repeat(MAX_STRING_BYTES - 8));
        assert_eq!(guest.exec(&text(&script)).code, 7, "{:?}", guest.shell);
        let quotes = "'".repeat(MAX_STRING_BYTES);
        assert_eq!(
            guest.exec(&argv(&[SHOW, "%s", &quotes])).stdout_text(),
            quotes
        );
    }
}

#[test]
fn e7_three_thousand_arguments_work() {
    for guest in Guest::each() {
        let words: Vec<String> = (0..3_000).map(|number| format!("{number:0>100}")).collect();
        let mut all = vec![SHOW.to_owned(), "%s".to_owned()];
        all.extend(words.iter().cloned());
        let finished = guest.exec(&Command::new(Program::Arguments(all)));
        assert_eq!(finished.stdout_text(), words.concat());
    }
}

#[test]
fn e7_more_than_the_guest_takes_in_total_is_exit_code_126_with_a_message() {
    for guest in Guest::each() {
        let long = "x".repeat(MAX_STRING_BYTES);
        let mut words = vec![SHOW.to_owned(), "%s".to_owned()];
        words.extend(std::iter::repeat_n(long, 60));
        let finished = guest.exec(&Command::new(Program::Arguments(words)));
        assert_eq!(
            finished.code,
            126,
            "{:?} {}",
            guest.shell,
            finished.stderr_text()
        );
        assert_eq!(finished.stdout_text(), "");
        assert!(
            finished.stderr_text().to_lowercase().contains("too long"),
            "{}",
            finished.stderr_text()
        );
    }
}
