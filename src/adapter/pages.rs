//! Bounded pages out of a service whose lists may misbehave.
//!
//! A page never repeats an item and always ends: a server that ignores the
//! place, repeats a page or sends an empty one with more to come makes the
//! page say that it may be incomplete, instead of a list that never ends.

use super::cursor::{Cursor, Trail};
use super::records::{Coverage, Page, Searched};
use crate::error::{Code, Result};

/// Items of a page at most: a page must stay well below the limit on an answer.
pub(super) const MAX_LIMIT: u32 = 1000;

/// How far a search goes: 25 pages, 5,000 items.
pub(super) const SEARCH_PAGE: u32 = 200;
const SEARCH_PAGES: u32 = 25;

/// Requests for one page: a filter that the service does not have can leave
/// most of what it sends behind.
const MAX_REQUESTS: u32 = 5;

/// One page as the service sent it.
pub(super) struct Fetched<T> {
    pub(super) items: Vec<T>,
    pub(super) has_more: bool,
}

/// What a page is made of.
pub(super) struct Listing<'a, T, Fetch> {
    /// Asks for the items after an id.
    pub(super) fetch: Fetch,
    /// An item's id.
    pub(super) id: fn(&T) -> &str,
    /// Whether an item belongs on the page.
    pub(super) keep: &'a (dyn Fn(&T) -> bool + Sync),
}

