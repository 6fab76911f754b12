//! How long the adapter waits. All of it is ours; Runloop prescribes none.

use std::time::Duration;

use serde_json::Value;

use super::fields::Fields;
use crate::error::Result;

/// `config.timeouts`. Every field is a number of seconds above 0, at most one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// `connectSeconds`, default 10: making a connection.
    pub connect: Duration,
    /// `requestSeconds`, default 30: silence of the server, beyond what it is
    /// allowed to hold back; also the whole of one attempt of a short call.
    pub request: Duration,
    /// `startSeconds`, default 600: create, restore and resume until running.
    pub start: Duration,
    /// `stopSeconds`, default 120: suspend until suspended, destroy until shut down.
    pub stop: Duration,
    /// `captureSeconds`, default 900: a snapshot until it is ready.
    pub capture: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            request: Duration::from_secs(30),
            start: Duration::from_secs(600),
            stop: Duration::from_secs(120),
            capture: Duration::from_secs(900),
        }
    }
}

impl Timeouts {
    pub(super) fn parse(value: Option<&Value>) -> Result<Self> {
        let known = [
            "connectSeconds",
            "requestSeconds",
            "startSeconds",
            "stopSeconds",
            "captureSeconds",
        ];
        let fields = Fields::of("config.timeouts", value, &known)?;
        let mut timeouts = Self::default();
        for (key, place) in [
            ("connectSeconds", &mut timeouts.connect),
            ("requestSeconds", &mut timeouts.request),
            ("startSeconds", &mut timeouts.start),
            ("stopSeconds", &mut timeouts.stop),
            ("captureSeconds", &mut timeouts.capture),
        ] {
            if let Some(seconds) = fields.positive(key)? {
                if seconds > 86_400.0 {
                    let found = Value::from(seconds);
                    return Err(fields.wrong(key, "at most 86400", &found));
                }
                *place = Duration::from_secs_f64(seconds);
            }
        }
        Ok(timeouts)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn timeouts_left_out_keep_their_defaults_and_bounds_hold() {
        let timeouts = Timeouts::parse(Some(&json!({ "startSeconds": 0.3 }))).unwrap();
        assert_eq!(
            timeouts,
            Timeouts {
                start: Duration::from_millis(300),
                ..Timeouts::default()
            }
        );
        for wrong in [json!({ "startSeconds": 0 }), json!({ "startSeconds": 1e9 })] {
            let error = Timeouts::parse(Some(&wrong)).unwrap_err();
            assert!(
                error
                    .message()
                    .starts_with("config.timeouts.startSeconds must be"),
                "{error}"
            );
        }
        assert!(Timeouts::parse(Some(&json!({ "startSecond": 1 }))).is_err());
    }
}
