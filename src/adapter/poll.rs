//! One long poll, and the pace of the next.

use std::time::Duration;

use tokio::time::Instant;

use super::{Call, Connection};
use crate::api::Context;
use crate::api::answer::{refusal, unanswered};
use crate::error::Result;
use crate::message::{Request, Response, Sent, What};

/// Faults in a row after which a wait gives up.
const MAX_FAULTS: u32 = 5;

/// Longest pause between two polls.
const MAX_PAUSE: Duration = Duration::from_secs(4);

/// Keeps a wait from becoming a busy loop, and counts the faults in a row.
#[derive(Debug)]
pub(super) struct Pace {
    started: Instant,
    hold: Duration,
    /// Polls in a row that ended long before their hold.
    early: u32,
    faults: u32,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            hold: Duration::ZERO,
            early: 0,
            faults: 0,
        }
    }

    fn start(&mut self, hold: Duration) {
        self.started = Instant::now();
        self.hold = hold;
    }

    /// Whether the hold was nearly used up, so that its end is no surprise.
    fn is_held(&self) -> bool {
        self.started.elapsed() >= self.hold.mul_f64(0.8)
    }

    /// Waits where the last poll was not held: nothing after the first, then doubling from 50 ms.
    pub(super) async fn breathe(&mut self, deadline: Instant) {
        if self.is_held() {
            self.early = 0;
            return;
        }
        self.early += 1;
        if self.early > 1 {
            let pause = Duration::from_millis(50) * 2_u32.pow((self.early - 2).min(7));
            let until = Instant::now() + pause.min(MAX_PAUSE);
            tokio::time::sleep_until(until.min(deadline)).await;
        }
    }
}

impl Connection {
    /// Asks once. `None` is "not yet": the hold is over, or a fault that a
    /// further poll may get past. The pause that `None` calls for is taken here.
    pub(super) async fn poll(
        &self,
        request: &Request,
        context: &Context<'_>,
        pace: &mut Pace,
        call: &Call,
    ) -> Result<Option<Response>> {
        let operation = context.operation;
        let deadline = request
            .deadline
            .unwrap_or_else(|| Instant::now() + request.hold);
        pace.start(request.hold);
        let traced = self.traced(request, operation, call);
        let sending = self.transport().send(traced.as_ref().unwrap_or(request));
        let (error, asked_pause) = match self.until_stopped(call, operation, sending).await? {
            Ok(answer) if answer.head.is_success() => {
                pace.faults = 0;
                return Ok(Some(answer));
            }
            Ok(answer) => match answer.head.status {
                408 => {
                    pace.faults = 0;
                    self.until_stopped(call, operation, pace.breathe(deadline))
                        .await?;
                    return Ok(None);
                }
                429 | 500.. => (refusal(&answer, context), answer.head.retry_after_seconds),
                _ => return Err(refusal(&answer, context)),
            },
            // A server or a proxy that drops an idle connection at the end of
            // the hold says the same as a 408.
            Err(failure)
                if failure.sent == Sent::Maybe
                    && matches!(failure.what, What::Reset | What::Timeout)
                    && pace.is_held() =>
            {
                return Ok(None);
            }
            Err(failure) if matches!(failure.what, What::Build | What::Unaddressable) => {
                return Err(unanswered(&failure, context));
            }
            Err(failure) => (unanswered(&failure, context), None),
        };
        if Instant::now() >= deadline {
            return Ok(None);
        }
        pace.faults += 1;
        if pace.faults >= MAX_FAULTS {
            return Err(error.with_attempts(pace.faults));
        }
        let backoff = Duration::from_millis(100) * 2_u32.pow(pace.faults);
        let asked = asked_pause.map_or(Duration::ZERO, |seconds| {
            Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
        });
        let until = Instant::now() + backoff.max(asked).min(Duration::from_secs(30));
        let pause = tokio::time::sleep_until(until.min(deadline));
        self.until_stopped(call, operation, pause).await?;
        Ok(None)
    }
}
