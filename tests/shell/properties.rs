//! Random commands: what goes in is what comes out, on every shell.

use std::fs;

use beachside_runloop::shell::{Command, Program};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::harness::{Guest, SHELLS, argv};

/// How many cases each property tries; every case runs all three shells.
const CASES: u32 = 48;

/// Any string that a program can be given, with the characters that shells care about in front.
fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => vec(prop::sample::select("'\"\\$`!*?[]{}()<>|&;#~=-+%^:,./\n\t\r \u{1}\u{7f}aZ0é日\u{feff}😀".chars().collect::<Vec<_>>()), 0..24)
            .prop_map(|characters| characters.into_iter().collect()),
        1 => any::<String>().prop_map(|text| text.replace('\0', "")),
    ]
}

fn variable_name() -> impl Strategy<Value = String> {
    // Not PATH or a name that the dynamic loader and the tools act upon.
    "[A-Za-z_][A-Za-z0-9_]{0,12}".prop_map(|name| format!("T_{name}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn r14_r19_random_arguments_variables_and_directories_arrive(
        words in vec(string(), 1..12),
        variables in prop::collection::btree_map(variable_name(), string(), 0..6),
        directory in string(),
    ) {
        let directory: String =
            directory.replace('/', "_").chars().take(40).collect::<String>() + "d";
        for shell in SHELLS {
            let guest = Guest::new(shell);
            let path = guest.home().join(&directory);
            fs::create_dir(&path).unwrap();
            let mut all = vec!["/usr/bin/printf".to_owned(), "%s\\0".to_owned()];
            all.extend(words.iter().cloned());
            let mut command = Command::new(Program::Arguments(all));
            command.environment = variables.clone().into_iter().collect();
            command.working_directory = Some(directory.clone());
            let finished = guest.exec(&command);
            let expected: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
            prop_assert_eq!(&finished.stdout, &expected);
            prop_assert_eq!(finished.code, 0);

            command.program = Program::Arguments(vec!["/usr/bin/env".into(), "-0".into()]);
            let shown = guest.exec(&command).stdout;
            for (name, value) in &variables {
                let entry = format!("{name}={value}\0");
                let found = shown.windows(entry.len()).any(|window| window == entry.as_bytes());
                prop_assert!(found, "{:?} lost {}", shell, name);
            }

            command.program = Program::Arguments(vec!["/usr/bin/readlink".into(), "-n".into(), "/proc/self/cwd".into()]);
            let expected = path.into_os_string().into_encoded_bytes();
            prop_assert_eq!(guest.exec(&command).stdout, expected);
        }
    }

    #[test]
    fn r15_r16_r18_random_bytes_pass_through_a_command(
        bytes in vec(any::<u8>(), 0..2_000),
        repeat in prop_oneof![Just(1_usize), Just(1), 1..80_usize],
        max_output_bytes in prop_oneof![Just(1_048_576_u64), 0..3_000_u64],
        inline_limit_bytes in prop_oneof![Just(32_768_u64), 0..3_000_u64],
        code in any::<u8>(),
    ) {
        let input = bytes.repeat(repeat);
        for shell in SHELLS {
            let guest = Guest::new(shell);
            let script = format!("t=$(/bin/cat >all; echo x); /bin/cat all; /bin/cat all all >&2; exit {code}");
            let mut command = argv(&["sh", "-c", &script]);
            command.max_output_bytes = max_output_bytes;
            command.inline_limit_bytes = inline_limit_bytes;
            let finished = guest.exec_with_stdin(&command, &input);
            let max = usize::try_from(max_output_bytes).unwrap();
            let twice = input.repeat(2);
            prop_assert_eq!(finished.code, code);
            prop_assert_eq!(finished.result.stdout.total_bytes, input.len() as u64);
            prop_assert_eq!(finished.result.stderr.total_bytes, twice.len() as u64);
            prop_assert!(finished.stdout == input.get(..max.min(input.len())).unwrap());
            prop_assert!(finished.stderr == twice.get(..max.min(twice.len())).unwrap());
        }
    }

    #[test]
    fn r14_random_shell_text_ends_with_a_record(script in string(), noise in string()) {
        for shell in SHELLS {
            let guest = Guest::new(shell);
            let mut command = Command::new(Program::ShellText(script.clone()));
            command.environment.push(("NOISE".into(), noise.clone()));
            // Whatever the text means to the shell, there is a result, and nothing stays.
            guest.exec(&command);
        }
    }
}
