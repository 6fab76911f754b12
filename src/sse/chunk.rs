//! The payload of one event: a chunk of output at an offset, or an error.
//!
//! Certain (the official client's types): `output` is a string, `offset` an
//! optional number called the chunk's byte offset; an event named `error`
//! carries `code` and `message`; any other name is an ordinary chunk. Read
//! leniently: fields may be null, missing, unknown or in any order, and a
//! number may come as a string. Does not know what offsets mean; see
//! [`resume`](super::resume).

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};

use super::json_text::{Halves, push_wtf8, unescape};

/// A chunk, without its text: that was appended to the caller's string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) offset: Option<u64>,
    pub(super) halves: Halves,
}

/// The payload is not a chunk. Says nothing of its content: that is a user's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the output stream is not a chunk of output")]
pub(super) struct NotAChunk;

/// Reads a chunk and appends its text to `out`, which is unchanged on failure.
pub(super) fn decode_chunk(data: &str, out: &mut String) -> Result<Chunk, NotAChunk> {
    let start = out.len();
    if let Some(chunk) = decode_usual(data, out) {
        return Ok(chunk);
    }
    out.truncate(start);
    let wire: WireChunk<'_> = serde_json::from_str(data).map_err(|_| NotAChunk)?;
    let halves = wire
        .output
        .map(|output| push_wtf8(&output.0, out))
        .unwrap_or_default();
    Ok(Chunk {
        offset: wire.offset.and_then(|offset| offset.0),
        halves,
    })
}

/// The two fields in either order and nothing else, in one pass without a
/// parser's intermediate copy. `None`: leave it to the general way.
fn decode_usual(data: &str, out: &mut String) -> Option<Chunk> {
    let mut halves = None;
    let mut offset = None;
    let mut rest = blank(data).strip_prefix('{')?;
    loop {
        rest = blank(rest).strip_prefix('"')?;
        if let Some(value) = rest.strip_prefix("output\"")
            && halves.is_none()
        {
            let string = blank(blank(value).strip_prefix(':')?).strip_prefix('"')?;
            let (found, after) = unescape(string, out)?;
            halves = Some(found);
            rest = after;
        } else if let Some(value) = rest.strip_prefix("offset\"")
            && offset.is_none()
        {
            let number = blank(blank(value).strip_prefix(':')?);
            let end = number.bytes().position(|byte| !byte.is_ascii_digit())?;
            let (digits, after) = number.split_at_checked(end)?;
            if digits.len() > 1 && digits.starts_with('0') {
                return None;
            }
            offset = Some(digits.parse().ok()?);
            rest = after;
        } else {
            return None;
        }
        rest = blank(rest);
        if let Some(after) = rest.strip_prefix('}') {
            return blank(after).is_empty().then(|| Chunk {
                offset,
                halves: halves.unwrap_or_default(),
            });
        }
        rest = rest.strip_prefix(',')?;
    }
}

fn blank(json: &str) -> &str {
    json.trim_start_matches([' ', '\t', '\n', '\r'])
}

#[derive(Deserialize)]
struct WireChunk<'a> {
    #[serde(default, borrow)]
    output: Option<JsonString<'a>>,
    #[serde(default)]
    offset: Option<Number>,
}

/// A JSON string as WTF-8, because a half of a surrogate pair may stand in it.
struct JsonString<'a>(Cow<'a, [u8]>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonString<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct StringVisitor;
        impl<'de> Visitor<'de> for StringVisitor {
            type Value = JsonString<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(JsonString(Cow::Owned(bytes.to_vec())))
            }
            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(JsonString(Cow::Borrowed(bytes)))
            }
        }
        from.deserialize_bytes(StringVisitor)
    }
}

/// A whole number of zero or more, as a number or as a string of one; an empty
/// string is none.
struct Number(Option<u64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct NumberVisitor;
        impl Visitor<'_> for NumberVisitor {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of zero or more")
            }
            fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
                Ok(Number(Some(number)))
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Number, E> {
                // Whole numbers below 2^53 are exact in a double.
                if number.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&number) {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "whole, not negative and below 2^53, as just checked"
                    )]
                    return Ok(Number(Some(number as u64)));
                }
                Err(E::custom("not a whole number"))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Number, E> {
                match text.trim() {
                    "" => Ok(Number(None)),
                    digits => digits
                        .parse()
                        .map(|number| Number(Some(number)))
                        .map_err(E::custom),
                }
            }
        }
        from.deserialize_any(NumberVisitor)
    }
}

