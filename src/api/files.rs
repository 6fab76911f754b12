//! Files: upload and download, as bytes.
//!
//! The routes that carry text lose bytes and are not used.

use bytes::Bytes;

use super::json;
use super::path::path;
use crate::error::Result;
use crate::message::{Body, Request};
use crate::wire::files::Download;

/// `POST /v1/devboxes/{id}/upload_file` to an absolute guest path. Parents are
/// not made, and whether the file appears in one step is unknown.
#[must_use]
pub fn upload(devbox_id: &str, guest_path: &str, content: Bytes) -> Request {
    let body = Body::Multipart {
        path: guest_path.to_owned(),
        file: content,
    };
    Request::mutation(path(["devboxes", devbox_id, "upload_file"]), body)
}

/// `POST /v1/devboxes/{id}/download_file` of an absolute guest path, at most
/// `max_bytes`. What a missing file answers is inferred (404), and so it is
/// not relied on.
///
/// # Errors
/// `INTERNAL` when the body cannot be written.
pub fn download(devbox_id: &str, guest_path: &str, max_bytes: usize) -> Result<Request> {
    let body = json(&Download { path: guest_path })?;
    let path = path(["devboxes", devbox_id, "download_file"]);
    Ok(Request::download(path, body, max_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Kind;

    #[test]
    fn r29_an_upload_is_a_mutation_and_a_download_is_not() {
        let upload = upload("dbx_1", "/tmp/x", Bytes::from_static(b"abc"));
        assert_eq!(upload.kind, Kind::Mutation);
        assert_eq!(upload.path, "/v1/devboxes/dbx_1/upload_file");
        let download = download("dbx_1", "/tmp/x", 3).unwrap();
        assert_eq!(
            (download.kind, download.max_body_bytes),
            (Kind::Download, 3)
        );
        assert!(matches!(download.body, Body::Json(text) if &text[..] == br#"{"path":"/tmp/x"}"#));
    }
}
