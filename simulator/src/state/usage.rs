//! What a box has used, counted from its transitions on virtual time.
//!
//! Certain: vCPU and memory seconds leave out suspended time, disk seconds do
//! not. Which statuses count as active is inferred: from the first `running`
//! on, all but `suspended` and the final ones.

use serde_json::{Value, json};

use super::devboxes::Devbox;
use super::status::DevboxStatus;
use super::view::{maybe, with_optional};

impl Devbox {
    /// The DevboxResourceUsageView.
    pub(crate) fn usage(&self, now_ms: i64) -> Value {
        let record = self.read();
        let end_ms = record.end_time_ms.unwrap_or(now_ms);
        let mut active_ms = 0;
        let mut has_run = false;
        let ends = record
            .transitions
            .iter()
            .skip(1)
            .map(|next| next.time_ms)
            .chain([end_ms]);
        for (transition, until_ms) in record.transitions.iter().zip(ends) {
            has_run |= transition.status == DevboxStatus::Running;
            let is_active =
                !transition.status.is_final() && transition.status != DevboxStatus::Suspended;
            if has_run && is_active {
                active_ms += until_ms - transition.time_ms;
            }
        }
        let size = self.origin.launch.size;
        let elapsed_seconds = (end_ms - record.create_time_ms) / 1000;
        let active_seconds = active_ms / 1000;
        with_optional(
            json!({
                "id": self.origin.id,
                "status": record.status.as_str(),
                "start_time_ms": record.create_time_ms,
                "total_active_seconds": active_seconds,
                "total_elapsed_seconds": elapsed_seconds,
                "vcpu_seconds": scaled(active_seconds, size.vcpus),
                "memory_gb_seconds": scaled(active_seconds, size.memory_gib),
                "disk_gb_seconds": scaled(elapsed_seconds, size.disk_gib),
            }),
            [("end_time_ms", maybe(record.end_time_ms))],
        )
    }
}

/// Whole seconds times a size, which is a multiple of one half.
fn scaled(seconds: i64, size: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "sizes are at most 64")]
    let halves = (size * 2.0) as i64;
    seconds * halves / 2
}
