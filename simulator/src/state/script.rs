//! A box whose shown status follows a script instead of the truth.
//!
//! The script begins when the box truly enters a status (at once, if it names
//! none), shows each step for its time or its number of views, and then lets
//! the truth be seen again unless its last step stays. While it shows anything
//! but `running`, commands and files are refused as for such a box. A box that
//! truly ends shows that, unless the script is sticky.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::status::DevboxStatus;

/// One step. Without `views` and `milliseconds` it stays.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Any text: a status that no client knows is a case of its own.
    pub(crate) status: String,
    /// Over after it was shown so many times.
    #[serde(default)]
    pub(crate) views: Option<u64>,
    /// Over after so long.
    #[serde(default)]
    pub(crate) milliseconds: Option<u64>,
    #[serde(default)]
    pub(crate) failure_reason: Option<String>,
    #[serde(default)]
    pub(crate) shutdown_reason: Option<String>,
}

/// A script as a rule gives it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    /// The true status with which it begins.
    #[serde(default)]
    pub(crate) when: Option<DevboxStatus>,
    pub(crate) steps: Vec<Step>,
    /// It goes on although the box has truly ended.
    #[serde(default)]
    pub(crate) sticky: bool,
}

/// A script that a box plays.
#[derive(Debug)]
pub(crate) struct Playing {
    script: Script,
    /// `None` until it begins.
    step: Option<Current>,
}

#[derive(Debug)]
struct Current {
    index: usize,
    views: u64,
    began: Instant,
}

impl Playing {
    pub(crate) fn new(script: Script, status: DevboxStatus, now: Instant) -> Self {
        let mut playing = Self { script, step: None };
        playing.entered(status, now);
        playing
    }

    /// The box truly entered a status.
    pub(crate) fn entered(&mut self, status: DevboxStatus, now: Instant) {
        if self.step.is_none() && self.script.when.is_none_or(|when| when == status) {
            self.step = Some(Current {
                index: 0,
                views: 0,
                began: now,
            });
        }
    }

    /// Goes on to the step of this moment; whether the script is over.
    pub(crate) fn advance(&mut self, now: Instant, truth: DevboxStatus) -> bool {
        if truth.is_final() && !self.script.sticky {
            return true;
        }
        let Some(current) = &mut self.step else {
            return false;
        };
        loop {
            let Some(step) = self.script.steps.get(current.index) else {
                return true;
            };
            let length = step.milliseconds.map(Duration::from_millis);
            let is_seen = step.views.is_some_and(|views| current.views >= views);
            let end = length
                .map(|length| current.began + length)
                .filter(|end| *end <= now);
            let Some(next_began) = end.or(is_seen.then_some(now)) else {
                return false;
            };
            *current = Current {
                index: current.index + 1,
                views: 0,
                began: next_began,
            };
        }
    }

    /// The step that is shown now, if the script has begun.
    pub(crate) fn shown(&self) -> Option<&Step> {
        self.step
            .as_ref()
            .and_then(|current| self.script.steps.get(current.index))
    }

    /// Counts one showing.
    pub(crate) fn count_view(&mut self) {
        if let Some(current) = &mut self.step {
            current.views += 1;
        }
    }

    /// When the step that is shown ends by itself.
    pub(crate) fn next_change(&self) -> Option<Instant> {
        let length = self.shown()?.milliseconds?;
        Some(self.step.as_ref()?.began + Duration::from_millis(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(status: &str, views: Option<u64>, milliseconds: Option<u64>) -> Step {
        let status = status.to_owned();
        Step {
            status,
            views,
            milliseconds,
            failure_reason: None,
            shutdown_reason: None,
        }
    }

    fn shown(playing: &mut Playing, now: Instant) -> Option<String> {
        if playing.advance(now, DevboxStatus::Running) {
            return None;
        }
        let shown = playing.shown().map(|step| step.status.clone());
        playing.count_view();
        shown
    }

    #[test]
    fn steps_end_by_views_and_by_time_and_then_the_truth_shows() {
        let begin = Instant::now();
        let script = Script {
            when: Some(DevboxStatus::Running),
            steps: vec![
                step("shutdown", Some(2), None),
                step("migrating", None, Some(100)),
            ],
            sticky: false,
        };
        let mut playing = Playing::new(script, DevboxStatus::Provisioning, begin);
        assert_eq!(shown(&mut playing, begin), None, "not begun");
        playing.entered(DevboxStatus::Running, begin);
        assert_eq!(shown(&mut playing, begin).as_deref(), Some("shutdown"));
        assert_eq!(shown(&mut playing, begin).as_deref(), Some("shutdown"));
        assert_eq!(shown(&mut playing, begin).as_deref(), Some("migrating"));
        let later = begin + Duration::from_millis(99);
        assert_eq!(shown(&mut playing, later).as_deref(), Some("migrating"));
        let later = begin + Duration::from_millis(100);
        assert!(playing.advance(later, DevboxStatus::Running), "over");
    }

    #[test]
    fn a_true_end_shows_unless_the_script_is_sticky() {
        let now = Instant::now();
        for sticky in [false, true] {
            let script = Script {
                when: None,
                steps: vec![step("running", None, None)],
                sticky,
            };
            let mut playing = Playing::new(script, DevboxStatus::Running, now);
            assert_eq!(playing.advance(now, DevboxStatus::Shutdown), !sticky);
        }
    }
}