impl<T, Fetch, Reply> Listing<'_, T, Fetch>
where
    Fetch: Fn(Option<String>) -> Reply,
    Reply: Future<Output = Result<Fetched<T>>>,
{
    /// Up to `limit` items from the cursor on; `next` makes the cursor of the next page.
    pub(super) async fn page(
        &self,
        limit: usize,
        from: Option<&Cursor>,
        next: impl Fn(Vec<String>) -> Cursor,
    ) -> Result<Page<T>> {
        let mut trail = Trail::from(from);
        let mut items = Vec::new();
        let mut incomplete = None;
        let mut at_end = false;
        for request in 0..MAX_REQUESTS {
            let fetched = match self.resume(&trail, request == 0 && from.is_some()).await? {
                Some(fetched) => fetched,
                None => {
                    incomplete = Some("the place where the list stopped is gone");
                    break;
                }
            };
            let is_empty = fetched.items.is_empty();
            let mut is_full = false;
            let mut rest = fetched.items.into_iter();
            for item in rest.by_ref() {
                let id = (self.id)(&item);
                if trail.ids().iter().any(|passed| passed == id) {
                    incomplete = Some("Runloop repeated a page");
                    break;
                }
                trail.pass(id);
                if (self.keep)(&item) {
                    items.push(item);
                }
                is_full = items.len() == limit;
                if is_full {
                    break;
                }
            }
            at_end = rest.next().is_none() && !fetched.has_more;
            if is_empty && fetched.has_more {
                incomplete = Some("Runloop sent an empty page and said that more follows");
            }
            if at_end || is_full || incomplete.is_some() {
                break;
            }
        }
        let ends_here = at_end || incomplete.is_some();
        let cursor = match trail.ids() {
            ids if !ends_here && !ids.is_empty() => Some(next(ids.to_vec()).encode()?),
            _ => None,
        };
        let coverage = Coverage {
            complete: incomplete.is_none(),
            reason: incomplete,
        };
        Ok(Page {
            items,
            cursor,
            coverage,
        })
    }

    /// Every item that belongs, each once, and how much was looked at: pages of
    /// [`SEARCH_PAGE`] items, [`SEARCH_PAGES`] of them. A place that vanishes
    /// meanwhile costs at most two requests more.
    pub(super) async fn search(&self) -> Result<(Vec<T>, Searched)> {
        let mut trail = Trail::from(None);
        let mut found: Vec<T> = Vec::new();
        let mut searched = Searched {
            items: 0,
            complete: false,
        };
        for _ in 0..SEARCH_PAGES {
            let Some(fetched) = self.resume(&trail, true).await? else {
                break;
            };
            searched.items += fetched.items.len() as u64;
            let ids = fetched.items.iter().map(self.id);
            let is_repeated = ids.clone().any(|id| trail.ids().iter().any(|on| on == id));
            let is_empty = fetched.items.is_empty();
            ids.for_each(|id| trail.pass(id));
            let matches = fetched.items.into_iter().filter(|item| (self.keep)(item));
            found.extend(matches);
            searched.complete = !fetched.has_more;
            if searched.complete || is_repeated || is_empty {
                break;
            }
        }
        // A page that came twice must not make one item look like two.
        found.sort_by(|one, other| (self.id)(one).cmp((self.id)(other)));
        found.dedup_by(|one, other| (self.id)(one) == (self.id)(other));
        Ok((found, searched))
    }

    /// The items after the latest place that still exists; `None` where none does.
    async fn resume(&self, trail: &Trail, is_saved: bool) -> Result<Option<Fetched<T>>> {
        let Some((latest, earlier)) = trail.ids().split_first() else {
            return (self.fetch)(None).await.map(Some);
        };
        let mut fetched = match (self.fetch)(Some(latest.clone())).await {
            Ok(fetched) if !(is_saved && fetched.items.is_empty() && !fetched.has_more) => {
                return Ok(Some(fetched));
            }
            // What an unknown place is answered with is unknown: a refusal, or
            // an empty page that looks like the end.
            Ok(fetched) => Some(fetched),
            Err(error) if is_saved && is_refusal(error.code()) => None,
            Err(error) => return Err(error),
        };
        for place in earlier {
            match (self.fetch)(Some(place.clone())).await {
                Ok(mut again) => {
                    let seems_lost = again.items.is_empty() && !again.has_more;
                    // What was passed before is not sent twice.
                    again
                        .items
                        .retain(|item| !trail.ids().iter().any(|passed| passed == (self.id)(item)));
                    fetched = Some(again);
                    if !seems_lost {
                        break;
                    }
                }
                Err(error) if is_refusal(error.code()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(fetched)
    }
}

fn is_refusal(code: Code) -> bool {
    matches!(code, Code::Rejected | Code::NotFound)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::{Ready, ready};

    use super::*;
    use crate::error::Error;

    type Asked = RefCell<Vec<Option<String>>>;

    /// A service with these items, two a page, that answers an unknown place with `unknown`.
    fn serve<'a>(
        items: &'a [&'static str],
        unknown: fn() -> Result<Fetched<&'static str>>,
    ) -> impl Fn(Option<String>) -> Ready<Result<Fetched<&'static str>>> + 'a {
        move |after| {
            let place = after.map(|after| items.iter().position(|item| *item == after));
            ready(match place {
                Some(None) => unknown(),
                place => {
                    let rest = &items[place.flatten().map_or(0, |at| at + 1)..];
                    let page = rest.iter().take(2).copied().collect();
                    Ok(Fetched {
                        items: page,
                        has_more: rest.len() > 2,
                    })
                }
            })
        }
    }

    fn refused() -> Result<Fetched<&'static str>> {
        Err(Error::new(Code::Rejected, "no such place"))
    }

    fn seems_to_end() -> Result<Fetched<&'static str>> {
        Ok(Fetched {
            items: Vec::new(),
            has_more: false,
        })
    }

    async fn page(
        fetch: impl Fn(Option<String>) -> Ready<Result<Fetched<&'static str>>>,
        limit: usize,
        cursor: Option<&str>,
        keep: &(dyn Fn(&&'static str) -> bool + Sync),
    ) -> Page<&'static str> {
        let from = cursor.map(|text| Cursor::decode(text, "test", None).unwrap());
        let listing: Listing<'_, &'static str, _> = Listing {
            fetch,
            id: |item| item,
            keep,
        };
        let next = |after| Cursor::new("test", None, after);
        listing.page(limit, from.as_ref(), next).await.unwrap()
    }

    fn all(_: &&'static str) -> bool {
        true
    }

    #[tokio::test]
    async fn v18_pages_of_any_size_give_every_item_once_and_end() {
        let items = ["a", "b", "c", "d", "e"];
        for limit in 1..=6 {
            let (mut seen, mut cursor, mut pages) = (Vec::new(), None::<String>, 0);
            loop {
                let fetch = serve(&items, refused);
                let page = page(fetch, limit, cursor.as_deref(), &all).await;
                assert!(page.items.len() <= limit && page.coverage.complete);
                seen.extend(page.items);
                pages += 1;
                cursor = page.cursor;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, items, "{limit}");
            assert_eq!(pages, items.len().div_ceil(limit), "{limit}");
        }
    }

    #[tokio::test]
    async fn a_list_survives_the_deletion_of_the_item_it_stopped_at() {
        let before = ["a", "b", "c", "d", "e"];
        let fetch = serve(&before, refused);
        let first = page(fetch, 3, None, &all).await;
        for unknown in [refused, seems_to_end] {
            for after in [["a", "b", "d", "e"].as_slice(), &["a", "d", "e"]] {
                let fetch = serve(after, unknown);
                let second = page(fetch, 3, first.cursor.as_deref(), &all).await;
                assert_eq!(second.items, ["d", "e"]);
                assert!(second.coverage.complete && second.cursor.is_none());
            }
        }
        let fetch = serve(&["d", "e"], refused);
        let lost = page(fetch, 3, first.cursor.as_deref(), &all).await;
        assert!(lost.items.is_empty() && !lost.coverage.complete && lost.cursor.is_none());
    }

    #[tokio::test]
    async fn the_true_end_after_a_saved_place_is_told_from_a_lost_one() {
        let items = ["a", "b"];
        let fetch = serve(&items, seems_to_end);
        let cursor = Cursor::new("test", None, vec!["b".into(), "a".into()])
            .encode()
            .unwrap();
        let end = page(fetch, 3, Some(&cursor), &all).await;
        assert!(end.items.is_empty() && end.coverage.complete && end.cursor.is_none());
    }

    #[tokio::test]
    async fn a_server_that_repeats_a_page_or_sends_none_ends_the_list_as_incomplete() {
        let ignores = |_| {
            ready(Ok(Fetched {
                items: vec!["a", "b"],
                has_more: true,
            }))
        };
        let repeated = page(ignores, 5, None, &all).await;
        assert_eq!(repeated.items, ["a", "b"]);
        assert!(!repeated.coverage.complete && repeated.cursor.is_none());

        let nothing = |_| {
            ready(Ok(Fetched {
                items: vec![],
                has_more: true,
            }))
        };
        let empty = page(nothing, 5, None, &all).await;
        assert!(empty.items.is_empty() && !empty.coverage.complete && empty.cursor.is_none());
    }

    #[tokio::test]
    async fn v20_a_search_goes_on_where_the_item_it_stopped_at_was_deleted() {
        for unknown in [refused, seems_to_end] {
            let pages = RefCell::new(vec![["a", "b", "c", "d"].as_slice(), &["a", "c", "d"]]);
            let fetch = |after: Option<String>| {
                let mut pages = pages.borrow_mut();
                // "b" is deleted once it was sent.
                let items = if after.is_some() && pages.len() > 1 {
                    pages.remove(0);
                    pages[0]
                } else {
                    pages[0]
                };
                serve(items, unknown)(after)
            };
            let listing: Listing<'_, &'static str, _> = Listing {
                fetch,
                id: |item| item,
                keep: &|item| *item != "a",
            };
            let (found, searched) = listing.search().await.unwrap();
            assert_eq!(found, ["b", "c", "d"]);
            assert!(searched.complete);
        }
    }

    #[tokio::test]
    async fn a_filter_that_leaves_nothing_costs_a_bounded_number_of_requests() {
        let items: Vec<&'static str> = (0..30)
            .map(|n| &*Box::leak(format!("i{n}").into_boxed_str()))
            .collect();
        let asked = Asked::default();
        let answer = serve(&items, refused);
        let fetch = |after: Option<String>| {
            asked.borrow_mut().push(after.clone());
            answer(after)
        };
        let page = page(fetch, 5, None, &|_| false).await;
        assert_eq!(asked.borrow().len(), 5);
        assert!(page.items.is_empty() && page.cursor.is_some() && page.coverage.complete);
    }
}
