//! The grammar of a record: what a script prints last, and how it is found again.
//!
//! A record is one line, so that the service's cut at a number of lines cannot split it:
//!
//! ```text
//! beachside:NONCE:FIELD:FIELD:…:end:NONCE
//! ```
//!
//! No field holds a colon. Content is base64. A reader takes the last record of its nonce, skips
//! everything around it (a profile's greeting, a trap's farewell) and ignores white space inside
//! it (base64 that wraps, line ends that a terminal changed).

use std::fmt;
use std::str::{FromStr, Split};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::nonce::Nonce;

/// The word that starts a record.
pub(super) const MARKER: &str = "beachside";

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why an answer holds no usable record. Says nothing about whether the script ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// No record of this call: the shell ended early, or its output was lost.
    #[error("the guest's answer holds no result record")]
    Missing,
    /// A record begins and its end is not there: the answer was cut.
    #[error("the guest's result record is cut short")]
    Cut,
    /// A record that this version did not write, or that was damaged on its way.
    #[error("the guest's result record is malformed at its {0}")]
    Malformed(&'static str),
    /// The bytes in the record are not as many as it says.
    #[error(
        "the guest's result record holds {actual} bytes of {stream} where it announces {announced}"
    )]
    Length {
        /// Which stream.
        stream: &'static str,
        /// How many bytes the record announces.
        announced: u64,
        /// How many it holds.
        actual: u64,
    },
}

/// One output stream of a command, as far as it was kept.
#[derive(Clone, PartialEq, Eq)]
pub struct Captured {
    /// How much the command wrote, in bytes.
    pub total_bytes: u64,
    /// The kept beginning.
    pub content: Content,
}

/// Where the kept bytes of a stream are. `Debug` shows sizes only.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// In the record.
    Inline(Vec<u8>),
    /// In a file in the guest, which holds exactly these many bytes and stays until a clean-up.
    File {
        /// Its absolute path.
        path: String,
        /// Its length in bytes.
        bytes: u64,
    },
}

impl Captured {
    /// Whether the command wrote more than was kept.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.total_bytes > self.content.len()
    }
}

impl Content {
    /// How many bytes were kept.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            Self::File { bytes, .. } => *bytes,
        }
    }

    /// Whether nothing was kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Captured {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Captured")
            .field("total_bytes", &self.total_bytes)
            .field("content", &self.content)
            .finish()
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(bytes) => write!(formatter, "Inline({} bytes)", bytes.len()),
            Self::File { path, bytes } => write!(formatter, "File({path}, {bytes} bytes)"),
        }
    }
}

/// The record of one call, without white space, between its marker and its end.
pub(super) struct Record(String);

impl Record {
    /// Finds the last record of `nonce` in `text`.
    pub(super) fn find(text: &str, nonce: &Nonce) -> Result<Self, RecordError> {
        let start_marker = format!("{MARKER}:{nonce}:");
        let end_marker = format!(":end:{nonce}");
        let starts_at = text.rfind(&start_marker);
        let Some(ends_at) = text.rfind(&end_marker) else {
            return Err(starts_at.map_or(RecordError::Missing, |_| RecordError::Cut));
        };
        let before_end = text.get(..ends_at).unwrap_or_default();
        let starts_at = before_end
            .rfind(&start_marker)
            .ok_or(RecordError::Missing)?;
        let between = before_end
            .get(starts_at + start_marker.len()..)
            .unwrap_or_default();
        Ok(Self(
            between
                .chars()
                .filter(|character| !character.is_ascii_whitespace())
                .collect(),
        ))
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        Fields(self.0.split(':'))
    }
}

/// The fields of a record, read one after the other.
pub(super) struct Fields<'a>(Split<'a, char>);

impl<'a> Fields<'a> {
    pub(super) fn text(&mut self, name: &'static str) -> Result<&'a str, RecordError> {
        self.0.next().ok_or(RecordError::Malformed(name))
    }

    pub(super) fn number<T: FromStr>(&mut self, name: &'static str) -> Result<T, RecordError> {
        self.text(name)?
            .parse()
            .map_err(|_| RecordError::Malformed(name))
    }

    pub(super) fn bytes(&mut self, name: &'static str) -> Result<Vec<u8>, RecordError> {
        BASE64
            .decode(self.text(name)?)
            .map_err(|_| RecordError::Malformed(name))
    }

    /// A stream: total, kept, form, content.
    ///
    /// A stream in a file is returned without its path, which the directory at the record's end
    /// completes.
    pub(super) fn stream(&mut self, name: &'static str) -> Result<Captured, RecordError> {
        let total_bytes: u64 = self.number(name)?;
        let announced: u64 = self.number(name)?;
        let form = self.text(name)?;
        let bytes = self.bytes(name)?;
        let content = match form {
            "inline" => Content::Inline(bytes),
            "file" => Content::File {
                path: String::new(),
                bytes: announced,
            },
            _ => return Err(RecordError::Malformed(name)),
        };
        let actual = content.len();
        if actual != announced || announced > total_bytes {
            return Err(RecordError::Length {
                stream: name,
                announced,
                actual,
            });
        }
        Ok(Captured {
            total_bytes,
            content,
        })
    }

    /// The directory that was left in the guest, if one was: only ever one of this call.
    pub(super) fn left_directory(&mut self, nonce: &Nonce) -> Result<Option<String>, RecordError> {
        let path = self.text("directory")?;
        if path.is_empty() {
            return Ok(None);
        }
        let suffix = path.strip_prefix(&nonce.directory_prefix());
        match suffix {
            Some(suffix) if suffix.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                Ok(Some(path.to_owned()))
            }
            _ => Err(RecordError::Malformed("directory")),
        }
    }

