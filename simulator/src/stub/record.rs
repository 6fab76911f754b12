//! Answers to the scripts of this project's own adapter.
//!
//! The adapter wraps a command in a script whose last output is a record that
//! carries the script's nonce; it takes no other answer. The rest of the
//! simulator knows nothing of that and runs the script. The stub has no shell,
//! so that it tells the kind of script and its nonce from the text and prints
//! the record itself. A change of the scripts shows in this package's own
//! tests against the stub.

use std::fmt::Write as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem::Finder;

use super::command::{Orders, leading_number};
use super::files;
use super::payload;

/// A needle that is prepared once.
type Needle = LazyLock<Finder<'static>>;

static NONCE: Needle = LazyLock::new(|| Finder::new("_bs_n="));
static RAN: Needle = LazyLock::new(|| Finder::new("\\\"ran:$_bs_c"));
static FIT: Needle = LazyLock::new(|| Finder::new("_bs_fit="));
static KEPT: Needle = LazyLock::new(|| Finder::new("_bs_max="));
static PROBED: Needle = LazyLock::new(|| Finder::new("\\\"file:$_bs_o:"));
static WROTE: Needle = LazyLock::new(|| Finder::new("\\\"wrote:$_bs_w"));
static CLEANED: Needle = LazyLock::new(|| Finder::new("_bs_r=cleaned"));

/// 32 hexadecimal digits.
const NONCE_BYTES: usize = 32;

/// What a script will print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Script {
    /// No script of the adapter's, or one that becomes the command: the command's own output.
    Plain,
    /// The result of a command.
    Ran {
        nonce: String,
        /// What is kept of each stream.
        max_bytes: u64,
        /// What may stand in the record.
        fit_bytes: u64,
    },
    /// Fields that are known at once.
    Fields { nonce: String, fields: String },
}

impl Script {
    /// Tells the script from a request's body, which is JSON that is not parsed.
    pub(super) fn find(body: &[u8]) -> Self {
        let Some(nonce) = after(&NONCE, body)
            .and_then(|text| text.get(..NONCE_BYTES))
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .map(|digits| String::from_utf8_lossy(digits).into_owned())
        else {
            return Self::Plain;
        };
        if RAN.find(body).is_some() {
            return Self::Ran {
                nonce,
                max_bytes: number(&KEPT, body),
                fit_bytes: number(&FIT, body),
            };
        }
        let fields = if PROBED.find(body).is_some() {
            probed(files::size_in_path(body))
        } else if WROTE.find(body).is_some() {
            "wrote:".to_owned()
        } else if CLEANED.find(body).is_some() {
            "cleaned".to_owned()
        } else {
            return Self::Plain;
        };
        Self::Fields { nonce, fields }
    }
}

fn after<'a>(needle: &Needle, body: &'a [u8]) -> Option<&'a [u8]> {
    let at = needle.find(body)? + needle.needle().len();
    body.get(at..)
}

fn number(needle: &Needle, body: &[u8]) -> u64 {
    after(needle, body)
        .and_then(leading_number)
        .map_or(0, |(number, _)| number)
}

/// What a look at a file of the stub reports.
fn probed(size: Option<u64>) -> String {
    /// What the adapter takes in a record.
    const INLINE_BYTES: u64 = 64 * 1024;
    match size {
        None => "refused:file:missing".to_owned(),
        Some(size) if size <= INLINE_BYTES => {
            let mut fields = format!("file:{size}:inline:");
            push_base64(&mut fields, size);
            fields
        }
        Some(size) => format!("file:{size}:large:{}", STANDARD.encode("/root\n")),
    }
}

/// Appends the record of a command that ran, as the inside of a JSON string.
pub(super) fn push_ran(
    text: &mut String,
    orders: &Orders,
    nonce: &str,
    max_bytes: u64,
    fit_bytes: u64,
) {
    let stdout = orders.stdout_bytes.min(max_bytes);
    let stderr = orders.stderr_bytes.min(max_bytes);
    // As the script chooses: the longer stream is left in a file first.
    let (stdout_in_file, stderr_in_file) = if stdout + stderr <= fit_bytes {
        (false, false)
    } else if stderr <= fit_bytes {
        (true, false)
    } else {
        (true, stdout > fit_bytes)
    };
    open(text, nonce);
    push(text, format_args!("ran:{}:", orders.exit_code));
    push_stream(text, orders.stdout_bytes, stdout, stdout_in_file);
    push_stream(text, orders.stderr_bytes, stderr, stderr_in_file);
    if stdout_in_file || stderr_in_file {
        // The name says what the files in it hold.
        push(
            text,
            format_args!("/tmp/beachside-{nonce}.o{stdout}e{stderr}"),
        );
    }
    close(text, nonce);
}

/// Appends a record of `fields`, as the inside of a JSON string.
pub(super) fn push_fields(text: &mut String, nonce: &str, fields: &str) {
    open(text, nonce);
    text.push_str(fields);
    close(text, nonce);
}

fn open(text: &mut String, nonce: &str) {
    text.push_str("\\nbeachside:");
    text.push_str(nonce);
    text.push(':');
}

fn close(text: &mut String, nonce: &str) {
    text.push_str(":end:");
    text.push_str(nonce);
    text.push_str("\\n");
}

fn push_stream(text: &mut String, total: u64, kept: u64, in_file: bool) {
    let form = if in_file { "file" } else { "inline" };
    push(text, format_args!("{total}:{kept}:{form}:"));
    if !in_file {
        push_base64(text, kept);
    }
    text.push(':');
}

fn push_base64(text: &mut String, bytes: u64) {
    if bytes > 0 {
        // What fits into a record is shorter than the payload's buffer.
        STANDARD.encode_string(payload::plain(0, bytes), text);
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    text.write_fmt(arguments).unwrap_or_default();
}
