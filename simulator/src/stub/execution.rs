//! An execution, which is all in its id.

use std::fmt;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::command::Orders;
use super::payload;
use super::record::{self, Script};

/// Begins every id.
const PREFIX: &str = "stub";

/// Lines of output in a view where the request names no number.
const DEFAULT_LINES: u64 = 100;

/// When an execution ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// It has ended.
    Now,
    /// At a time, in milliseconds since the epoch.
    At(u64),
    /// At the next release after this many.
    Release(u64),
}

/// A started command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Execution {
    pub(super) orders: Orders,
    pub(super) script: Script,
    pub(super) due: Due,
    /// Tells executions of the same orders apart.
    pub(super) number: u64,
}

impl Execution {
    /// The command in a request's body.
    pub(super) fn find(body: &[u8], number: u64, releases: u64) -> Self {
        let orders = Orders::find(body);
        let due = match &orders {
            Orders {
                until_released: true,
                ..
            } => Due::Release(releases),
            Orders { hold_ms: 0, .. } => Due::Now,
            Orders { hold_ms, .. } => Due::At(now_ms() + hold_ms),
        };
        Self {
            orders,
            script: Script::find(body),
            due,
            number,
        }
    }

    /// Reads an id. What the adapter's other scripts print is answered at once
    /// and never asked for by id.
    pub(super) fn from_id(id: &str) -> Option<Self> {
        let mut parts = id.strip_prefix(PREFIX)?.strip_prefix('-')?.split('-');
        let mut next = || -> Option<u64> { parts.next()?.parse().ok() };
        let number = next()?;
        let orders = Orders {
            stdout_bytes: next()?,
            stderr_bytes: next()?,
            exit_code: next()?,
            event_bytes: next()?,
            bytes_per_second: next()?,
            ..Orders::default()
        };
        let (at, release) = (next()?, next()?);
        let due = match (at, release) {
            (0, 0) => Due::Now,
            (at, 0) => Due::At(at),
            (_, release) => Due::Release(release - 1),
        };
        let script = match (next(), next(), parts.next()) {
            (Some(max_bytes), Some(fit_bytes), Some(nonce)) => Script::Ran {
                nonce: nonce.to_owned(),
                max_bytes,
                fit_bytes,
            },
            _ => Script::Plain,
        };
        Some(Self {
            orders,
            script,
            due,
            number,
        })
    }

    /// How long it still runs; `None` is until a release.
    pub(super) fn left(&self, releases: u64) -> Option<Duration> {
        match self.due {
            Due::Now => Some(Duration::ZERO),
            Due::At(ms) => Some(Duration::from_millis(ms.saturating_sub(now_ms()))),
            Due::Release(before) => (releases > before).then_some(Duration::ZERO),
        }
    }

    /// The view of one that runs.
    pub(super) fn running(&self, devbox_id: &str) -> String {
        format!(
            r#"{{"devbox_id":"{devbox_id}","execution_id":"{self}","status":"running","shell_name":null}}"#
        )
    }

    /// The view of one that has ended, with its last lines.
    pub(super) fn completed(&self, devbox_id: &str, lines: Option<u64>) -> String {
        let orders = &self.orders;
        let lines = lines.unwrap_or(DEFAULT_LINES);
        let mut text = String::with_capacity(512);
        push(
            &mut text,
            format_args!(
                r#"{{"devbox_id":"{devbox_id}","execution_id":"{self}","status":"completed","#
            ),
        );
        push(
            &mut text,
            format_args!(r#""exit_status":{},"stdout":""#, orders.exit_code),
        );
        let (mut stdout_cut, mut stderr_cut) = (false, false);
        match &self.script {
            Script::Plain => {
                stdout_cut = push_tail(&mut text, orders.stdout_bytes, lines);
                text.push_str(r#"","stderr":""#);
                stderr_cut = push_tail(&mut text, orders.stderr_bytes, lines);
            }
            Script::Ran {
                nonce,
                max_bytes,
                fit_bytes,
            } => {
                record::push_ran(&mut text, orders, nonce, *max_bytes, *fit_bytes);
                text.push_str(r#"","stderr":""#);
            }
            Script::Fields { nonce, fields } => {
                record::push_fields(&mut text, nonce, fields);
                text.push_str(r#"","stderr":""#);
            }
        }
        push(
            &mut text,
            format_args!(r#"","stdout_truncated":{stdout_cut},"stderr_truncated":{stderr_cut}}}"#),
        );
        text
    }
}

/// The id: numbers, and the nonce where there is one.
impl fmt::Display for Execution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let orders = &self.orders;
        let (at, release) = match self.due {
            Due::Now => (0, 0),
            Due::At(ms) => (ms, 0),
            Due::Release(before) => (0, before + 1),
        };
        write!(
            formatter,
            "{PREFIX}-{}-{}-{}-{}-{}-{}-{at}-{release}",
            self.number,
            orders.stdout_bytes,
            orders.stderr_bytes,
            orders.exit_code,
            orders.event_bytes,
            orders.bytes_per_second,
        )?;
        match &self.script {
            Script::Ran {
                nonce,
                max_bytes,
                fit_bytes,
            } => write!(formatter, "-{max_bytes}-{fit_bytes}-{nonce}"),
            _ => Ok(()),
        }
    }
}

/// Appends the last lines of so many bytes of text; says whether it left some out.
fn push_tail(text: &mut String, bytes: u64, lines: u64) -> bool {
    let begun = bytes.div_ceil(payload::LINE_BYTES);
    let from = begun.saturating_sub(lines) * payload::LINE_BYTES;
    payload::push_escaped(text, from.min(bytes), bytes);
    from > 0
}

fn push(text: &mut String, arguments: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    text.write_fmt(arguments).unwrap_or_default();
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(command: &str) -> Vec<u8> {
        serde_json::to_vec(&serde_json::json!({ "command": command })).unwrap()
    }

    #[test]
    fn an_id_holds_the_whole_execution() {
        for command in [
            "true",
            "runloop-stub stdout=100 stderr=7 exit=3 event=9 rate=5",
            "runloop-stub hold=60000",
            "runloop-stub release=1",
        ] {
            let mut execution = Execution::find(&body(command), 4, 2);
            let read = Execution::from_id(&execution.to_string()).unwrap();
            // How it came to its end stands in `due`.
            execution.orders.hold_ms = 0;
            execution.orders.until_released = false;
            assert_eq!(read, execution, "{command}");
        }
        assert_eq!(Execution::from_id("exec_1"), None);
    }

    #[test]
    fn a_view_holds_the_last_lines() {
        let execution = Execution::find(&body("runloop-stub stdout=200 exit=2"), 1, 0);
        let view: serde_json::Value =
            serde_json::from_str(&execution.completed("dbx_1", Some(2))).unwrap();
        assert_eq!(view["exit_status"], 2);
        assert_eq!(view["stdout_truncated"], true);
        let text = payload::LINE.repeat(4);
        assert_eq!(view["stdout"], text[2 * 61..200]);
        assert_eq!(view["stderr"], "");
    }

    #[test]
    fn a_held_one_ends_by_the_clock_or_by_a_release() {
        let held = Execution::find(&body("runloop-stub hold=60000"), 1, 0);
        assert!(held.left(0).unwrap() > Duration::from_secs(50));
        let waiting = Execution::find(&body("runloop-stub release=1"), 1, 3);
        assert_eq!(waiting.left(3), None);
        assert_eq!(waiting.left(4), Some(Duration::ZERO));
    }
}