    /// Every field that follows.
    pub(super) fn rest(self) -> impl Iterator<Item = &'a str> {
        self.0
    }

    /// Nothing may follow.
    pub(super) fn end(mut self) -> Result<(), RecordError> {
        match self.0.next() {
            None => Ok(()),
            Some(_) => Err(RecordError::Malformed("end")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::cases::cases;

    use super::{Content, Record, RecordError};
    use crate::shell::Nonce;

    fn nonce() -> Nonce {
        Nonce::from_random([5; 16])
    }

    /// A record with these fields, and `NONCE` in them replaced.
    fn record(fields: &str) -> String {
        format!("beachside:NONCE:{fields}:end:NONCE\n").replace("NONCE", nonce().as_str())
    }

    fn first_field(text: &str) -> Result<String, RecordError> {
        let found = Record::find(text, &nonce())?;
        found.fields().text("first").map(str::to_owned)
    }

    #[test]
    fn b5_the_last_record_of_the_call_counts_and_noise_around_it_does_not() {
        let mut text = "motd\nno newline".to_owned();
        text.push_str(&record("one:1"));
        text.push_str(&record("two:2"));
        text.push_str("bye\nbeachside:0123:three:end:0123\n");
        assert_eq!(first_field(&text), Ok("two".to_owned()));
    }

    #[test]
    fn b5_no_record_and_half_a_record_are_told_apart() {
        assert_eq!(first_field(""), Err(RecordError::Missing));
        assert_eq!(
            first_field("beachside:0123:ran:end:0123"),
            Err(RecordError::Missing)
        );
        let whole = record("ran:0");
        let half = whole.get(..whole.len() / 2).unwrap();
        assert_eq!(first_field(half), Err(RecordError::Cut));
    }

    #[test]
    fn c2_base64_that_wraps_or_lacks_its_padding_is_read() {
        let text = record("5:5:inline:aGVs\r\n  bG8\n=");
        let found = Record::find(&text, &nonce()).unwrap();
        let stream = found.fields().stream("stdout").unwrap();
        assert_eq!(stream.content, Content::Inline(b"hello".to_vec()));
        let text = record("5:5:inline:aGVsbG8");
        let found = Record::find(&text, &nonce()).unwrap();
        assert_eq!(found.fields().stream("stdout").unwrap(), stream);
    }

    #[test]
    fn c2_a_stream_that_is_shorter_or_longer_than_announced_is_no_result() {
        for (fields, announced, actual) in [
            ("9:9:inline:aGVsbG8=", 9, 5),
            ("3:3:inline:aGVsbG8=", 3, 5),
            ("4:5:inline:aGVsbG8=", 5, 5),
        ] {
            let text = record(fields);
            let error = Record::find(&text, &nonce())
                .unwrap()
                .fields()
                .stream("stdout")
                .unwrap_err();
            assert_eq!(
                error,
                RecordError::Length {
                    stream: "stdout",
                    announced,
                    actual
                }
            );
        }
    }

    #[test]
    fn c2_a_malformed_field_is_named() {
        for fields in [
            "x:5:inline:",
            "5",
            "0:0:elsewhere:",
            "1:1:inline:\u{e9}",
            ":0:inline:",
            "-1:0:inline:",
        ] {
            let text = record(fields);
            let error = Record::find(&text, &nonce())
                .unwrap()
                .fields()
                .stream("stderr")
                .unwrap_err();
            assert_eq!(
                error.to_string(),
                "the guest's result record is malformed at its stderr"
            );
        }
    }

    #[test]
    fn f6_a_directory_of_another_call_is_not_taken() {
        for path in [
            "/etc",
            "/tmp/beachside-0123.abcdef",
            "/tmp/beachside-NONCE.abc/../x",
            "/tmp/beachside-NONCE",
        ] {
            let text = record(path);
            let found = Record::find(&text, &nonce()).unwrap();
            let error = found.fields().left_directory(&nonce()).unwrap_err();
            assert_eq!(error, RecordError::Malformed("directory"), "{path}");
        }
        let text = record("/tmp/beachside-NONCE.aB3xyz");
        let found = Record::find(&text, &nonce()).unwrap();
        assert!(found.fields().left_directory(&nonce()).unwrap().is_some());
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn c2_any_text_is_read_without_a_panic(before in any::<String>(), fields in any::<String>(), after in any::<String>()) {
            let text = format!("{before}{}{after}", record(&fields));
            let _ = crate::shell::read_result(&text, &nonce());
            let _ = crate::shell::read_partial(&text, &nonce());
            let _ = crate::shell::read_clean_up(&text, &nonce());
            for cut in 0..text.len() {
                if let Some(part) = text.get(..cut) {
                    let _ = crate::shell::read_result(part, &nonce());
                }
            }
        }

        #[test]
        fn c4_any_bytes_survive_a_record(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            use base64::Engine as _;
            let encoded = super::BASE64.encode(&bytes);
            let text = record(&format!("{0}:{0}:inline:{encoded}", bytes.len()));
            let found = Record::find(&text, &nonce()).unwrap();
            prop_assert_eq!(found.fields().stream("stdout").unwrap().content, Content::Inline(bytes));
        }
    }
}
