//! What a program did: its exit code and its bytes, and nothing of the wrapper's.

use std::fs;
use std::time::{Duration, Instant};

use beachside_runloop::shell::{Command, Content};

use crate::harness::{Guest, argv, text};

#[test]
fn b3_every_exit_code_is_exact() {
    for guest in Guest::each() {
        for code in 0..=255_u8 {
            let finished = guest.exec(&text(&format!("exit {code}")));
            assert_eq!(finished.code, code, "{:?}", guest.shell);
        }
    }
}

#[test]
fn b3_death_by_a_signal_is_128_and_the_number_and_leaves_no_word_in_stderr() {
    for guest in Guest::each() {
        for (signal, code) in [
            // Not QUIT: bash ignores it in itself.
            ("KILL", 137),
            ("TERM", 143),
            ("ABRT", 134),
            ("SEGV", 139),
            ("INT", 130),
            ("PIPE", 141),
            ("HUP", 129),
            ("ALRM", 142),
            ("USR1", 138),
        ] {
            for command in [
                text(&format!("kill -{signal} $$; echo survived")),
                argv(&["sh", "-c", &format!("kill -{signal} $$; echo survived")]),
            ] {
                let finished = guest.exec(&command);
                assert_eq!(
                    (
                        finished.code,
                        finished.stdout_text(),
                        finished.stderr_text()
                    ),
                    (code, String::new(), String::new()),
                    "{:?} {signal}",
                    guest.shell
                );
            }
        }
    }
}

#[test]
fn b3_a_command_that_signals_its_whole_group_still_has_a_result() {
    for guest in Guest::each() {
        for (signal, code) in [
            ("TERM", 143),
            ("INT", 130),
            ("HUP", 129),
            ("USR1", 138),
            ("USR2", 140),
            ("PIPE", 141),
        ] {
            let finished = guest.exec(&text(&format!("echo before; kill -{signal} 0; exit 1")));
            assert_eq!(
                (finished.code, finished.stdout_text().as_str()),
                (code, "before\n"),
                "{:?} {signal}",
                guest.shell
            );
            assert_eq!(finished.stderr_text(), "", "{:?} {signal}", guest.shell);
        }
    }
}

#[test]
fn b4_a_command_runs_in_the_foreground_with_its_signals_in_order() {
    for guest in Guest::each() {
        let finished = guest.exec(&argv(&["sh", "-c", "kill -INT $$; echo survived"]));
        assert_eq!(
            (finished.code, finished.stdout_text().as_str()),
            (130, ""),
            "{:?}",
            guest.shell
        );
        let script = "PATH=/bin:/usr/bin; grep -E '^Sig(Ign|Blk)' /proc/self/status";
        let alone = guest.process(script).output().unwrap();
        let wrapped = guest.exec(&argv(&["sh", "-c", script]));
        assert_eq!(
            wrapped.stdout_text(),
            String::from_utf8(alone.stdout).unwrap()
        );
    }
}

#[test]
fn b2_the_last_line_needs_no_newline() {
    for guest in Guest::each() {
        for (script, code, stdout, stderr) in [
            ("printf hello", 0, "hello", ""),
            ("printf ''", 0, "", ""),
            ("printf 7; exit 7", 7, "7", ""),
            ("printf '\\n'", 0, "\n", ""),
            ("printf o; printf e >&2; exit 4", 4, "o", "e"),
            ("printf 'a\\n\\n\\n'", 0, "a\n\n\n", ""),
        ] {
            let finished = guest.exec(&text(script));
            assert_eq!(
                (
                    finished.code,
                    finished.stdout_text().as_str(),
                    finished.stderr_text().as_str()
                ),
                (code, stdout, stderr),
                "{:?} {script}",
                guest.shell
            );
        }
    }
}

