//! Lifetimes, idle rules and unattended terminals, on virtual time.

use std::sync::Arc;
use std::time::Duration;

use super::World;
use super::devboxes::Devbox;
use super::launch::OnIdle;
use super::lifecycle;
use super::status::DevboxStatus;

/// The longest sleep between two looks: activity moves deadlines only
/// further away, so nothing else has to wake the loop.
const MAX_SLEEP: Duration = Duration::from_secs(1);

enum Due {
    Shutdown(&'static str),
    Suspend,
}

/// Ends or suspends what is due, for as long as it is polled.
pub(crate) async fn run(world: Arc<World>) {
    loop {
        let wait_ms = expire(&world).unwrap_or(i64::MAX).max(1);
        let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(u64::MAX));
        tokio::select! {
            () = tokio::time::sleep(wait.min(MAX_SLEEP)) => {}
            () = world.deadline_changed.notified() => {}
        }
    }
}

/// Ends or suspends what is due now; how long until the next deadline.
pub(crate) fn expire(world: &Arc<World>) -> Option<i64> {
    let now_ms = world.clock.now_ms();
    world.evictions.expire(world, now_ms);
    let next = |devbox| {
        let of_box = expire_one(world, devbox, now_ms);
        let of_terminals = devbox.terminals.expire(now_ms);
        of_box.into_iter().chain(of_terminals).min()
    };
    world.devboxes.all().iter().filter_map(next).min()
}

fn expire_one(world: &Arc<World>, devbox: &Arc<Devbox>, now_ms: i64) -> Option<i64> {
    let (deadline_ms, due) = deadline(devbox, now_ms)?;
    if deadline_ms > now_ms {
        return Some(deadline_ms - now_ms);
    }
    match due {
        Due::Shutdown(reason) => lifecycle::shut_down(world, devbox, reason),
        // Refused if the box has just begun to suspend or end by itself.
        Due::Suspend => lifecycle::suspend(world, devbox).unwrap_or_default(),
    }
    None
}

fn deadline(devbox: &Devbox, now_ms: i64) -> Option<(i64, Due)> {
    let record = devbox.read();
    if record.status.is_final() {
        return None;
    }
    match devbox.origin.launch.after_idle {
        // A suspended box has no lifetime under an idle rule (inferred).
        Some(rule) if record.status == DevboxStatus::Running => {
            // A command that runs keeps the box from idling (inferred).
            let is_busy = devbox.executions.any_is_live();
            let since_ms = if is_busy { now_ms } else { record.active_ms };
            let due = match rule.on_idle {
                OnIdle::Shutdown => Due::Shutdown("idle"),
                OnIdle::Suspend => Due::Suspend,
            };
            Some((since_ms + rule.idle_time_seconds * 1000, due))
        }
        Some(_) => None,
        None => record
            .lifetime_end_ms
            .map(|end_ms| (end_ms, Due::Shutdown("keep_alive_timeout"))),
    }
}
