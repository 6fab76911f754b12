//! The wrapper around a command whose output the service streams.

use super::command::Command;
use super::delivery::Wrapped;
use super::frame::{Record, RecordError};
use super::launch::{
    push_launch, push_need, push_need_call, push_shell_lookup, push_working_directory,
};
use super::nonce::Nonce;
use super::prelude::Script;
use super::result::{Refusal, read_refusal};
use super::words::Unrepresentable;

/// The exit code of a wrapper that did not start its command, with one record on standard error.
///
/// A command may end with the same code; only the record tells.
pub const START_FAILURE_EXIT_CODE: u8 = 125;

/// Makes `command` into a POSIX sh script that becomes the command: standard output and error are
/// the shell's own, standard input is `/dev/null`, and nothing of the wrapper is left once the
/// command runs.
///
/// The guest needs sh and env, and rm for a script that travels as a file. Of `command`,
/// `stdin_bytes` and the output limits are not used.
///
/// # Errors
///
/// [`Unrepresentable`] when a string cannot be passed to a program at all.
pub fn wrap_live(command: &Command, nonce: &Nonce) -> Result<Wrapped, Unrepresentable> {
    command.check()?;
    let mut script = Script::live(nonce);
    script.define_refuse("");
    script.require_tools("env");
    push_working_directory(&mut script, command);
    push_shell_lookup(&mut script, command);
    push_need(&mut script, command);
    push_need_call(script.body_mut(), command, "");
    script.push("exec ");
    push_launch(script.body_mut(), command);
    script.push(" </dev/null\n");
    Ok(Wrapped::deliver(&script, nonce))
}

/// Tells from the end of a live command whether it was never started, and why.
///
/// `None` means that the command ran: the exit code and all of standard error are its own.
/// Otherwise standard error holds the record, behind whatever a profile may have printed.
///
/// # Errors
///
/// [`RecordError`] when a record is there and cannot be read.
pub fn read_start_failure(
    exit_code: u8,
    stderr: &str,
    nonce: &Nonce,
) -> Result<Option<Refusal>, RecordError> {
    if exit_code != START_FAILURE_EXIT_CODE {
        return Ok(None);
    }
    let record = match Record::find(stderr, nonce) {
        Ok(record) => record,
        Err(RecordError::Missing) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut fields = record.fields();
    match fields.text("kind")? {
        "refused" => read_refusal(fields).map(Some),
        _ => Err(RecordError::Malformed("kind")),
    }
}

#[cfg(test)]
mod tests {
    use super::{START_FAILURE_EXIT_CODE, read_start_failure};
    use crate::shell::{Nonce, RecordError, Refusal};

    #[test]
    fn b6_only_its_own_code_with_its_own_record_is_a_command_that_never_started() {
        let nonce = Nonce::from_random([8; 16]);
        let record = |fields: &str| format!("motd\nbeachside:{nonce}:{fields}:end:{nonce}\n");
        let read = |code, stderr: &str| read_start_failure(code, stderr, &nonce);
        let refused = record("refused:temp");
        let code = START_FAILURE_EXIT_CODE;
        assert_eq!(
            read(code, &refused),
            Ok(Some(Refusal::NoTemporaryDirectory))
        );
        assert_eq!(read(0, &refused), Ok(None));
        assert_eq!(read(code, "env: words of its own\n"), Ok(None));
        assert_eq!(
            read(code, &record("ran")),
            Err(RecordError::Malformed("kind"))
        );
        let half = refused.get(..refused.len() - 10).unwrap();
        assert_eq!(read(code, half), Err(RecordError::Cut));
    }
}
