//! What the wrapper around a command reports.

use super::frame::{Captured, Content, Fields, Record, RecordError};
use super::nonce::Nonce;

/// The result of a command that ran to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecResult {
    /// 0 to 255 as the command gave it; 128 + n after signal n; 126 or 127 when the program could
    /// not be started, with the reason on standard error.
    pub exit_code: u8,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// The private directory, where it is still there: because a stream waits in it for its
    /// download, or because it could not be removed.
    pub left_directory: Option<String>,
}

/// Why the command was not started. Nothing of the call is left in the guest, except where the
/// variant says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The image lacks this tool.
    MissingTool(String),
    /// The working directory cannot be entered.
    WorkingDirectory(WorkingDirectoryFault),
    /// The uploaded standard input is not there or cannot be read.
    StdinMissing,
    /// The uploaded standard input is not as long as announced.
    StdinIncomplete,
    /// The uploaded standard input could not be unlinked, and is left behind.
    StdinKept,
    /// The uploaded script is not there or cannot be read.
    ScriptMissing,
    /// No private directory could be made under `/tmp`.
    NoTemporaryDirectory,
}

/// What is wrong with a working directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkingDirectoryFault {
    /// There is nothing of this name, as far as this user can see.
    Missing,
    /// It is something other than a directory, or a link to nowhere.
    NotDirectory,
    /// This user may not enter it.
    Permission,
}

/// Reads the record of a [`wrap`](super::wrap)ped command from the text it printed.
///
/// # Errors
///
/// [`RecordError`] when there is no whole, consistent record. The command may have run all the
/// same; [`read_out`](super::read_out) may still find its output.
pub fn read_result(text: &str, nonce: &Nonce) -> Result<Result<ExecResult, Refusal>, RecordError> {
    let record = Record::find(text, nonce)?;
    let mut fields = record.fields();
    match fields.text("kind")? {
        "ran" => read_ran(fields, nonce).map(Ok),
        "refused" => read_refusal(fields).map(Err),
        _ => Err(RecordError::Malformed("kind")),
    }
}

fn read_ran(mut fields: Fields<'_>, nonce: &Nonce) -> Result<ExecResult, RecordError> {
    let exit_code = fields.number("exit code")?;
    let mut stdout = fields.stream("stdout")?;
    let mut stderr = fields.stream("stderr")?;
    let left_directory = fields.left_directory(nonce)?;
    fields.end()?;
    for (stream, name) in [(&mut stdout, "stdout"), (&mut stderr, "stderr")] {
        if let Content::File { path, .. } = &mut stream.content {
            let directory = left_directory
                .as_deref()
                .ok_or(RecordError::Malformed("directory"))?;
            *path = format!("{directory}/{name}");
        }
    }
    Ok(ExecResult {
        exit_code,
        stdout,
        stderr,
        left_directory,
    })
}

/// Reads what follows `refused`.
pub(super) fn read_refusal(mut fields: Fields<'_>) -> Result<Refusal, RecordError> {
    let refusal = match fields.text("refusal")? {
        "tool" => Refusal::MissingTool(fields.text("tool")?.to_owned()),
        "cwd" => Refusal::WorkingDirectory(match fields.text("working directory")? {
            "missing" => WorkingDirectoryFault::Missing,
            "not-directory" => WorkingDirectoryFault::NotDirectory,
            "permission" => WorkingDirectoryFault::Permission,
            _ => return Err(RecordError::Malformed("working directory")),
        }),
        "stdin" => match fields.text("stdin")? {
            "missing" => Refusal::StdinMissing,
            "incomplete" => Refusal::StdinIncomplete,
            "kept" => Refusal::StdinKept,
            _ => return Err(RecordError::Malformed("stdin")),
        },
        "script" => Refusal::ScriptMissing,
        "temp" => Refusal::NoTemporaryDirectory,
        _ => return Err(RecordError::Malformed("refusal")),
    };
    fields.end()?;
    Ok(refusal)
}

