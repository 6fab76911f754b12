//! The wrapper around a command whose result comes back whole.

use super::command::Command;
use super::delivery::Wrapped;
use super::launch::{
    push_launch, push_need, push_need_call, push_shell_lookup, push_working_directory,
};
use super::nonce::Nonce;
use super::prelude::Script;
use super::words::Unrepresentable;

/// Makes `command` into one POSIX sh script that prints one record, which
/// [`read_result`](super::read_result) reads.
///
/// The guest needs sh, mktemp, base64, head, wc, tr, env and rm. The command gets standard input
/// from `/dev/null` or the uploaded file, which is unlinked before the command starts; its output
/// goes to files in a private directory. The record holds both streams when they fit into
/// [`Command::inline_limit_bytes`] together; otherwise one or both stay in the directory, as copies
/// that later writers do not reach, for a download and a [`clean_up`](super::clean_up).
///
/// The command may end before its children do. They keep running, hold nothing back, and what they
/// write later is not part of the result.
///
/// Known limits: standard output and error are regular files, so a program that opens
/// `/dev/stdout` or `/dev/stderr` anew with truncation (`echo x >/dev/stderr`) empties what the
/// stream held, as with every redirection to a file. A program that kills its whole process group
/// with `SIGKILL` takes the wrapper along and leaves no record.
///
/// # Errors
///
/// [`Unrepresentable`] when a string cannot be passed to a program at all.
pub fn wrap(command: &Command, nonce: &Nonce) -> Result<Wrapped, Unrepresentable> {
    command.check()?;
    let mut script = Script::with_record(nonce);
    script.define_refuse(&format!(
        "rm -f {stdin} 2>/dev/null\n\
         test -z \"${{_bs_d-}}\" || rm -rf \"$_bs_d\"\n",
        stdin = nonce.stdin_path(),
    ));
    script.require_tools("mktemp base64 head wc tr env rm");
    push_working_directory(&mut script, command);
    push_directory(&mut script);
    push_stdin(&mut script, command, nonce);
    push_shell_lookup(&mut script, command);
    push_need(&mut script, command);
    push_run(&mut script, command);
    push_record(&mut script, command);
    Ok(Wrapped::deliver(&script, nonce))
}

/// Makes the private directory and its two files, and opens each three times for reading: to
/// count, to copy and to encode, since each use moves an offset. Opened now, they can be read even
/// when the command empties `/tmp`.
fn push_directory(script: &mut Script) {
    script.push(
        "_bs_d=$(umask 077; mktemp -d \"/tmp/beachside-$_bs_n.XXXXXX\") || _bs_refuse temp\n\
         true >\"$_bs_d/out\" 2>\"$_bs_d/err\" || _bs_refuse temp\n\
         exec 4<\"$_bs_d/out\" 5<\"$_bs_d/err\" 6<\"$_bs_d/out\" 7<\"$_bs_d/err\" \
         8<\"$_bs_d/out\" 9<\"$_bs_d/err\"\n",
    );
}

/// Opens standard input as descriptor 3. An uploaded file loses its name before the command
/// starts; `chmod` is not among the tools an image must have, and serves where it is there.
fn push_stdin(script: &mut Script, command: &Command, nonce: &Nonce) {
    let Some(bytes) = command.stdin_bytes else {
        script.push("exec 3</dev/null\n");
        return;
    };
    script.push(&format!(
        "_bs_i={path}\n\
         test -f \"$_bs_i\" && test ! -h \"$_bs_i\" && test -r \"$_bs_i\" || _bs_refuse stdin:missing\n\
         exec 3<\"$_bs_i\"\n\
         chmod 600 \"$_bs_i\" 2>/dev/null\n\
         test \"$(wc -c <\"$_bs_i\")\" -eq {bytes} || _bs_refuse stdin:incomplete\n\
         rm -f \"$_bs_i\" 2>/dev/null\n\
         test ! -e \"$_bs_i\" || _bs_refuse stdin:kept\n",
        path = nonce.stdin_path(),
    ));
}