/// What an event named `error` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceError {
    /// An HTTP status, for example 408 for a stream that was idle too long.
    pub code: Option<u16>,
    /// The provider's text, as sent: cut and redact it before showing it.
    pub message: String,
}

/// Reads an error event; one that cannot be read is an error all the same.
pub(super) fn decode_error(data: &str) -> ServiceError {
    let Ok(wire) = serde_json::from_str::<serde_json::Value>(data) else {
        return ServiceError::default();
    };
    let code = wire.get("code").and_then(|code| match code {
        serde_json::Value::String(digits) => digits.parse().ok(),
        number => number
            .as_u64()
            .and_then(|number| u16::try_from(number).ok()),
    });
    let message = wire
        .get("message")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default();
    ServiceError {
        code,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(data: &str) -> Option<(String, Option<u64>)> {
        let mut out = String::new();
        let chunk = decode_chunk(data, &mut out).ok()?;
        Some((out, chunk.offset))
    }

    #[test]
    fn both_fields_are_read_in_any_order_and_spacing() {
        for data in [
            r#"{"output":"a\nb","offset":12}"#,
            r#"{ "output" : "a\nb" , "offset" : 12 }"#,
            r#"{"offset":12,"output":"a\nb"}"#,
            r#"{"offset":"12","output":"a\nb"}"#,
            r#"{"offset":12.0,"output":"a\nb","more":{"x":[1,"}"]}}"#,
            "{\"more\":null,\"output\":\"a\\nb\",\n\"offset\":1.2e1}",
        ] {
            assert_eq!(decode(data), Some(("a\nb".into(), Some(12))), "{data}");
        }
    }

    #[test]
    fn c5_a_missing_or_null_field_is_an_absent_one() {
        assert_eq!(decode("{}"), Some((String::new(), None)));
        assert_eq!(
            decode(r#"{"output":null,"offset":null}"#),
            Some((String::new(), None))
        );
        assert_eq!(decode(r#"{"output":"x"}"#), Some(("x".into(), None)));
        assert_eq!(decode(r#"{"offset":7}"#), Some((String::new(), Some(7))));
        assert_eq!(
            decode(r#"{"output":"x","offset":""}"#),
            Some(("x".into(), None))
        );
    }

    #[test]
    fn what_is_not_a_chunk_is_refused_and_leaves_the_text_alone() {
        for data in [
            "",
            "[DONE]",
            "null",
            r#"{"output":"ab"#,
            r#"{"output":"ab","offset":-1}"#,
            r#"{"output":"ab","offset":1.5}"#,
            r#"{"output":"ab","offset":true}"#,
            r#"{"output":"ab","offset":1}x"#,
            r#"{"output":"ab","offset":1,}"#,
            r#"{"output":"ab","output":"cd"}"#,
            r#"{"output":5,"offset":1}"#,
            r#"{"output":"ab","offset":01}"#,
        ] {
            let mut out = String::from("kept");
            assert_eq!(decode_chunk(data, &mut out), Err(NotAChunk), "{data}");
            assert_eq!(out, "kept", "{data}");
        }
    }

    #[test]
    fn a_half_of_a_pair_is_kept_on_both_ways_of_reading() {
        for data in [
            r#"{"output":"\ude00x\ud83d","offset":3}"#,
            r#"{"output":"\ude00x\ud83d","offset":3,"more":0}"#,
        ] {
            let mut out = String::new();
            let chunk = decode_chunk(data, &mut out).unwrap();
            assert_eq!(out, "x");
            assert_eq!(
                chunk.halves,
                Halves {
                    head: Some(0xDE00),
                    tail: Some(0xD83D)
                },
                "{data}"
            );
        }
    }

    #[test]
    fn an_error_event_is_read_leniently() {
        let error = |data| {
            let ServiceError { code, message } = decode_error(data);
            (code, message)
        };
        assert_eq!(
            error(r#"{"code":"408","message":"idle"}"#),
            (Some(408), "idle".into())
        );
        assert_eq!(error(r#"{"code":503}"#), (Some(503), String::new()));
        assert_eq!(
            error(r#"{"code":"timeout","message":"m"}"#),
            (None, "m".into())
        );
        assert_eq!(error("gone"), (None, String::new()));
    }
}
