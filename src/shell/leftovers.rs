//! Scripts for a call whose wrapper did not finish: they find what it left by its nonce.

use super::delivery::Wrapped;
use super::frame::{Captured, Record, RecordError};
use super::nonce::Nonce;
use super::prelude::Script;
use super::result::{Refusal, read_refusal};

/// What [`read_out`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partial {
    /// The output of a command that was stopped, or that still runs, up to now.
    Output {
        /// Standard output.
        stdout: Captured,
        /// Standard error.
        stderr: Captured,
    },
    /// No directory of this call: it never started, or finished and cleaned up.
    Nothing,
    /// The image lacks a tool that reading needs.
    Refused(Refusal),
}

/// What [`clean_up`] left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CleanUp {
    /// Nothing of the call is left.
    Clean,
    /// These paths could not be removed.
    Left(Vec<String>),
    /// The image lacks the tool to remove with.
    Refused(Refusal),
}

/// A script that reports the first `max_bytes` of each stream of a call, in the record itself, and
/// removes everything of the call.
///
/// For a command that was killed together with its wrapper. Safe beside one that still runs: such
/// a wrapper reports as usual afterwards.
#[must_use]
pub fn read_out(nonce: &Nonce, max_bytes: u64) -> Wrapped {
    let mut script = Script::with_record(nonce);
    script.define_refuse("");
    script.require_tools("base64 head wc tr rm");
    script.push(&format!("_bs_max={max_bytes}\n"));
    script.push(
        "_bs_read() {\n\
         _bs_x=$_bs_d/$1\n\
         test -f \"$_bs_x\" || _bs_x=$_bs_d/$2\n\
         test -f \"$_bs_x\" || _bs_x=/dev/null\n\
         _bs_o=$(wc -c <\"$_bs_x\")\n\
         _bs_p=$_bs_o\n\
         test \"$_bs_p\" -le \"$_bs_max\" || _bs_p=$_bs_max\n\
         _bs_u=\n\
         test \"$_bs_p\" -eq 0 || _bs_u=$(head -c \"$_bs_p\" <\"$_bs_x\" | base64 | tr -d '\\n')\n\
         _bs_r=$_bs_r:$_bs_o:$_bs_p:inline:$_bs_u\n\
         }\n\
         _bs_r=nothing\n",
    );
    push_each_directory(
        &mut script,
        "test $_bs_r = nothing && { _bs_r=partial; _bs_read out stdout; _bs_read err stderr; }\n",
    );
    push_removal(&mut script, nonce);
    script.push("_bs_say \"$_bs_r\"\n");
    Wrapped::deliver(&script, nonce)
}

/// A script that removes everything of a call: the private directory, and what was uploaded for
/// it.
#[must_use]
pub fn clean_up(nonce: &Nonce) -> Wrapped {
    let mut script = Script::with_record(nonce);
    script.define_refuse("");
    script.require_tools("rm");
    push_removal(&mut script, nonce);
    script.push(
        "_bs_r=cleaned\n\
         for _bs_d in \"/tmp/beachside-$_bs_n.\"* \"/tmp/beachside-stdin-$_bs_n\" \
         \"/tmp/beachside-script-$_bs_n\" \"/tmp/beachside-file-$_bs_n\"; do\n\
         test ! -e \"$_bs_d\" && test ! -h \"$_bs_d\" || _bs_r=$_bs_r:$_bs_d\n\
         done\n\
         _bs_say \"$_bs_r\"\n",
    );
    Wrapped::deliver(&script, nonce)
}

fn push_removal(script: &mut Script, nonce: &Nonce) {
    script.push(&format!(
        "rm -f {stdin} {script} {file} 2>/dev/null\n",
        stdin = nonce.stdin_path(),
        script = nonce.script_path(),
        file = nonce.file_path(),
    ));
    push_each_directory(script, "rm -rf \"$_bs_d\" 2>/dev/null\n");
}

