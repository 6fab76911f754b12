//! Text that a program wrote, as the service passes it on.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};

/// A JSON string that may hold what no text holds: half of an escaped
/// surrogate pair, where the service cut output. It becomes U+FFFD instead of
/// making the whole answer unreadable. `Debug` shows its length only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OutputText(pub String);

impl fmt::Debug for OutputText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputText({} bytes)", self.0.len())
    }
}

impl<'de> Deserialize<'de> for OutputText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Asked for bytes, serde_json gives the halves too, encoded like characters.
        deserializer.deserialize_bytes(Bytes)
    }
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = OutputText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<OutputText, E> {
        Ok(OutputText(String::from_utf8_lossy(bytes).into_owned()))
    }

    fn visit_str<E>(self, text: &str) -> Result<OutputText, E> {
        Ok(OutputText(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::OutputText;

    fn read(json: &str) -> String {
        serde_json::from_str::<OutputText>(json).unwrap().0
    }

    #[test]
    fn d5_half_a_surrogate_pair_does_not_spoil_the_answer() {
        assert_eq!(read(r#""plain \u00e9 \ud83d\ude00""#), "plain é 😀");
        assert!(read(r#""cut \ud83d""#).starts_with("cut \u{fffd}"));
        assert!(read(r#""\ude00 tail""#).ends_with(" tail"));
        assert!(serde_json::from_str::<OutputText>("7").is_err());
    }

    #[test]
    fn v17_debug_shows_no_output() {
        let text = OutputText("s3cr3t".into());
        assert_eq!(format!("{text:?}"), "OutputText(6 bytes)");
    }
}
