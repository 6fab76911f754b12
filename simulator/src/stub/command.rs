//! What a command asks of the stub.
//!
//! `runloop-stub stdout=1048576 exit=3` anywhere in a command, as words or
//! inside of other quotes, with these names:
//!
//! | name | meaning | default |
//! | --- | --- | --- |
//! | `stdout`, `stderr` | bytes that it prints | 0 |
//! | `exit` | its exit code | 0 |
//! | `event` | bytes of output in one event of a stream | 1024 |
//! | `hold` | milliseconds that it runs | 0 |
//! | `release` | 1: it runs until `POST /_simulator/stub/release` | 0 |
//! | `rate` | bytes a second of a stream; 0 is as fast as it goes | 0 |
//!
//! Any other command prints nothing and ends with 0.

use std::sync::LazyLock;

use memchr::memmem::{Finder, find};

/// The word that the orders follow.
const MARKER: &str = "runloop-stub";
static FIND_MARKER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MARKER));

/// The orders of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Orders {
    pub(super) stdout_bytes: u64,
    pub(super) stderr_bytes: u64,
    pub(super) exit_code: u64,
    pub(super) event_bytes: u64,
    pub(super) hold_ms: u64,
    pub(super) until_released: bool,
    pub(super) bytes_per_second: u64,
}

impl Default for Orders {
    fn default() -> Self {
        Self {
            stdout_bytes: 0,
            stderr_bytes: 0,
            exit_code: 0,
            event_bytes: 1024,
            hold_ms: 0,
            until_released: false,
            bytes_per_second: 0,
        }
    }
}

impl Orders {
    /// Reads the orders from a request's body, which is JSON that is not parsed.
    ///
    /// A wrapper may name the program before it runs it; what counts is where orders follow.
    pub(super) fn find(body: &[u8]) -> Self {
        FIND_MARKER
            .find_iter(body)
            .filter_map(|at| body.get(at + MARKER.len()..))
            .map(Self::read)
            .find(|orders| *orders != Self::default())
            .unwrap_or_default()
    }

    fn read(mut rest: &[u8]) -> Self {
        let mut orders = Self::default();
        while let Some((name, number, after)) = next_order(rest) {
            match name {
                b"stdout" => orders.stdout_bytes = number,
                b"stderr" => orders.stderr_bytes = number,
                b"exit" => orders.exit_code = number.min(255),
                b"event" => orders.event_bytes = number.max(1),
                b"hold" => orders.hold_ms = number,
                b"release" => orders.until_released = number > 0,
                b"rate" => orders.bytes_per_second = number,
                _ => {}
            }
            rest = after;
        }
        orders
    }
}

/// The next `name=number`, behind blanks and whatever quotes they stand in.
fn next_order(text: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    let start = text
        .iter()
        .position(|byte| !matches!(byte, b' ' | b'\'' | b'"' | b'\\'))?;
    let text = text.get(start..)?;
    let (name, after) = text.split_at(text.iter().position(|byte| !byte.is_ascii_lowercase())?);
    let (number, after) = leading_number(after.strip_prefix(b"=")?)?;
    Some((name, number, after))
}

/// A decimal number and what follows it.
pub(super) fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = text.split_at(digits);
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number, after))
}

/// The number of a JSON field, by name, where the body has one.
pub(super) fn number_field(body: &[u8], name: &str) -> Option<u64> {
    let at = find(body, name.as_bytes())? + name.len();
    let rest = body.get(at..)?.strip_prefix(b"\":")?;
    leading_number(rest.trim_ascii_start()).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_found_in_every_kind_of_quotes() {
        for command in [
            "runloop-stub stdout=7 exit=3",
            "exec env 'runloop-stub' 'stdout=7' 'exit=3' <&3",
            r"sh -c 'runloop-stub '\''stdout=7'\'' exit=3'",
            r#"bash -c "runloop-stub \"stdout=7\" exit=3" && x=9"#,
            "_bs_need 'runloop-stub' \"${PATH-}\"\nexec env 'runloop-stub' 'stdout=7' 'exit=3'",
        ] {
            let body = serde_json::to_vec(&serde_json::json!({ "command": command })).unwrap();
            let orders = Orders::find(&body);
            assert_eq!((orders.stdout_bytes, orders.exit_code), (7, 3), "{command}");
            assert_eq!(orders.event_bytes, 1024);
        }
    }

    #[test]
    fn a_command_without_orders_prints_nothing() {
        assert_eq!(Orders::find(br#"{"command":"true"}"#), Orders::default());
        assert_eq!(Orders::find(b"runloop-stub"), Orders::default());
        assert_eq!(Orders::find(b"runloop-stub stdout=x"), Orders::default());
    }

    #[test]
    fn a_number_is_read_by_its_field() {
        let body = br#"{"a": 1, "optimistic_timeout": 25}"#;
        assert_eq!(number_field(body, "optimistic_timeout"), Some(25));
        assert_eq!(number_field(body, "timeout_seconds"), None);
        assert_eq!(number_field(br#"{"n":"x"}"#, "n"), None);
    }
}