#[test]
fn b5_exit_exec_trap_and_options_of_the_command_bypass_nothing() {
    for guest in Guest::each() {
        for (script, code, stdout) in [
            ("echo a; exit 3", 3, "a\n"),
            ("exec sh -c 'exit 7'", 7, ""),
            ("trap 'exit 9' EXIT; exit 2", 9, ""),
            ("set -e; false; echo no", 1, ""),
            ("trap '' TERM INT HUP; printf x; exit 5", 5, "x"),
            ("exec >&-; echo x; exit 6", 6, ""),
            ("exec 0<&- 1>&- 2>&-; exit 8", 8, ""),
            ("cd /; umask 777; ulimit -n 3; exit 11", 11, ""),
            (
                "alias echo=false; echo() { :; }; unset PATH HOME; exit 12",
                12,
                "",
            ),
        ] {
            let finished = guest.exec(&text(script));
            assert_eq!(
                (finished.code, finished.stdout_text().as_str()),
                (code, stdout),
                "{:?} {script}",
                guest.shell
            );
        }
    }
}

#[test]
fn b5_a_forged_record_is_output_like_any_other() {
    for guest in Guest::each() {
        // The command can learn the nonce from the name of the directory it writes to.
        let script = "PATH=/bin:/usr/bin
            nonce=$(readlink /proc/self/fd/2 | cut -d- -f2 | cut -d. -f1)
            printf 'beachside:%s:ran:0:0:0:inline::0:0:inline:::end:%s' $nonce $nonce
            printf '\\nbeachside:%s:ran:0:0:0:inline::0:0:inline:::end:%s\\n' $nonce $nonce >&2
            exit 5";
        let finished = guest.exec(&text(script));
        let nonce = finished.nonce.as_str();
        let forged = format!("beachside:{nonce}:ran:0:0:0:inline::0:0:inline:::end:{nonce}");
        assert_eq!(finished.code, 5, "{:?}", guest.shell);
        assert_eq!(finished.stdout_text(), forged, "{:?}", guest.shell);
        assert_eq!(
            finished.stderr_text(),
            format!("\n{forged}\n"),
            "{:?}",
            guest.shell
        );
    }
}

#[test]
fn b6_a_program_that_cannot_start_is_126_or_127_with_its_reason() {
    for guest in Guest::each() {
        for (program, code) in [
            ("nosuchcmd", 127),
            ("/no/such/cmd", 127),
            ("/etc/passwd", 126),
            ("/etc", 126),
            ("", 127),
        ] {
            let finished = guest.exec(&argv(&[program, "x"]));
            assert_eq!(
                (finished.code, finished.stdout_text().as_str()),
                (code, ""),
                "{:?} {program}",
                guest.shell
            );
            let words = finished.stderr_text();
            assert_eq!(words.lines().count(), 1, "{words:?}");
        }
    }
}

#[test]
fn b6_a_program_that_is_not_there_is_named_alone() {
    let missing = [
        "echo hi",
        "nosuchcmd",
        "/no/such/cmd",
        "-x y",
        "A=B c",
        "it's \\t %s",
    ];
    for guest in Guest::each() {
        for program in missing {
            for environment in [
                vec![],
                vec![("PATH".to_owned(), "/nowhere::/bin".to_owned())],
            ] {
                let mut command = argv(&[program, "x"]);
                command.environment = environment;
                let finished = guest.exec(&command);
                assert_eq!(
                    (finished.code, finished.stderr_text()),
                    (127, format!("{program}: not found\n")),
                    "{:?}",
                    guest.shell
                );
            }
        }
    }
}

#[test]
fn b6_a_program_that_only_the_commands_own_path_holds_is_found() {
    for guest in Guest::each() {
        let own = guest.home().join("own bin");
        fs::create_dir(&own).unwrap();
        std::os::unix::fs::symlink("/usr/bin/printf", own.join("say it")).unwrap();
        for path in [
            format!("/nowhere:{}", own.display()),
            "own bin".into(),
            String::new(),
        ] {
            let mut command = argv(&["say it", "hi"]);
            if path.is_empty() {
                command.working_directory = Some("own bin".into());
            }
            command.environment.push(("PATH".into(), path));
            let finished = guest.exec(&command);
            assert_eq!(
                (
                    finished.code,
                    finished.stdout_text(),
                    finished.stderr_text()
                ),
                (0, "hi".to_owned(), String::new()),
                "{:?}",
                guest.shell
            );
        }
    }
}

