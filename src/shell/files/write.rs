//! Replacing a file in one step.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::fault::{FileFault, define_why};
use super::path::FilePath;
use crate::shell::delivery::Wrapped;
use crate::shell::frame::{Record, RecordError};
use crate::shell::nonce::Nonce;
use crate::shell::prelude::Script;
use crate::shell::quote::push_quoted;
use crate::shell::words::Unrepresentable;

/// The longest content that travels in the script: 64 KiB, which as base64 fits into one command
/// string beside any path.
pub const WRITE_INLINE_LIMIT_BYTES: usize = 64 * 1024;

/// How many symbolic links are followed to the file, as the kernel does.
const MAX_LINKS: u32 = 40;

/// Where the content comes from.
#[derive(Clone, Copy)]
pub enum FileSource<'a> {
    /// It travels in the script; at most [`WRITE_INLINE_LIMIT_BYTES`].
    Inline(&'a [u8]),
    /// The caller uploads so many bytes to [`Nonce::file_path`] first.
    Uploaded {
        /// Their number.
        bytes: u64,
    },
}

/// A file that was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The uploaded content, where it could not be removed after it was copied.
    pub left_upload: Option<String>,
}

/// A script that writes a whole file: to a temporary file beside it, then over it by a rename.
///
/// Missing parents are made. A symbolic link is followed, so that the file it leads to is replaced
/// and the link stays. An existing file keeps its mode, unless `mode` gives permission bits, and
/// its owner and group, or is left as it is where this user cannot give them away; a file that this
/// user may not write is left too. A new file gets `mode` or what the user's umask leaves. Hard
/// links break: other names keep the old content. Access control lists and extended attributes are
/// those of a new file.
///
/// # Errors
///
/// [`Unrepresentable`] for a path that no guest can have.
pub fn write_file(
    path: &str,
    source: FileSource<'_>,
    mode: Option<u32>,
    nonce: &Nonce,
) -> Result<Wrapped, Unrepresentable> {
    let path = FilePath::new(path)?;
    let mut script = Script::with_record(nonce);
    let upload = nonce.file_path();
    script.define_refuse(&format!(
        "rm -f {upload} 2>/dev/null\n\
         test -z \"${{_bs_x-}}\" || rm -f \"$_bs_x\"\n"
    ));
    define_why(&mut script);
    let decoder = match source {
        FileSource::Inline(_) => "base64",
        FileSource::Uploaded { .. } => "head",
    };
    script.require_tools(&format!("{decoder} chmod mkdir mv rm stat wc"));
    push_target(&mut script, &path);
    push_attributes(&mut script, mode);
    push_content(&mut script, source, &upload);
    push_replace(&mut script, &upload);
    Ok(Wrapped::deliver(&script, nonce))
}

/// Goes to the directory of the file and leaves the file's name in `_bs_f`.
///
/// `cd -P` reads `..` as the kernel does; in the directory itself, no path is too long for the
/// temporary file and no link on the way can change under it.
fn push_target(script: &mut Script, path: &FilePath<'_>) {
    let (directory, name) = path.split();
    if path.is_relative() {
        script.go_home();
    }
    script.push("_bs_w=");
    push_quoted(script.body_mut(), &directory);
    script.push("\n_bs_f=");
    push_quoted(script.body_mut(), name);
    script.push(&format!(
        "\n\
         cd -P \"$_bs_w\" >/dev/null 2>&1 || {{\n\
         _bs_e=$(mkdir -p \"$_bs_w\" 2>&1) || _bs_why \"$_bs_e\"\n\
         cd -P \"$_bs_w\" >/dev/null 2>&1 || _bs_refuse file:permission\n\
         }}\n\
         _bs_l=0\n\
         while test -h \"./$_bs_f\"; do\n\
         _bs_l=$((_bs_l + 1))\n\
         test $_bs_l -le {MAX_LINKS} || _bs_refuse file:not-regular\n\
         command -v readlink >/dev/null 2>&1 || _bs_refuse tool:readlink\n\
         _bs_w=$(readlink \"./$_bs_f\"; echo .)\n\
         _bs_w=${{_bs_w%??}}\n\
         _bs_f=${{_bs_w##*/}}\n\
         case $_bs_w in\n\
         /*) cd -P \"${{_bs_w%/*}}/\" >/dev/null 2>&1 || _bs_refuse file:missing ;;\n\
         */*) cd -P \"./${{_bs_w%/*}}\" >/dev/null 2>&1 || _bs_refuse file:missing ;;\n\
         esac\n\
         done\n\
         test ! -d \"./$_bs_f\" || _bs_refuse file:directory\n"
    ));
}