/// Runs `lines` for the call's private directory as `_bs_d`.
///
/// The name is known to everyone in the guest once the directory is there, so that another user
/// can plant a second one: only a real directory of this user counts.
fn push_each_directory(script: &mut Script, lines: &str) {
    script.push(&format!(
        "for _bs_d in \"/tmp/beachside-$_bs_n.\"*; do\n\
         if test -d \"$_bs_d\" && test ! -h \"$_bs_d\" && test -O \"$_bs_d\"; then\n\
         {lines}\
         fi\n\
         done\n"
    ));
}

/// Reads the record of [`read_out`].
///
/// # Errors
///
/// [`RecordError`] when there is no whole, consistent record.
pub fn read_partial(text: &str, nonce: &Nonce) -> Result<Partial, RecordError> {
    let record = Record::find(text, nonce)?;
    let mut fields = record.fields();
    let partial = match fields.text("kind")? {
        "partial" => {
            let stdout = fields.stream("stdout")?;
            let stderr = fields.stream("stderr")?;
            Partial::Output { stdout, stderr }
        }
        "nothing" => Partial::Nothing,
        "refused" => return read_refusal(fields).map(Partial::Refused),
        _ => return Err(RecordError::Malformed("kind")),
    };
    fields.end()?;
    Ok(partial)
}

/// Reads the record of [`clean_up`].
///
/// # Errors
///
/// [`RecordError`] when there is no whole, consistent record.
pub fn read_clean_up(text: &str, nonce: &Nonce) -> Result<CleanUp, RecordError> {
    let record = Record::find(text, nonce)?;
    let mut fields = record.fields();
    match fields.text("kind")? {
        "cleaned" => {
            let left: Vec<_> = fields.rest().map(str::to_owned).collect();
            Ok(if left.is_empty() {
                CleanUp::Clean
            } else {
                CleanUp::Left(left)
            })
        }
        "refused" => read_refusal(fields).map(CleanUp::Refused),
        _ => Err(RecordError::Malformed("kind")),
    }
}

#[cfg(test)]
mod tests {
    use super::{CleanUp, Partial, read_clean_up, read_partial};
    use crate::shell::{Content, Nonce, RecordError, Refusal};

    fn nonce() -> Nonce {
        Nonce::from_random([6; 16])
    }

    fn record(fields: &str) -> String {
        format!("beachside:NONCE:{fields}:end:NONCE\n").replace("NONCE", nonce().as_str())
    }

    #[test]
    fn f6_what_a_stopped_command_wrote_is_told_from_nothing_and_from_a_refusal() {
        let read = |fields: &str| read_partial(&record(fields), &nonce());
        let partial = read("partial:9:3:inline:b3V0:0:0:inline:").unwrap();
        let Partial::Output { stdout, stderr } = partial else {
            unreachable!("{partial:?}")
        };
        assert_eq!(stdout.content, Content::Inline(b"out".to_vec()));
        assert!(stdout.truncated() && stderr.content.is_empty());
        assert_eq!(read("nothing"), Ok(Partial::Nothing));
        let missing = Refusal::MissingTool("tr".into());
        assert_eq!(read("refused:tool:tr"), Ok(Partial::Refused(missing)));
        assert_eq!(read("cleaned"), Err(RecordError::Malformed("kind")));
        assert_eq!(read("nothing:more"), Err(RecordError::Malformed("end")));
    }

    #[test]
    fn f6_a_clean_up_names_every_path_that_is_left() {
        let read = |fields: &str| read_clean_up(&record(fields), &nonce());
        assert_eq!(read("cleaned"), Ok(CleanUp::Clean));
        let left = vec!["/tmp/a".to_owned(), "/tmp/b".to_owned()];
        assert_eq!(read("cleaned:/tmp/a:/tmp/b"), Ok(CleanUp::Left(left)));
        let missing = Refusal::MissingTool("rm".into());
        assert_eq!(read("refused:tool:rm"), Ok(CleanUp::Refused(missing)));
        assert_eq!(read("nothing"), Err(RecordError::Malformed("kind")));
    }
}
