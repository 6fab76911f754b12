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
    use super::*;

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
