//! The words that start a command through `env`, shared by both wrappers.

use super::command::{Command, Program};
use super::prelude::{Script, anchored};
use super::quote::push_quoted;

/// Goes to the command's working directory, or refuses and says why.
///
/// On its own and checked, never `cd DIR && COMMAND`: the tail of a command of several statements
/// would run in the wrong directory.
pub(super) fn push_working_directory(script: &mut Script, command: &Command) {
    let Some(path) = command.working_directory.as_deref() else {
        script.go_home();
        return;
    };
    if !path.starts_with('/') {
        script.go_home();
    }
    script.push("_bs_w=");
    push_quoted(script.body_mut(), &anchored(path));
    // A shell takes `link/..` for the directory that holds the link, the kernel does not.
    let physical = if path.split('/').any(|name| name == "..") {
        "-P "
    } else {
        ""
    };
    script.push(&format!(
        "\ncd {physical}\"$_bs_w\" >/dev/null 2>&1 || {{\n"
    ));
    script.push(
        "if test -d \"$_bs_w\"; then _bs_refuse cwd:permission; fi\n\
         if test -e \"$_bs_w\" || test -h \"$_bs_w\"; then _bs_refuse cwd:not-directory; fi\n\
         _bs_refuse cwd:missing\n\
         }\n",
    );
}

/// Finds the shell for shell text, before a `PATH` of the command's own could hide it.
pub(super) fn push_shell_lookup(script: &mut Script, command: &Command) {
    if needs_shell(&command.program) && command.environment.iter().any(|(name, _)| name == "PATH") {
        script.push("_bs_s=$(command -v sh)\n");
    } else {
        script.push("_bs_s=sh\n");
    }
}

/// Defines `_bs_need`, which ends with 127 and `NAME: not found` where a program is not there.
///
/// `env` says it in words of its own, about its own options where the name has a space. Only a name
/// that the shell does not know and that no directory of the command's `PATH` holds is refused here,
/// so `env` decides wherever there is a file at all, and where a busybox knows the name.
pub(super) fn push_need(script: &mut Script, command: &Command) {
    if let Program::Arguments(_) = command.program {
        script.push(
            "_bs_need() {\n\
             ! command -v \"$1\" >/dev/null 2>&1 || return 0\n\
             case $1 in\n\
             */*) test ! -e \"$1\" || return 0 ;;\n\
             *)\n\
             test -n \"$2\" || return 0\n\
             _bs_q=$2:\n\
             while test -n \"$_bs_q\"; do\n\
             _bs_p=${_bs_q%%:*}\n\
             test ! -e \"${_bs_p:-.}/$1\" || return 0\n\
             _bs_q=${_bs_q#*:}\n\
             done ;;\n\
             esac\n\
             printf '%s: not found\\n' \"$1\" >&2\n\
             exit 127\n\
             }\n",
        );
    }
}

/// Appends the call of `_bs_need`, with the `PATH` that `env` will look in.
pub(super) fn push_need_call(text: &mut String, command: &Command, redirection: &str) {
    let Program::Arguments(words) = &command.program else {
        return;
    };
    text.push_str("_bs_need ");
    push_quoted(text, words.first().map_or("", String::as_str));
    text.push(' ');
    let path = |(name, _): &&(String, String)| name == "PATH";
    match command.environment.iter().rfind(path) {
        Some((_, path)) => push_quoted(text, path),
        None => text.push_str("\"${PATH-}\""),
    }
    text.push_str(redirection);
    text.push('\n');
}

/// Appends `env NAME=VALUE … PROGRAM ARGUMENT …`.
///
/// `env` and not the shell's own assignments, because a shell gives names such as `UID`, `RANDOM`
/// or `OPTIND` a meaning; `env` and not the shell's own look-up, because that would find builtins.
pub(super) fn push_launch(text: &mut String, command: &Command) {
    text.push_str("env");
    for (name, value) in &command.environment {
        text.push(' ');
        push_quoted(text, &format!("{name}={value}"));
    }
    match &command.program {
        Program::Arguments(words) => {
            let program = words.first().map_or("", String::as_str);
            if program.contains('=') {
                // env takes every word with a `=` for an assignment, a shell's exec does not.
                text.push_str(" \"$_bs_s\" -c '");
                if program.starts_with('-') {
                    // Without `--` bash takes the name for an option; dash knows no `--` here.
                    text.push_str("(exec -- env) >/dev/null 2>&1 && exec -- \"$@\"; ");
                }
                text.push_str("exec \"$@\"' sh");
            } else if program.starts_with('-') && command.environment.is_empty() {
                text.push_str(" --");
            }
            for word in words {
                text.push(' ');
                push_quoted(text, word);
            }
        }
        Program::ShellText(shell_text) => {
            // Without `--` a text that starts with `-` or `+` would be an option.
            text.push_str(" \"$_bs_s\" -c -- ");
            push_quoted(text, shell_text);
        }
    }
}

fn needs_shell(program: &Program) -> bool {
    match program {
        Program::Arguments(words) => words.first().is_some_and(|program| program.contains('=')),
        Program::ShellText(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::push_launch;
    use crate::shell::{Command, Program};

    fn launch(words: &[&str], environment: &[(&str, &str)]) -> String {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let mut command = Command::new(Program::Arguments(words));
        for (name, value) in environment {
            command
                .environment
                .push(((*name).to_owned(), (*value).to_owned()));
        }
        let mut text = String::new();
        push_launch(&mut text, &command);
        text
    }

    #[test]
    fn r14_every_argument_is_a_quoted_word() {
        assert_eq!(launch(&["printf", "a b", ""], &[]), "env 'printf' 'a b' ''");
    }

    #[test]
    fn e5_a_variable_is_one_quoted_word() {
        assert_eq!(
            launch(&["true"], &[("A", "x y"), ("B", "it's")]),
            r"env 'A=x y' 'B=it'\''s' 'true'"
        );
    }

    #[test]
    fn e1_a_program_named_like_an_option_or_an_assignment_is_still_a_program() {
        assert_eq!(launch(&["-x"], &[]), "env -- '-x'");
        assert_eq!(launch(&["-x"], &[("A", "1")]), "env 'A=1' '-x'");
        assert_eq!(
            launch(&["A=B", "c"], &[]),
            r#"env "$_bs_s" -c 'exec "$@"' sh 'A=B' 'c'"#
        );
    }

    #[test]
    fn r14_shell_text_goes_to_sh_as_one_word_even_when_it_looks_like_an_option() {
        let mut text = String::new();
        push_launch(
            &mut text,
            &Command::new(Program::ShellText("-x; echo 'hi'".into())),
        );
        assert_eq!(text, r#"env "$_bs_s" -c -- '-x; echo '\''hi'\'''"#);
    }
}
