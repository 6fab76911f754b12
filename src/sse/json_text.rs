//! The text of a JSON string, halves of surrogate pairs included.
//!
//! A chunk of output may be cut between the two halves of an escaped pair
//! (`"\ud83d"` then `"\ude00"`), which JSON parsers refuse as text. Here a half
//! at either edge is handed out beside the text; one in the middle has no
//! partner and becomes U+FFFD. Knows nothing of chunks or offsets.

use memchr::memchr2;

/// Halves of surrogate pairs at the edges of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Halves {
    /// A low half (U+DC00 to U+DFFF) before the text.
    pub(super) head: Option<u16>,
    /// A high half (U+D800 to U+DBFF) after the text.
    pub(super) tail: Option<u16>,
}

impl Halves {
    /// How many there are.
    pub(super) fn count(self) -> usize {
        usize::from(self.head.is_some()) + usize::from(self.tail.is_some())
    }
}

/// The character of a pair; U+FFFD where these are not its two halves.
pub(super) fn join(high: u16, low: u16) -> char {
    char::decode_utf16([high, low])
        .next()
        .and_then(Result::ok)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Collects text and code units into a `String`, pairing halves on the way.
struct Collector<'a> {
    out: &'a mut String,
    start: usize,
    halves: Halves,
}

impl Collector<'_> {
    #[inline]
    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.settle();
            self.out.push_str(text);
        }
    }

    fn unit(&mut self, unit: u16) {
        match unit {
            0xD800..=0xDBFF => {
                self.settle();
                self.halves.tail = Some(unit);
            }
            0xDC00..=0xDFFF => match self.halves.tail.take() {
                Some(high) => self.out.push(join(high, unit)),
                None if self.out.len() == self.start && self.halves.head.is_none() => {
                    self.halves.head = Some(unit);
                }
                None => self.out.push(char::REPLACEMENT_CHARACTER),
            },
            _ => {
                let character = char::from_u32(u32::from(unit));
                self.character(character.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
    }

    #[inline]
    fn character(&mut self, character: char) {
        self.settle();
        self.out.push(character);
    }

    /// A high half that something else follows stays alone.
    #[inline]
    fn settle(&mut self) {
        if self.halves.tail.take().is_some() {
            self.out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Appends the JSON string that begins behind its opening quote in `json`, and
/// returns what follows its closing quote. `None` where the string is not JSON
/// (`out` then holds a part). An unescaped control character, which JSON
/// forbids, is taken as text: refusing it would lose output.
pub(super) fn unescape<'a>(json: &'a str, out: &mut String) -> Option<(Halves, &'a str)> {
    let bytes = json.as_bytes();
    let start = out.len();
    let mut to = Collector {
        out,
        start,
        halves: Halves::default(),
    };
    let mut at = 0;
    loop {
        let stop = at + special(bytes.get(at..)?)?;
        to.text(json.get(at..stop)?);
        if bytes.get(stop) == Some(&b'"') {
            return Some((to.halves, json.get(stop + 1..)?));
        }
        at = stop + 2;
        match bytes.get(stop + 1)? {
            b'n' => to.character('\n'),
            b't' => to.character('\t'),
            b'r' => to.character('\r'),
            byte @ (b'"' | b'\\' | b'/') => to.character(char::from(*byte)),
            b'b' => to.character('\u{8}'),
            b'f' => to.character('\u{c}'),
            b'u' => {
                let digits = bytes.get(at..at + 4)?;
                let unit = digits.iter().try_fold(0, |unit, digit| {
                    char::from(*digit)
                        .to_digit(16)
                        .map(|digit| unit << 4 | digit)
                })?;
                to.unit(u16::try_from(unit).ok()?);
                at += 4;
            }
            _ => return None,
        }
    }
}

/// The place of the next quote or backslash. Coloured output has an escape every
/// few bytes: the first ones are looked at here, before a search is worth its call.
#[inline]
fn special(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for _ in 0..2 {
        let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) else {
            break;
        };
        let found = special_in(u64::from_le_bytes(*eight));
        if found < 8 {
            return Some(at + found);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', bytes.get(at..)?).map(|place| place + at)
}

/// The place of the first quote or backslash among eight bytes; 8 if none.
#[inline]
fn special_in(eight: u64) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The lowest set high bit marks the lowest zero byte.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let quotes = zeros(eight ^ (ONES * u64::from(b'"')));
    let backslashes = zeros(eight ^ (ONES * u64::from(b'\\')));
    (quotes | backslashes).trailing_zeros() as usize / 8
}

/// Appends text in WTF-8, the form in which `serde_json` gives a string's bytes.
pub(super) fn push_wtf8(mut bytes: &[u8], out: &mut String) -> Halves {
    let start = out.len();
    let mut to = Collector {
        out,
        start,
        halves: Halves::default(),
    };
    loop {
        let valid = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default())
                .unwrap_or_default(),
        };
        to.text(valid);
        match bytes.get(valid.len()..) {
            Some([0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF, rest @ ..]) => {
                let low_bits = u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F);
                to.unit(0xD000 | low_bits);
                bytes = rest;
            }
            None | Some([]) => return to.halves,
            Some([_, rest @ ..]) => {
                to.text("\u{FFFD}");
                bytes = rest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::cases::cases;

    fn read(json: &str) -> Option<(String, Halves, String)> {
        let mut out = String::from("before");
        let (halves, rest) = unescape(json, &mut out)?;
        Some((
            out.strip_prefix("before")?.to_owned(),
            halves,
            rest.to_owned(),
        ))
    }

    fn whole(json: &str) -> (String, Option<u16>, Option<u16>) {
        let (text, halves, rest) = read(json).unwrap();
        assert_eq!(rest, "");
        (text, halves.head, halves.tail)
    }

    #[test]
    fn every_escape_becomes_its_character() {
        assert_eq!(
            whole(r#"a\"b\\c\/d\be\ff\ng\rh\ti\u0000j\u00e9k\u65E5l""#),
            ("a\"b\\c/d\u{8}e\u{c}f\ng\rh\ti\0jék日l".into(), None, None)
        );
    }

    #[test]
    fn what_follows_the_closing_quote_is_returned() {
        assert_eq!(read(r#"a","offset":1}"#).unwrap().2, r#","offset":1}"#);
    }

    #[test]
    fn a_pair_is_one_character_and_a_half_at_an_edge_stays_a_half() {
        assert_eq!(whole(r#"\ud83d\ude00""#), ("😀".into(), None, None));
        assert_eq!(whole(r#"a\ud83d""#), ("a".into(), None, Some(0xD83D)));
        assert_eq!(whole(r#"\ude00a""#), ("a".into(), Some(0xDE00), None));
        assert_eq!(
            whole(r#"\ude00\ud83d""#),
            (String::new(), Some(0xDE00), Some(0xD83D))
        );
    }

    #[test]
    fn a_half_without_its_partner_inside_the_text_is_replaced() {
        assert_eq!(whole(r#"a\ud83db""#), ("a\u{FFFD}b".into(), None, None));
        assert_eq!(whole(r#"a\ude00b""#), ("a\u{FFFD}b".into(), None, None));
        assert_eq!(
            whole(r#"\ud83d\ud83d\ude00""#),
            ("\u{FFFD}😀".into(), None, None)
        );
        assert_eq!(whole(r#"\ud83d\n""#), ("\u{FFFD}\n".into(), None, None));
        assert_eq!(
            whole(r#"\ude00\ude00""#),
            ("\u{FFFD}".into(), Some(0xDE00), None)
        );
    }

    #[test]
    fn a_string_that_is_not_json_is_refused() {
        for json in [
            "",
            "abc",
            r"a\",
            r"a\u12",
            r#"\u+123""#,
            r#"\x""#,
            r#"\u12é""#,
            r#"\ud83""#,
        ] {
            assert!(read(json).is_none(), "{json}");
        }
    }

    #[test]
    fn wtf8_gives_the_same_halves_as_escapes() {
        let mut out = String::new();
        let halves = push_wtf8(b"\xED\xB8\x80a\xED\xA0\xBDb\xED\xA0\xBD", &mut out);
        assert_eq!(out, "a\u{FFFD}b");
        assert_eq!(
            halves,
            Halves {
                head: Some(0xDE00),
                tail: Some(0xD83D)
            }
        );
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn text_of_any_code_units_reads_as_serde_json_reads_it(
            units in prop::collection::vec(prop_oneof![any::<u16>(), 0xD7F0u16..0xE010, 0u16..128], 0..40),
            escape_all in any::<bool>(),
        ) {
            let mut json = String::new();
            for item in char::decode_utf16(units) {
                match item {
                    Ok(character) if !escape_all && character >= ' ' && !"\"\\".contains(character) => {
                        json.push(character);
                    }
                    Ok(character) => {
                        for unit in character.encode_utf16(&mut [0; 2]) {
                            json.push_str(&format!("\\u{unit:04x}"));
                        }
                    }
                    Err(half) => json.push_str(&format!("\\u{:04X}", half.unpaired_surrogate())),
                }
            }
            json.push('"');
            let ours = whole(&json);
            let quoted = format!("\"{json}");
            let bytes: Wtf8 = serde_json::from_str(&quoted).unwrap();
            let mut theirs = String::new();
            let halves = push_wtf8(&bytes.0, &mut theirs);
            prop_assert_eq!(ours, (theirs, halves.head, halves.tail));
        }
    }

    struct Wtf8(Vec<u8>);

    impl<'de> serde::Deserialize<'de> for Wtf8 {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Bytes;
            impl serde::de::Visitor<'_> for Bytes {
                type Value = Wtf8;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a string")
                }
                fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Wtf8, E> {
                    Ok(Wtf8(bytes.to_vec()))
                }
            }
            from.deserialize_bytes(Bytes)
        }
    }
}