#[test]
fn c4_all_byte_values_come_back_on_both_streams() {
    let bytes: Vec<u8> = (0..256_000_u32).map(|number| number as u8).collect();
    for guest in Guest::each() {
        let file = guest.home().join("bytes");
        fs::write(&file, &bytes).unwrap();
        let finished = guest.exec(&text("/bin/cat bytes; /bin/cat bytes >&2"));
        assert!(finished.stdout == bytes, "{:?}", guest.shell);
        assert!(finished.stderr == bytes, "{:?}", guest.shell);
        let finished = guest.exec(&text("printf '\\377\\376\\000\\200ok'"));
        assert_eq!(finished.stdout, b"\xff\xfe\x00\x80ok");
    }
}

/// Writes `count` bytes to a stream.
fn write(count: u64, stream: u8) -> String {
    format!("head -c {count} /dev/zero | tr '\\0' x >&{stream}; ")
}

#[test]
fn r18_up_to_the_inline_limit_a_result_is_one_record_and_nothing_stays() {
    let limit = Command::DEFAULT_INLINE_LIMIT_BYTES;
    for guest in Guest::each() {
        for (out, err) in [
            (0, 0),
            (limit - 1, 0),
            (limit, 0),
            (0, limit),
            (limit / 2, limit / 2),
        ] {
            let finished = guest.exec(&text(&(write(out, 1) + &write(err, 2))));
            assert_eq!(
                (finished.stdout.len() as u64, finished.stderr.len() as u64),
                (out, err)
            );
            assert_eq!(
                finished.result.left_directory, None,
                "{:?} {out} {err}",
                guest.shell
            );
            assert!(matches!(finished.result.stdout.content, Content::Inline(_)));
            assert!(matches!(finished.result.stderr.content, Content::Inline(_)));
            assert_eq!(
                finished.text.trim().lines().count(),
                1,
                "one line survives a cut by lines"
            );
        }
    }
}

#[test]
fn r18_past_the_inline_limit_only_what_does_not_fit_is_left_for_download() {
    let limit = Command::DEFAULT_INLINE_LIMIT_BYTES;
    for guest in Guest::each() {
        for (out, err, out_in_file, err_in_file) in [
            (limit + 1, 0, true, false),
            (limit, 1, true, false),
            (1, limit, true, false),
            (1, limit + 1, false, true),
            (limit + 1, limit + 1, true, true),
        ] {
            let finished = guest.exec(&text(&(write(out, 1) + &write(err, 2))));
            let in_file = |content: &Content| matches!(content, Content::File { .. });
            assert_eq!(
                (
                    in_file(&finished.result.stdout.content),
                    in_file(&finished.result.stderr.content)
                ),
                (out_in_file, err_in_file),
                "{:?} {out} {err}",
                guest.shell
            );
            assert_eq!(
                (finished.stdout.len() as u64, finished.stderr.len() as u64),
                (out, err)
            );
            assert!(finished.result.left_directory.is_some());
        }
    }
}

#[test]
fn r15_c2_output_past_the_limit_is_cut_there_and_its_true_length_reported() {
    let max = Command::DEFAULT_MAX_OUTPUT_BYTES;
    for guest in Guest::each() {
        for total in [max - 1, max, max + 1, 5 * max, 64 * max] {
            let finished = guest.exec(&text(&write(total, 1)));
            assert_eq!(
                finished.result.stdout.total_bytes, total,
                "{:?}",
                guest.shell
            );
            assert_eq!(finished.stdout.len() as u64, total.min(max));
            assert!(finished.stdout.iter().all(|byte| *byte == b'x'));
            assert_eq!(finished.result.stdout.truncated(), total > max);
            assert!(!finished.result.stderr.truncated());
        }
        let mut command = text(&(write(100, 1) + &write(70_000, 2)));
        command.max_output_bytes = 0;
        let finished = guest.exec(&command);
        assert_eq!((finished.stdout.len(), finished.stderr.len()), (0, 0));
        assert_eq!(finished.result.stdout.total_bytes, 100);
        assert_eq!(finished.result.stderr.total_bytes, 70_000);
        assert_eq!(
            finished.result.left_directory, None,
            "what is not kept needs no download"
        );
        command.max_output_bytes = u64::MAX;
        assert_eq!(
            guest.exec(&command).stderr.len(),
            70_000,
            "{:?}",
            guest.shell
        );
    }
}

