//! Lists Devboxes, and finds what one submission made among them.

use super::cursor::Cursor;
use super::pages::{Fetched, Listing, MAX_LIMIT, SEARCH_PAGE};
use super::records::{
    FindRequest, FindResult, ListSandboxesRequest, Page, SandboxRecord, SandboxState,
};
use super::{Call, Connection, sandbox_view};
use crate::api::answer::parse;
use crate::api::devboxes;
use crate::error::Result;
use crate::wire::devboxes::{Devbox, DevboxPage};

const LIST: &str = "sandboxes";

/// Items asked for where most may have to be left out.
const FILTERED_PAGE: u32 = 200;

impl Connection {
    /// One page of the account's sandboxes, those that are shut down included,
    /// in the service's order (unknown; newest first as far as seen).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list.
    pub async fn list_sandboxes(
        &self,
        request: &ListSandboxesRequest,
        call: &Call,
    ) -> Result<Page<SandboxRecord>> {
        const OPERATION: &str = "sandbox_list";
        let state = request.state;
        let from = Cursor::given(request.cursor.as_deref(), LIST, state, OPERATION)?;
        let limit = request.limit.clamp(1, MAX_LIMIT);
        let status = state.and_then(provider_status);
        let asked = if state.is_some() && status.is_none() {
            FILTERED_PAGE.max(limit)
        } else {
            limit
        };
        let listing = Listing {
            fetch: |after: Option<String>| async move {
                self.devbox_page(OPERATION, asked, after.as_deref(), status, call)
                    .await
            },
            id: |view: &Devbox| &view.id,
            // The service may ignore a filter.
            keep: &|view| state.is_none_or(|state| state_of(view) == state),
        };
        let next = |after| Cursor::new(LIST, state, after);
        let page = listing.page(limit as usize, from.as_ref(), next).await?;
        let items = page
            .items
            .into_iter()
            .map(|view| self.record(view))
            .collect();
        Ok(Page {
            items,
            cursor: page.cursor,
            coverage: page.coverage,
        })
    }

    /// Every sandbox whose markers are exactly these, within 5,000.
    ///
    /// Nothing is promised by an empty result: a create that is still on its
    /// way may appear later.
    ///
    /// # Errors
    /// Those of reads.
    pub async fn find_sandboxes(
        &self,
        request: &FindRequest,
        call: &Call,
    ) -> Result<FindResult<SandboxRecord>> {
        const OPERATION: &str = "sandbox_find";
        let listing = Listing {
            fetch: |after: Option<String>| async move {
                self.devbox_page(OPERATION, SEARCH_PAGE, after.as_deref(), None, call)
                    .await
            },
            id: |view: &Devbox| &view.id,
            keep: &|view| {
                sandbox_view::markers(view.metadata.as_ref()).as_ref() == Some(&request.markers)
            },
        };
        let (matches, searched) = listing.search().await?;
        let matches = matches.into_iter().map(|view| self.record(view)).collect();
        Ok(FindResult { matches, searched })
    }

    async fn devbox_page(
        &self,
        operation: &'static str,
        limit: u32,
        after: Option<&str>,
        status: Option<&str>,
        call: &Call,
    ) -> Result<Fetched<Devbox>> {
        let request = devboxes::list(limit, after, status);
        let context = self.context(operation, &request);
        let page: DevboxPage = parse(&self.read(&request, &context, call).await?, &context)?;
        Ok(Fetched {
            items: page.devboxes,
            has_more: page.has_more == Some(true),
        })
    }
}

fn state_of(view: &Devbox) -> SandboxState {
    sandbox_view::state(view.status.as_deref().unwrap_or_default())
}

