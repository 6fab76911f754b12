//! The requests that files take, on a scripted transport.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::json;

use super::{ReadFileRequest, WriteFileRequest};
use crate::adapter::Call;
use crate::adapter::testing::{connect, devbox};
use crate::error::{Code, Error, Result};
use crate::message::{Body, Head, Request, Response};
use crate::transport::scripted::{Scripted, Step};

const EXECUTE: &str = "Post /v1/devboxes/dbx_1/execute";
const UPLOAD: &str = "Post /v1/devboxes/dbx_1/upload_file";
const DOWNLOAD: &str = "Post /v1/devboxes/dbx_1/download_file";

/// An answer to a start whose script printed these fields.
fn record(fields: &str) -> Step {
    let fields = fields.to_owned();
    Step::asked(move |request: &Request| {
        let Body::Json(text) = &request.body else {
            panic!("a start is JSON");
        };
        let text = String::from_utf8_lossy(text);
        let at = text.find("_bs_n=").unwrap() + "_bs_n=".len();
        let nonce = &text[at..at + 32];
        let stdout = format!("\nbeachside:{nonce}:{fields}:end:{nonce}\n");
        let view = json!({ "status": "completed", "exit_status": 0, "stdout": stdout });
        Step::json(200, &view.to_string())
    })
}

fn bytes(content: Vec<u8>) -> Step {
    Step::Answer(Response {
        head: Head {
            status: 200,
            attempts: 1,
            ..Head::default()
        },
        body: content.into(),
    })
}

async fn read(path: &str, steps: Vec<Step>) -> (Result<Bytes>, Arc<Scripted>) {
    let (connection, script) = connect(steps).await;
    let request = ReadFileRequest {
        sandbox_id: "dbx_1".into(),
        path: path.into(),
    };
    (
        connection.read_file(&request, &Call::default()).await,
        script,
    )
}

async fn write(path: &str, size: usize, steps: Vec<Step>) -> (Result<()>, Arc<Scripted>) {
    let (connection, script) = connect(steps).await;
    let request = WriteFileRequest {
        sandbox_id: "dbx_1".into(),
        path: path.into(),
        content: vec![b'x'; size].into(),
        mode: None,
    };
    (
        connection.write_file(&request, &Call::default()).await,
        script,
    )
}

fn reason(error: &Error) -> (Code, Option<&'static str>) {
    (error.code(), error.reason())
}

#[tokio::test(start_paused = true)]
async fn r24_a_small_file_is_one_request_each_way() {
    let content = STANDARD.encode([0, 255, 10]);
    let steps = vec![record(&format!("file:3:inline:{content}"))];
    let (result, script) = read("/x", steps).await;
    assert_eq!(result.unwrap(), Bytes::from_static(&[0, 255, 10]));
    assert_eq!(script.lines(), [EXECUTE]);

    for size in [0, 65_536] {
        let (result, script) = write("/x", size, vec![record("wrote:")]).await;
        result.unwrap();
        assert_eq!(script.lines(), [EXECUTE]);
    }
}

#[tokio::test(start_paused = true)]
async fn r24_a_large_file_is_a_transfer_and_one_script() {
    let steps = vec![record("file:70000:large:Lwo="), bytes(vec![7; 70_000])];
    let (result, script) = read("~/x", steps).await;
    assert_eq!(result.unwrap().len(), 70_000);
    assert_eq!(script.lines(), [EXECUTE, DOWNLOAD]);
    assert_eq!(
        script.json(1),
        json!({ "path": "/~/x" }),
        "absolute, so that ~ is a name"
    );

    let steps = vec![Step::json(200, "{}"), record("wrote:")];
    let (result, script) = write("/x", 65_537, steps).await;
    result.unwrap();
    assert_eq!(script.lines(), [UPLOAD, EXECUTE]);
}

