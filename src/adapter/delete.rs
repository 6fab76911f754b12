//! Deletes a snapshot, and looks that it is gone.

use std::time::Duration;

use tokio::time::Instant;

use super::records::{Gone, SnapshotState};
use super::{Call, Connection};
use crate::api::snapshots;
use crate::error::{Code, Error, Result};

const OPERATION: &str = "snapshot_delete";

impl Connection {
    /// Submits the deletion, once, unless the snapshot is deleted already, and
    /// resolves when the service reports it as deleted.
    ///
    /// # Errors
    /// `CONFLICT` for one that is not complete; `NOT_FOUND`; `OUTCOME_UNKNOWN`
    /// where the answer is lost or the snapshot stays for
    /// `timeouts.stopSeconds`. All carry the snapshot's id.
    pub async fn delete_snapshot(&self, snapshot_id: &str, call: &Call) -> Result<Gone> {
        self.delete(snapshot_id, call).await.map_err(|error| {
            error.with_outcome(|outcome| outcome.snapshot_id = Some(snapshot_id.to_owned()))
        })
    }

    async fn delete(&self, snapshot_id: &str, call: &Call) -> Result<Gone> {
        // A repeated deletion is answered like the first.
        let before = self.snapshot(OPERATION, snapshot_id, None, call).await?;
        if before.state == SnapshotState::Deleted {
            return Ok(Gone { already_gone: true });
        }
        let request = snapshots::delete(snapshot_id);
        let context = self
            .context(OPERATION, &request)
            .about("snapshot", snapshot_id);
        self.submit(request, &context, call).await?;
        self.confirm_deleted(snapshot_id, call)
            .await
            .map_err(|error| error.with_outcome(|outcome| outcome.submitted = Some(true)))
    }

    /// Looks until the service reports an accepted deletion.
    async fn confirm_deleted(&self, snapshot_id: &str, call: &Call) -> Result<Gone> {
        const GONE: Result<Gone> = Ok(Gone {
            already_gone: false,
        });
        let limit = self.config().timeouts.stop;
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_millis(100);
        loop {
            match self
                .snapshot(OPERATION, snapshot_id, Some(deadline), call)
                .await
            {
                Ok(record) if record.state == SnapshotState::Deleted => return GONE,
                Ok(_) => {}
                Err(error) if error.code() == Code::Cancelled => return Err(error),
                Err(error) if error.code() == Code::Closed => {
                    return Err(unknown(
                        snapshot_id,
                        "was not asked any more, because the connection was closed",
                    ));
                }
                // The service accepted it and cannot be asked: that stands.
                Err(_) => return GONE,
            }
            if Instant::now() >= deadline {
                return Err(unknown(snapshot_id, "still has it"));
            }
            let until = (Instant::now() + pause).min(deadline);
            self.until_stopped(call, OPERATION, tokio::time::sleep_until(until))
                .await?;
            pause = (pause * 2).min(Duration::from_secs(2));
        }
    }
}

fn unknown(snapshot_id: &str, what: &str) -> Error {
    let message =
        format!("the deletion of snapshot {snapshot_id:?} was accepted, but the service {what}");
    Error::new(Code::OutcomeUnknown, message)
        .during(OPERATION)
        .with_resource("snapshot", snapshot_id)
}

#[cfg(test)]
mod tests {
    use super::super::testing::connect;
    use super::*;
    use crate::transport::scripted::Step;

    fn status(status: &str) -> Step {
        Step::json(200, &format!(r#"{{"status":"{status}"}}"#))
    }

    fn deleted() -> Step {
        Step::json(200, "{}")
    }

    async fn delete(steps: Vec<Step>) -> (Result<Gone>, usize) {
        let (connection, script) = connect(steps).await;
        let result = connection.delete_snapshot("snp_1", &Call::default()).await;
        let sent = script
            .lines()
            .iter()
            .filter(|line| line.starts_with("Post"))
            .count();
        (result, sent)
    }

    #[tokio::test(start_paused = true)]
    async fn r26_a_deletion_is_sent_once_and_seen_to_happen() {
        let steps = vec![
            status("complete"),
            deleted(),
            status("complete"),
            status("deleted"),
        ];
        let (gone, sent) = delete(steps).await;
        assert_eq!((gone.unwrap().already_gone, sent), (false, 1));
        let steps = vec![status("complete"), deleted(), Step::json(404, "")];
        assert_eq!(delete(steps).await.1, 1);
        let (gone, sent) = delete(vec![status("deleted")]).await;
        assert_eq!((gone.unwrap().already_gone, sent), (true, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn r31_a_deletion_that_is_refused_lost_or_without_effect_is_an_error_with_the_id() {
        let lasting = (0..100).map(|_| status("complete"));
        for (steps, code, sent) in [
            (vec![Step::json(404, "")], Code::NotFound, 0),
            (
                vec![status("in_progress"), Step::json(409, "")],
                Code::Conflict,
                1,
            ),
            (
                vec![status("complete"), Step::reset()],
                Code::OutcomeUnknown,
                1,
            ),
            (
                [status("complete"), deleted()]
                    .into_iter()
                    .chain(lasting)
                    .collect(),
                Code::OutcomeUnknown,
                1,
            ),
        ] {
            let (result, posts) = delete(steps).await;
            let error = result.unwrap_err();
            assert_eq!((error.code(), posts), (code, sent));
            assert_eq!(error.outcome().snapshot_id.as_deref(), Some("snp_1"));
        }
    }
}