#[test]
fn f4_a_background_child_does_not_hold_the_result_back() {
    for guest in Guest::each() {
        for script in [
            "PATH=/bin:/usr/bin; sleep 5 & echo done",
            "PATH=/bin:/usr/bin; setsid sleep 5 & echo done",
            "PATH=/bin:/usr/bin; (trap '' HUP TERM; sleep 5) & echo done",
        ] {
            let began = Instant::now();
            let finished = guest.exec(&text(script));
            assert!(
                began.elapsed() < Duration::from_secs(2),
                "{:?} {script}",
                guest.shell
            );
            assert_eq!(
                (finished.code, finished.stdout_text().as_str()),
                (0, "done\n")
            );
        }
    }
}

#[test]
fn f4_what_a_background_child_writes_later_is_not_part_of_the_result() {
    for guest in Guest::each() {
        for size in [10, 100_000] {
            let script = format!(
                "PATH=/bin:/usr/bin; head -c {size} /dev/zero
                 (i=0; while test $i -lt 20000; do echo later; i=$((i+1)); done) & exit 3"
            );
            let finished = guest.exec(&text(&script));
            assert_eq!(finished.code, 3);
            assert_eq!(
                finished.result.stdout.total_bytes,
                finished.stdout.len() as u64
            );
            assert!(
                finished.stdout.iter().take(size).all(|byte| *byte == 0),
                "{:?}",
                guest.shell
            );
        }
    }
}

#[test]
fn b8_a_command_that_empties_tmp_keeps_its_output() {
    for guest in Guest::each() {
        for size in [10, 100_000] {
            // The directory of this call stands for all of /tmp, which other tests share.
            let script = format!(
                "PATH=/bin:/usr/bin; head -c {size} /dev/zero
                 rm -rf \"$(dirname \"$(readlink /proc/self/fd/2)\")\"; echo after >&2; exit 9"
            );
            let finished = guest.exec(&text(&script));
            assert_eq!(
                (finished.code, finished.stdout.len()),
                (9, size),
                "{:?}",
                guest.shell
            );
            assert_eq!(finished.stderr_text(), "after\n");
            assert_eq!(finished.result.left_directory, None);
        }
    }
}

#[test]
fn c7_a_child_that_opens_the_stream_anew_does_not_write_over_it() {
    for guest in Guest::each() {
        let script = "echo one; echo two >>/dev/stdout; echo three; echo e1 >&2; echo e2 >>/dev/stderr; echo e3 >&2";
        let finished = guest.exec(&text(script));
        assert_eq!(
            finished.stdout_text(),
            "one\ntwo\nthree\n",
            "{:?}",
            guest.shell
        );
        assert_eq!(finished.stderr_text(), "e1\ne2\ne3\n", "{:?}", guest.shell);
    }
}

#[test]
fn r14_a_command_sees_no_descriptor_and_no_file_mode_of_the_wrapper() {
    for guest in Guest::each() {
        let script =
            "PATH=/bin:/usr/bin; ls /proc/self/fd; umask; rm -f made; : >made; stat -c %a made";
        let alone = guest.process(script).output().unwrap();
        let wrapped = guest.exec(&argv(&["sh", "-c", script]));
        let expected = String::from_utf8(alone.stdout).unwrap();
        assert_eq!(wrapped.stdout_text(), expected, "{:?}", guest.shell);
    }
}

#[test]
fn r15_the_private_directory_and_its_files_are_closed_to_others() {
    for guest in Guest::each() {
        let finished = guest.exec(&text(
            "PATH=/bin:/usr/bin; d=$(dirname \"$(readlink /proc/self/fd/2)\"); stat -c %a \"$d\"",
        ));
        assert_eq!(finished.stdout_text(), "700\n", "{:?}", guest.shell);
    }
}