/// The one status of the service that is this state, where it is one.
fn provider_status(state: SandboxState) -> Option<&'static str> {
    match state {
        SandboxState::Running => Some("running"),
        SandboxState::Suspending => Some("suspending"),
        SandboxState::Suspended => Some("suspended"),
        SandboxState::Resuming => Some("resuming"),
        SandboxState::Failed => Some("failure"),
        SandboxState::Destroyed => Some("shutdown"),
        SandboxState::Starting | SandboxState::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::records::Markers;
    use super::super::records::Searched;
    use super::super::testing::connect;
    use super::*;
    use crate::error::Code;
    use crate::transport::scripted::Step;

    fn view(id: &str, status: &str, operation: &str) -> Value {
        let metadata = json!({ "beachside_operation": operation, "beachside_submission": "sub-1" });
        json!({ "id": id, "status": status, "metadata": metadata, "create_time_ms": 17 })
    }

    fn page(views: &[Value], has_more: bool) -> Step {
        Step::json(
            200,
            &json!({ "devboxes": views, "has_more": has_more }).to_string(),
        )
    }

    fn markers() -> Markers {
        Markers {
            operation: "op-1".into(),
            submission: "sub-1".into(),
        }
    }

    fn request(state: Option<SandboxState>) -> ListSandboxesRequest {
        ListSandboxesRequest {
            limit: 2,
            cursor: None,
            state,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn v18_a_page_carries_records_a_cursor_and_its_coverage() {
        let (connection, script) = connect([
            page(
                &[
                    view("dbx_1", "running", "op-1"),
                    view("dbx_2", "shutdown", "op-2"),
                ],
                true,
            ),
            page(&[view("dbx_3", "running", "op-3")], false),
        ])
        .await;
        let call = Call::default();
        let first = connection
            .list_sandboxes(&request(None), &call)
            .await
            .unwrap();
        assert_eq!(first.items.len(), 2);
        assert_eq!(first.items[0].markers, Some(markers()));
        assert_eq!(first.items[0].created_at_ms, Some(17.0));
        assert!(first.coverage.complete);
        let next = ListSandboxesRequest {
            cursor: first.cursor,
            ..request(None)
        };
        let second = connection.list_sandboxes(&next, &call).await.unwrap();
        assert_eq!((second.items.len(), second.cursor), (1, None));
        assert_eq!(
            script.lines(),
            [
                "Get /v1/devboxes?limit=2&include_total_count=false",
                "Get /v1/devboxes?limit=2&include_total_count=false&starting_after=dbx_2",
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_is_asked_for_and_checked_again() {
        let views = [
            view("dbx_1", "running", "op-1"),
            view("dbx_2", "shutdown", "op-2"),
        ];
        let (connection, script) = connect([page(&views, false)]).await;
        let listed = connection
            .list_sandboxes(&request(Some(SandboxState::Running)), &Call::default())
            .await
            .unwrap();
        assert_eq!(listed.items.len(), 1);
        assert!(
            script.lines()[0].ends_with("&status=running"),
            "{:?}",
            script.lines()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_foreign_cursor_is_refused_before_any_request() {
        let (connection, script) = connect([]).await;
        let foreign = ListSandboxesRequest {
            cursor: Some("dbx_1".into()),
            ..request(None)
        };
        let error = connection
            .list_sandboxes(&foreign, &Call::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(script.seen().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn r30_a_search_pages_compares_markers_itself_and_says_what_it_covered() {
        let (connection, _) = connect([
            page(
                &[
                    view("dbx_1", "running", "op-2"),
                    view("dbx_2", "running", "op-1"),
                ],
                true,
            ),
            page(&[json!({ "id": "dbx_3" })], false),
        ])
        .await;
        let find = FindRequest {
            markers: markers(),
            source_sandbox_id: None,
        };
        let found = connection
            .find_sandboxes(&find, &Call::default())
            .await
            .unwrap();
        assert_eq!(found.matches.len(), 1);
        assert_eq!(found.matches[0].id, "dbx_2");
        assert_eq!(
            found.searched,
            Searched {
                items: 3,
                complete: true
            }
        );
    }

    #[tokio::test(start_paused = true)]
    async fn v20_a_search_is_bounded_and_a_repeated_page_makes_no_second_match() {
        let steps =
            (0..26).map(|number| page(&[view(&format!("d{number}"), "running", "x")], true));
        let (connection, script) = connect(steps).await;
        let find = FindRequest {
            markers: markers(),
            source_sandbox_id: None,
        };
        let found = connection
            .find_sandboxes(&find, &Call::default())
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

        let repeated = || page(&[view("dbx_1", "running", "op-1")], true);
        let (connection, _) = connect([repeated(), repeated()]).await;
        let found = connection
            .find_sandboxes(&find, &Call::default())
            .await
            .unwrap();
        assert_eq!((found.matches.len(), found.searched.complete), (1, false));
    }
}
