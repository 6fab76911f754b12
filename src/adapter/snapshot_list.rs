//! Lists snapshots, and finds what one submission captured among them.

use super::cursor::Cursor;
use super::pages::{Fetched, Listing, MAX_LIMIT, SEARCH_PAGE};
use super::records::{
    FindRequest, FindResult, ListSnapshotsRequest, Page, SnapshotRecord, SnapshotState,
};
use super::{Call, Connection, sandbox_view, snapshot_view};
use crate::api::answer::parse;
use crate::api::snapshots;
use crate::error::{Code, Result};
use crate::wire::snapshots::{Snapshot, SnapshotPage};

const LIST: &str = "snapshots";

/// Matches whose state is looked up. More than one match is ambiguous anyway.
const MAX_LOOKS: usize = 4;

impl Connection {
    /// One page of the account's snapshots, in the service's order. A list does
    /// not say in what state a snapshot is: `unknown`, until it is inspected.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list.
    pub async fn list_snapshots(
        &self,
        request: &ListSnapshotsRequest,
        call: &Call,
    ) -> Result<Page<SnapshotRecord>> {
        const OPERATION: &str = "snapshot_list";
        let from = Cursor::given(request.cursor.as_deref(), LIST, None, OPERATION)?;
        let limit = request.limit.clamp(1, MAX_LIMIT);
        let listing = Listing {
            fetch: |after: Option<String>| async move {
                self.snapshot_page(OPERATION, limit, after.as_deref(), None, call)
                    .await
            },
            id: |view: &Snapshot| &view.id,
            keep: &|_| true,
        };
        let next = |after| Cursor::new(LIST, None, after);
        let page = listing.page(limit as usize, from.as_ref(), next).await?;
        let items = page.items.into_iter().map(snapshot_view::record).collect();
        Ok(Page {
            items,
            cursor: page.cursor,
            coverage: page.coverage,
        })
    }

    /// Every snapshot whose markers are exactly these, within 5,000. The
    /// service filters, and is not relied on to.
    ///
    /// # Errors
    /// Those of reads.
    pub async fn find_snapshots(
        &self,
        request: &FindRequest,
        call: &Call,
    ) -> Result<FindResult<SnapshotRecord>> {
        const OPERATION: &str = "snapshot_find";
        let filter = Some((sandbox_view::OPERATION, request.markers.operation.as_str()));
        let listing = Listing {
            fetch: |after: Option<String>| async move {
                self.snapshot_page(OPERATION, SEARCH_PAGE, after.as_deref(), filter, call)
                    .await
            },
            id: |view: &Snapshot| &view.id,
            keep: &|view| {
                sandbox_view::markers(view.metadata.as_ref()).as_ref() == Some(&request.markers)
            },
        };
        let (matches, searched) = listing.search().await?;
        let mut matches: Vec<SnapshotRecord> =
            matches.into_iter().map(snapshot_view::record).collect();
        for record in matches.iter_mut().take(MAX_LOOKS) {
            match self.snapshot(OPERATION, &record.id, None, call).await {
                Ok(status) => {
                    record.state = status.state;
                    record.provider_state = status.provider_state;
                    record.reason = status.reason;
                }
                // It was deleted after it was listed.
                Err(error) if error.code() == Code::NotFound => {
                    record.state = SnapshotState::Deleted;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(FindResult { matches, searched })
    }

    async fn snapshot_page(
        &self,
        operation: &'static str,
        limit: u32,
        after: Option<&str>,
        metadata: Option<(&str, &str)>,
        call: &Call,
    ) -> Result<Fetched<Snapshot>> {
        let request = snapshots::list(limit, after, metadata);
        let context = self.context(operation, &request);
        let page: SnapshotPage = parse(&self.read(&request, &context, call).await?, &context)?;
        Ok(Fetched {
            items: page.snapshots,
            has_more: page.has_more == Some(true),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::records::{Markers, Searched};
    use super::super::testing::connect;
    use super::*;
    use crate::transport::scripted::Step;

    fn view(id: &str, operation: &str) -> Value {
        let metadata = json!({ "beachside_operation": operation, "beachside_submission": "sub-1" });
        json!({ "id": id, "metadata": metadata, "source_devbox_id": "dbx_1" })
    }

    fn page(views: &[Value], has_more: bool) -> Step {
        Step::json(
            200,
            &json!({ "snapshots": views, "has_more": has_more }).to_string(),
        )
    }

    fn find() -> FindRequest {
        let markers = Markers {
            operation: "op-1".into(),
            submission: "sub-1".into(),
        };
        FindRequest {
            markers,
            source_sandbox_id: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn v18_snapshots_are_listed_in_pages_without_a_state() {
        let (connection, script) = connect([
            page(&[view("snp_1", "x")], true),
            page(&[view("snp_2", "x")], false),
        ])
        .await;
        let call = Call::default();
        let first = ListSnapshotsRequest {
            limit: 1,
            cursor: None,
        };
        let first = connection.list_snapshots(&first, &call).await.unwrap();
        assert_eq!(first.items[0].state, SnapshotState::Unknown);
        let next = ListSnapshotsRequest {
            limit: 1,
            cursor: first.cursor,
        };
        let second = connection.list_snapshots(&next, &call).await.unwrap();
        assert_eq!(
            (second.items[0].id.as_str(), second.cursor),
            ("snp_2", None)
        );
        assert!(script.lines()[1].ends_with("?limit=1&starting_after=snp_1"));
    }

    #[tokio::test(start_paused = true)]
    async fn r30_a_search_filters_and_checks_again_and_looks_up_the_state_of_a_match() {
        let (connection, script) = connect([
            page(&[view("snp_1", "op-2"), view("snp_2", "op-1")], false),
            Step::json(200, r#"{"status":"in_progress"}"#),
        ])
        .await;
        let found = connection
            .find_snapshots(&find(), &Call::default())
            .await
            .unwrap();
        assert_eq!(found.matches.len(), 1);
        assert_eq!(found.matches[0].id, "snp_2");
        assert_eq!(found.matches[0].state, SnapshotState::Creating);
        assert_eq!(found.matches[0].source_sandbox_id.as_deref(), Some("dbx_1"));
        assert_eq!(
            found.searched,
            Searched {
                items: 2,
                complete: true
            }
        );
        assert_eq!(
            script.lines()[0],
            "Get /v1/devboxes/disk_snapshots?limit=200&metadata%5Bbeachside_operation%5D=op-1"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn v20_a_search_that_never_ends_is_incomplete() {
        let steps = (0..26).map(|number| page(&[view(&format!("snp_{number}"), "x")], true));
        let (connection, script) = connect(steps).await;
        let found = connection
            .find_snapshots(&find(), &Call::default())
            .await
            .unwrap();
        assert_eq!(script.seen().len(), 25);
        assert_eq!(
            found.searched,
            Searched {
                items: 25,
                complete: false
            }
        );
    }
}
