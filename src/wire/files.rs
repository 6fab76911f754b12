//! `/v1/devboxes/{id}/download_file`. An upload is a form and has no JSON body.

use serde::Serialize;

/// Body of `POST …/download_file`.
#[derive(Debug, Clone, Serialize)]
pub struct Download<'a> {
    /// Absolute; a relative one would be taken from the home directory.
    pub path: &'a str,
}