/// Makes the temporary file and leaves in `_bs_m` the mode that the file is to have at the end,
/// in `_bs_u` its owner and group.
///
/// Until then it is closed to others, unless it is a new file of the usual mode.
fn push_attributes(script: &mut Script, mode: Option<u32>) {
    script.push(
        "_bs_t=./.beachside-$_bs_n\n\
         if test -e \"./$_bs_f\"; then\n\
         test -f \"./$_bs_f\" || _bs_refuse file:not-regular\n\
         test -w \"./$_bs_f\" || _bs_refuse file:permission\n\
         _bs_m=$(stat -c %a \"./$_bs_f\") && _bs_u=$(stat -c %u:%g \"./$_bs_f\") || _bs_refuse file:other\n\
         _bs_e=$( { umask 077; set -C; true >\"$_bs_t\"; } 2>&1 ) || _bs_why \"$_bs_e\"\n\
         _bs_x=$_bs_t\n\
         else\n\
         _bs_e=$( { set -C; true >\"$_bs_t\"; } 2>&1 ) || _bs_why \"$_bs_e\"\n\
         _bs_x=$_bs_t\n\
         _bs_m=$(stat -c %a \"$_bs_x\") && _bs_u=$(stat -c %u:%g \"$_bs_x\") || _bs_refuse file:other\n\
         fi\n",
    );
    if let Some(mode) = mode {
        script.push(&format!(
            "chmod 600 \"$_bs_x\" 2>/dev/null\n\
             _bs_m={:o}\n",
            mode & 0o7777
        ));
    }
}

/// Fills the temporary file and counts it: a full disk shows as a short file at the latest.
///
/// No path of the caller's stands in these messages, so that the reason is looked for anywhere in
/// them: base64 says it twice, the second time without a reason, and busybox head says it in its
/// own words.
fn push_content(script: &mut Script, source: FileSource<'_>, upload: &str) {
    script.push(
        "_bs_short() {\n\
         case $1 in\n\
         *'No space left on device'* | *'quota exceeded'* | *'standard output: I/O error'*) \
         _bs_refuse file:space ;;\n\
         esac\n\
         _bs_why \"$1\"\n\
         }\n",
    );
    let bytes = match source {
        FileSource::Inline([]) => 0,
        FileSource::Inline(content) => {
            // echo is a builtin, which takes a word of any length. It complains itself when base64
            // ends early, behind the words that say why.
            script.push("_bs_e=$( { { echo '");
            STANDARD.encode_string(content, script.body_mut());
            script.push(
                "'; } 2>/dev/null | base64 -d >\"$_bs_x\"; } 2>&1 ) || _bs_short \"$_bs_e\"\n",
            );
            content.len() as u64
        }
        FileSource::Uploaded { bytes } => {
            script.push(&format!(
                "test -f {upload} && test ! -h {upload} && \
                 test \"$(wc -c <{upload})\" -eq {bytes} || _bs_refuse file:upload\n\
                 _bs_e=$(head -c {bytes} 2>&1 <{upload} >\"$_bs_x\") || _bs_short \"$_bs_e\"\n"
            ));
            bytes
        }
    };
    script.push(&format!(
        "test \"$(wc -c <\"$_bs_x\")\" -eq {bytes} || _bs_refuse file:space\n"
    ));
}

/// Gives the temporary file its owner and mode, in this order because a new owner clears bits of
/// the mode, and its name.
fn push_replace(script: &mut Script, upload: &str) {
    script.push(&format!(
        "if test \"$(stat -c %u:%g \"$_bs_x\")\" != \"$_bs_u\"; then\n\
         command -v chown >/dev/null 2>&1 || _bs_refuse tool:chown\n\
         chown \"$_bs_u\" \"$_bs_x\" 2>/dev/null || _bs_refuse file:owner\n\
         fi\n\
         chmod \"$_bs_m\" \"$_bs_x\" 2>/dev/null || _bs_refuse file:permission\n\
         _bs_e=$(mv -f \"$_bs_x\" \"./$_bs_f\" 2>&1) || _bs_why \"$_bs_e\"\n\
         rm -f {upload} 2>/dev/null\n\
         _bs_w=\n\
         test ! -e {upload} || _bs_w={upload}\n\
         _bs_say \"wrote:$_bs_w\"\n"
    ));
}

/// Reads the record of [`write_file`].
///
/// # Errors
///
/// [`RecordError`] when there is no whole, consistent record; the file may have been replaced.
pub fn read_written(text: &str, nonce: &Nonce) -> Result<Result<Written, FileFault>, RecordError> {
    let record = Record::find(text, nonce)?;
    let mut fields = record.fields();
    match fields.text("kind")? {
        "wrote" => {}
        "refused" => return FileFault::read(fields).map(Err),
        _ => return Err(RecordError::Malformed("kind")),
    }
    let left = fields.text("left upload")?;
    fields.end()?;
    let left_upload = (!left.is_empty()).then(|| left.to_owned());
    Ok(Ok(Written { left_upload }))
}
