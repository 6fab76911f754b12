//! Opaque cursors: where a list goes on.
//!
//! The service goes on after an item's id and is not known to say when that
//! item is gone. A cursor therefore holds the ids of the last few items, so
//! that a list survives the deletion of the one it stopped at.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::records::SandboxState;
use crate::error::{Error, Result};

/// Ids that are kept.
const KEPT: usize = 3;

/// Longest cursor that is read, in bytes.
const MAX_BYTES: usize = 4096;

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cursor {
    /// The list: `sandboxes` or `snapshots`.
    list: String,
    /// The filter, which the rest of the list must share.
    state: Option<SandboxState>,
    /// The last items that were looked at, the latest first; never empty.
    after: Vec<String>,
}

impl Cursor {
    pub(super) fn new(list: &str, state: Option<SandboxState>, after: Vec<String>) -> Self {
        Self {
            list: list.to_owned(),
            state,
            after,
        }
    }

    pub(super) fn encode(&self) -> Result<String> {
        serde_json::to_vec(self)
            .map(|text| URL_SAFE_NO_PAD.encode(text))
            .map_err(|_| Error::internal("a cursor could not be written"))
    }

    /// The place that a call was given, if it was given one.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list or filter.
    pub(super) fn given(
        text: Option<&str>,
        list: &str,
        state: Option<SandboxState>,
        operation: &'static str,
    ) -> Result<Option<Self>> {
        text.map(|text| Self::decode(text, list, state))
            .transpose()
            .map_err(|error| error.during(operation))
    }

    /// Reads a cursor of this list and this filter.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for anything else.
    pub(super) fn decode(text: &str, list: &str, state: Option<SandboxState>) -> Result<Self> {
        let wrong = |why| Error::invalid_argument(format!("cursor {why}"));
        let parsed = (text.len() <= MAX_BYTES)
            .then(|| URL_SAFE_NO_PAD.decode(text).ok())
            .flatten()
            .and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok())
            .filter(|cursor| !cursor.after.is_empty() && cursor.after.len() <= KEPT);
        let cursor = parsed.ok_or_else(|| wrong("is not one that this list gave"))?;
        if cursor.list != list {
            return Err(wrong("is of another list"));
        }
        if cursor.state != state {
            return Err(wrong("is of a list with another state"));
        }
        Ok(cursor)
    }
}

/// The last few ids that a list passed, the latest first.
#[derive(Debug, Default)]
pub(super) struct Trail(Vec<String>);

impl Trail {
    pub(super) fn from(cursor: Option<&Cursor>) -> Self {
        Self(
            cursor
                .map(|cursor| cursor.after.clone())
                .unwrap_or_default(),
        )
    }

    pub(super) fn pass(&mut self, id: &str) {
        self.0.insert(0, id.to_owned());
        self.0.truncate(KEPT);
    }

    pub(super) fn ids(&self) -> &[String] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;
    use crate::cases::cases;

    proptest! {
        #![proptest_config(cases(1000))]

        #[test]
        fn any_ids_come_back_and_any_change_is_refused_or_another_place_of_the_list(
            ids in prop::collection::vec(any::<String>(), 1..=KEPT),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let given = Cursor::new("sandboxes", None, ids);
            let text = given.encode().unwrap();
            prop_assume!(text.len() <= MAX_BYTES);
            prop_assert_eq!(&Cursor::decode(&text, "sandboxes", None).unwrap(), &given);
            let mut changed = text.clone().into_bytes();
            let at = at.index(changed.len());
            changed[at] = byte;
            for other in [&text.as_bytes()[..at], &changed] {
                let other = String::from_utf8_lossy(other);
                if let Ok(place) = Cursor::decode(&other, "sandboxes", None) {
                    prop_assert!((1..=KEPT).contains(&place.after.len()));
                }
            }
        }

        #[test]
        fn any_text_is_a_cursor_or_refused(
            text in prop_oneof![any::<String>(), "[A-Za-z0-9_-]{0,80}"],
            json in "[\\[\\]{}\":,a-z0-9 ]{0,80}",
        ) {
            let encoded = URL_SAFE_NO_PAD.encode(json);
            for text in [text, encoded] {
                if let Err(error) = Cursor::decode(&text, "sandboxes", None) {
                    prop_assert!(error.message().starts_with("cursor is"));
                }
            }
        }
    }

    #[test]
    fn a_cursor_that_is_too_long_is_refused_without_being_read() {
        let long = "A".repeat(16 << 20);
        let started = Instant::now();
        for _ in 0..1000 {
            assert!(Cursor::decode(&long, "sandboxes", None).is_err());
        }
        // Looking at each byte would take 16 GB of reading.
        assert!(started.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn a_cursor_may_be_as_long_as_the_bound_and_no_longer() {
        // Three bytes become four characters.
        let around = Cursor::new("sandboxes", None, vec![String::new()]);
        let rest = MAX_BYTES / 4 * 3 - serde_json::to_vec(&around).unwrap().len();
        let of = |length| Cursor::new("sandboxes", None, vec!["i".repeat(length)]);
        let longest = of(rest).encode().unwrap();
        assert_eq!(longest.len(), MAX_BYTES);
        assert!(Cursor::decode(&longest, "sandboxes", None).is_ok());
        let longer = of(rest + 1).encode().unwrap();
        assert!(Cursor::decode(&longer, "sandboxes", None).is_err());
    }

    #[test]
    fn a_cursor_with_more_ids_than_a_list_gives_is_refused() {
        let ids = |count| Cursor::new("sandboxes", None, vec!["a".into(); count]).encode();
        assert!(Cursor::decode(&ids(KEPT).unwrap(), "sandboxes", None).is_ok());
        assert!(Cursor::decode(&ids(KEPT + 1).unwrap(), "sandboxes", None).is_err());
    }

    fn cursor() -> Cursor {
        Cursor::new(
            "sandboxes",
            Some(SandboxState::Running),
            vec!["b".into(), "a".into()],
        )
    }

    #[test]
    fn a_cursor_is_read_back_by_the_list_that_gave_it() {
        let text = cursor().encode().unwrap();
        let read = Cursor::decode(&text, "sandboxes", Some(SandboxState::Running)).unwrap();
        assert_eq!(read, cursor());
    }

    #[test]
    fn a_cursor_of_another_list_filter_or_origin_is_refused() {
        let text = cursor().encode().unwrap();
        let running = Some(SandboxState::Running);
        assert!(Cursor::decode(&text, "snapshots", running).is_err());
        assert!(Cursor::decode(&text, "sandboxes", None).is_err());
        let empty = Cursor::new("sandboxes", None, Vec::new()).encode().unwrap();
        let long = "A".repeat(MAX_BYTES + 1);
        for wrong in ["", "dbx_1", "e30", "%%%", &text[1..], &empty, &long] {
            let error = Cursor::decode(wrong, "sandboxes", None).unwrap_err();
            assert!(error.message().starts_with("cursor is"), "{wrong}");
        }
    }

    #[test]
    fn a_trail_keeps_the_last_few() {
        let mut trail = Trail::default();
        for id in ["a", "b", "c", "d"] {
            trail.pass(id);
        }
        assert_eq!(trail.ids(), ["d", "c", "b"]);
    }
}