/// Runs the command in the foreground: in the background of a shell without job control it would
/// lose its input and ignore `SIGINT`.
///
/// The subshell execs, so that no shell stands between. It also keeps the redirections out of the
/// waiting shell: dash and busybox ash report a child's death by signal to descriptor 2, which is
/// the command's own error file as long as they redirect for it themselves. bash reports with the
/// text of the command, environment values included, which the outer redirection drops.
///
/// Appending, because a child may hold the same file open apart: without it each would write over
/// the other.
fn push_run(script: &mut Script, command: &Command) {
    script.push("{ ( ");
    push_need_call(script.body_mut(), command, " 2>>\"$_bs_d/err\"");
    script.push("exec ");
    push_launch(script.body_mut(), command);
    script.push(
        " <&3 >>\"$_bs_d/out\" 2>>\"$_bs_d/err\" 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&- ); } 2>/dev/null\n\
         _bs_c=$?\n",
    );
}

/// Counts both streams, then prints what fits and leaves copies of what does not.
///
/// A stream that a builtin sees to be empty costs no process. A copy that cannot be written (the
/// command filled the disk) comes back in the record instead, whatever its size. The command's own
/// files are removed as soon as they are copied: they may be far larger than what is kept.
fn push_record(script: &mut Script, command: &Command) {
    script.push(&format!(
        "_bs_max={max}\n\
         _bs_fit={fit}\n",
        max = shell_integer(command.max_output_bytes),
        fit = shell_integer(command.inline_limit_bytes),
    ));
    script.push(
        "_bs_empty() {\n\
         test -e \"$1\" && test ! -s \"$1\"\n\
         }\n\
         _bs_o=0 _bs_e=0\n\
         _bs_empty \"$_bs_d/out\" || _bs_o=$(wc -c <&4)\n\
         _bs_empty \"$_bs_d/err\" || _bs_e=$(wc -c <&5)\n\
         _bs_p=$_bs_o\n\
         test \"$_bs_p\" -le \"$_bs_max\" || _bs_p=$_bs_max\n\
         _bs_q=$_bs_e\n\
         test \"$_bs_q\" -le \"$_bs_max\" || _bs_q=$_bs_max\n\
         _bs_f=inline\n\
         _bs_g=inline\n\
         if test $((_bs_p + _bs_q)) -gt \"$_bs_fit\"; then\n\
         if test \"$_bs_q\" -le \"$_bs_fit\"; then _bs_f=file\n\
         elif test \"$_bs_p\" -le \"$_bs_fit\"; then _bs_g=file\n\
         else _bs_f=file _bs_g=file\n\
         fi\n\
         fi\n\
         _bs_copy() {\n\
         head -c \"$1\" >\"$2\" && test \"$(wc -c <\"$2\")\" -eq \"$1\"\n\
         }\n\
         _bs_text() {\n\
         test \"$1\" -eq 0 || head -c \"$1\" | base64 | tr -d '\\n'\n\
         }\n\
         _bs_u= _bs_v=\n\
         test $_bs_f = inline || _bs_copy \"$_bs_p\" \"$_bs_d/stdout\" <&6 2>/dev/null || _bs_f=inline\n\
         test $_bs_g = inline || _bs_copy \"$_bs_q\" \"$_bs_d/stderr\" <&7 2>/dev/null || _bs_g=inline\n\
         test $_bs_f = file || _bs_u=$(_bs_text \"$_bs_p\" <&8)\n\
         test $_bs_g = file || _bs_v=$(_bs_text \"$_bs_q\" <&9)\n\
         case $_bs_f$_bs_g in\n\
         inlineinline) rm -rf \"$_bs_d\" ;;\n\
         *) rm -f \"$_bs_d/out\" \"$_bs_d/err\" ;;\n\
         esac\n\
         test -e \"$_bs_d\" || _bs_d=\n\
         _bs_say \"ran:$_bs_c:$_bs_o:$_bs_p:$_bs_f:$_bs_u:$_bs_e:$_bs_q:$_bs_g:$_bs_v:$_bs_d\"\n\
         exit \"$_bs_c\"\n",
    );
}

/// A shell counts in 64 bits with a sign.
fn shell_integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