#[tokio::test(start_paused = true)]
async fn r24_a_download_that_lost_its_end_is_asked_for_again() {
    let probe = |bytes: usize| record(&format!("file:{bytes}:large:Lwo="));
    let sent = |bytes: usize| self::bytes(vec![7; bytes]);
    let short = || [sent(35_000), probe(70_000)];

    let steps = [probe(70_000)].into_iter().chain(short());
    let (result, script) = read("/x", steps.chain([sent(70_000)]).collect()).await;
    assert_eq!(result.unwrap().len(), 70_000);
    assert_eq!(
        script.lines(),
        [EXECUTE, DOWNLOAD, EXECUTE, DOWNLOAD],
        "the file is looked at again between"
    );

    let steps = [probe(70_000)].into_iter();
    let steps = steps.chain(short()).chain(short()).chain(short()).collect();
    let (result, script) = read("/x", steps).await;
    let error = result.unwrap_err();
    assert_eq!(
        (error.code(), error.operation()),
        (Code::Protocol, "file_read")
    );
    assert_eq!(error.resource().unwrap().id, "/x");
    assert_eq!(script.lines().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn r24_a_file_that_changes_while_it_is_read_is_what_it_was_at_some_moment() {
    let probe = |bytes: usize| record(&format!("file:{bytes}:large:Lwo="));
    for (before, sent, after) in [
        (70_000, 80_000, 90_000),
        (70_000, 90_000, 90_000),
        (90_000, 70_000, 70_000),
    ] {
        let steps = vec![probe(before), bytes(vec![7; sent]), probe(after)];
        let (result, _) = read("/x", steps).await;
        assert_eq!(result.unwrap().len(), sent);
    }
    let small = record(&format!("file:3:inline:{}", STANDARD.encode("abc")));
    let (result, _) = read("/x", vec![probe(70_000), bytes(vec![7; 3]), small]).await;
    assert_eq!(result.unwrap(), Bytes::from_static(b"abc"));
}

#[tokio::test(start_paused = true)]
async fn r24_more_than_64_mib_sends_nothing_that_changes_anything() {
    let (result, script) = write("/x", 64 * 1024 * 1024 + 1, Vec::new()).await;
    assert_eq!(result.unwrap_err().code(), Code::InvalidArgument);
    assert!(script.seen().is_empty());
    let (result, script) = read("/x", vec![record("file:67108865:large:Lwo=")]).await;
    assert_eq!(
        reason(&result.unwrap_err()),
        (Code::FileError, Some("too_large"))
    );
    assert_eq!(script.lines(), [EXECUTE], "it is not downloaded");
}

#[tokio::test(start_paused = true)]
async fn h7_e8_a_path_that_no_guest_has_sends_nothing() {
    let name = "x".repeat(256);
    for (path, expected) in [
        (name.as_str(), (Code::FileError, Some("name_too_long"))),
        ("a\0b", (Code::InvalidArgument, None)),
        ("", (Code::InvalidArgument, None)),
    ] {
        let (result, script) = read(path, Vec::new()).await;
        assert_eq!(reason(&result.unwrap_err()), expected);
        let (result, other) = write(path, 100_000, Vec::new()).await;
        assert_eq!(reason(&result.unwrap_err()), expected);
        assert!(script.seen().is_empty() && other.seen().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn h8_every_fault_of_a_file_is_typed_and_names_it() {
    for (fields, expected) in [
        ("refused:file:missing", (Code::NotFound, None)),
        (
            "refused:file:directory",
            (Code::FileError, Some("is_directory")),
        ),
        (
            "refused:file:not-regular",
            (Code::FileError, Some("not_regular")),
        ),
        (
            "refused:file:parent",
            (Code::FileError, Some("not_directory")),
        ),
        (
            "refused:file:permission",
            (Code::FileError, Some("permission")),
        ),
        ("refused:file:owner", (Code::FileError, Some("permission"))),
        ("refused:file:space", (Code::FileError, Some("no_space"))),
        (
            "refused:file:name",
            (Code::FileError, Some("name_too_long")),
        ),
    ] {
        let (result, _) = write("/some/file", 1, vec![record(fields)]).await;
        let error = result.unwrap_err();
        assert_eq!(reason(&error), expected, "{fields}");
        let resource = error.resource().unwrap();
        assert_eq!(
            (resource.kind, resource.id.as_str()),
            ("file", "/some/file")
        );
        assert_eq!(error.operation(), "file_write");
    }
    let (result, _) = read("/x", vec![record("refused:tool:base64")]).await;
    assert_eq!(result.unwrap_err().code(), Code::Unsupported);
}

#[tokio::test(start_paused = true)]
async fn h8_a_missing_file_and_a_missing_sandbox_are_told_apart() {
    let gone = || Step::json(404, r#"{"message":"no such devbox"}"#);
    let (result, _) = read("/x", vec![gone(), gone()]).await;
    let error = result.unwrap_err();
    assert_eq!(error.resource().unwrap().kind, "sandbox");

    let large = || record("file:70000:large:Lwo=");
    let (result, _) = read("/x", vec![large(), gone(), devbox("running")]).await;
    let error = result.unwrap_err();
    assert_eq!(
        (error.code(), error.resource().unwrap().kind),
        (Code::NotFound, "file")
    );

    let (result, _) = read("/x", vec![large(), gone(), devbox("suspended")]).await;
    assert_eq!(result.unwrap_err().code(), Code::NotRunning);
}

#[tokio::test(start_paused = true)]
async fn r31_a_lost_read_is_unavailable_and_a_lost_write_unknown() {
    let (result, script) = read("/x", vec![Step::reset()]).await;
    assert_eq!(result.unwrap_err().code(), Code::Unavailable);
    assert_eq!(script.lines(), [EXECUTE]);
    let (result, script) = write("/x", 1, vec![Step::json(502, "")]).await;
    let error = result.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome().submitted),
        (Code::OutcomeUnknown, Some(true))
    );
    assert_eq!(script.lines(), [EXECUTE], "it is not sent again");
}

#[tokio::test(start_paused = true)]
async fn r24_a_failed_upload_is_taken_back() {
    let steps = vec![Step::json(500, ""), record("cleaned")];
    let (result, script) = write("/x", 70_000, steps).await;
    let error = result.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome().submitted),
        (Code::Unavailable, Some(false))
    );
    assert_eq!(script.lines(), [UPLOAD, EXECUTE]);
    assert_eq!(error.outcome().leftovers, [""; 0]);
}