#[cfg(test)]
mod tests {
    use super::{Refusal, WorkingDirectoryFault, read_result};
    use crate::shell::{Content, Nonce, RecordError};

    fn read(fields: &str) -> Result<Result<super::ExecResult, Refusal>, RecordError> {
        let nonce = Nonce::from_random([3; 16]);
        let text = format!("beachside:NONCE:{fields}:end:NONCE").replace("NONCE", nonce.as_str());
        read_result(&text, &nonce)
    }

    #[test]
    fn r18_a_result_names_its_code_its_streams_and_where_they_are() {
        let result = read("ran:7:70000:65536:file::3:3:inline:ZXJy:/tmp/beachside-NONCE.abcdef");
        let result = result.unwrap().unwrap();
        assert_eq!(result.exit_code, 7);
        assert_eq!(result.stdout.total_bytes, 70_000);
        assert!(result.stdout.truncated());
        assert!(!result.stderr.truncated());
        assert!(!result.stdout.content.is_empty() && !result.stderr.content.is_empty());
        assert_eq!(result.stderr.content, Content::Inline(b"err".to_vec()));
        let directory = result.left_directory.unwrap();
        let path = format!("{directory}/stdout");
        assert_eq!(
            result.stdout.content,
            Content::File {
                path,
                bytes: 65_536
            }
        );
    }

    #[test]
    fn r18_a_command_that_wrote_nothing_has_empty_streams() {
        let result = read("ran:0:0:0:inline::0:0:inline::").unwrap().unwrap();
        for stream in [result.stdout, result.stderr] {
            assert!(stream.content.is_empty() && !stream.truncated());
        }
    }

    #[test]
    fn r18_a_stream_in_a_file_needs_a_directory() {
        let error = read("ran:0:9:9:file::0:0:inline::").unwrap_err();
        assert_eq!(error, RecordError::Malformed("directory"));
    }

    #[test]
    fn b3_an_exit_code_that_no_process_has_is_refused() {
        for code in ["256", "-1", "", "0x1"] {
            let error = read(&format!("ran:{code}:0:0:inline::0:0:inline::")).unwrap_err();
            assert_eq!(error, RecordError::Malformed("exit code"));
        }
    }

    #[test]
    fn b6_every_refusal_is_its_own_value() {
        let fault = WorkingDirectoryFault::NotDirectory;
        for (fields, refusal) in [
            ("refused:tool:base64", Refusal::MissingTool("base64".into())),
            (
                "refused:cwd:not-directory",
                Refusal::WorkingDirectory(fault),
            ),
            (
                "refused:cwd:missing",
                Refusal::WorkingDirectory(WorkingDirectoryFault::Missing),
            ),
            (
                "refused:cwd:permission",
                Refusal::WorkingDirectory(WorkingDirectoryFault::Permission),
            ),
            ("refused:stdin:missing", Refusal::StdinMissing),
            ("refused:stdin:incomplete", Refusal::StdinIncomplete),
            ("refused:stdin:kept", Refusal::StdinKept),
            ("refused:script", Refusal::ScriptMissing),
            ("refused:temp", Refusal::NoTemporaryDirectory),
        ] {
            assert_eq!(read(fields), Ok(Err(refusal)));
        }
        assert!(read("refused:other").is_err());
        assert!(read("refused:temp:more").is_err());
        assert!(read("sung:0").is_err());
    }

    #[test]
    fn v17_debug_of_a_result_shows_no_output() {
        let result = read("ran:0:6:6:inline:c2VjcmV0:0:0:inline::")
            .unwrap()
            .unwrap();
        let shown = format!("{result:?}");
        assert!(shown.contains("Inline(6 bytes)"), "{shown}");
        assert!(
            !shown.contains("secret") && !shown.contains("115"),
            "{shown}"
        );
    }
}
