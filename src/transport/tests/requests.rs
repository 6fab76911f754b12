//! What is sent, and what is read of an answer.

use bytes::Bytes;

use super::raw::Raw;
use super::{KEY, http};
use crate::message::{Body, Request, Sent, What};
use crate::transport::Transport;

fn ok() -> Raw {
    Raw::start(|connection| {
        while connection.request().is_some() {
            connection.answer(
                "200 OK",
                "content-type: application/json; charset=utf-8\r\n",
                "{}",
            );
        }
    })
}

#[tokio::test]
async fn a_request_carries_key_user_agent_and_an_id_of_its_own() {
    let server = ok();
    let http = http(server.url());
    for _ in 0..2 {
        let response = http
            .send(&Request::get("/v1/x?a=b%20c".into()))
            .await
            .unwrap();
        assert_eq!(response.head.status, 200);
        assert_eq!(response.head.content_type, "application/json");
        assert_eq!(response.body, "{}");
    }
    let [first, second] = server.arrived().try_into().unwrap();
    assert_eq!(first.line, "GET /v1/x?a=b%20c HTTP/1.1");
    assert_eq!(
        first.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert!(
        first
            .header("user-agent")
            .unwrap()
            .starts_with("beachside-runloop/")
    );
    assert_eq!(first.header("accept"), Some("application/json"));
    assert!(first.header("x-request-id").unwrap().len() > 30);
    assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn bodies_are_sent_with_their_length_and_type() {
    let server = ok();
    let http = http(server.url());
    let json = Body::Json(Bytes::from_static(br#"{"a":1}"#));
    http.send(&Request::mutation("/v1/x".into(), Body::Empty))
        .await
        .unwrap();
    http.send(&Request::mutation("/v1/x".into(), json))
        .await
        .unwrap();
    let [empty, json] = server.arrived().try_into().unwrap();
    assert_eq!(
        (empty.header("content-length"), empty.body.len()),
        (Some("0"), 0)
    );
    assert_eq!(json.header("content-type"), Some("application/json"));
    assert_eq!(json.body, br#"{"a":1}"#);
}

#[tokio::test]
async fn an_upload_sends_the_path_before_the_file_and_every_byte_of_both() {
    let server = ok();
    let file: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let path = "/tmp/it's a \"name\"\n.bin".to_owned();
    let body = Body::Multipart {
        path: path.clone(),
        file: file.clone().into(),
    };
    http(server.url())
        .send(&Request::mutation("/v1/x".into(), body))
        .await
        .unwrap();
    let [upload] = server.arrived().try_into().unwrap();
    assert!(
        upload
            .header("content-type")
            .unwrap()
            .starts_with("multipart/form-data; boundary=")
    );
    let find = |needle: &[u8]| {
        upload
            .body
            .windows(needle.len())
            .position(|window| window == needle)
            .unwrap()
    };
    let path_at = find(b"name=\"path\"");
    let value_at = find(format!("\r\n\r\n{path}\r\n").as_bytes());
    let file_at = find(b"name=\"file\"; filename=\"file\"");
    let type_at = find(b"application/octet-stream");
    let content_at = find(&file);
    assert!(path_at < value_at && value_at < file_at);
    assert!(file_at < type_at && type_at < content_at);
}

#[tokio::test]
async fn events_are_asked_for_uncompressed_and_arrive_piece_by_piece() {
    use futures::StreamExt as _;
    let (more, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let server = Raw::start(move |connection| {
        connection.request();
        connection.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n");
        let _ = wait.lock().unwrap().recv();
        connection.write("data: 2\n\n");
    });
    let request = Request::stream("/v1/x".into(), std::time::Duration::ZERO);
    let mut answer = http(server.url()).stream(&request).await.unwrap();
    assert_eq!(answer.head.content_type, "text/event-stream");
    assert_eq!(answer.body.next().await.unwrap().unwrap(), "data: 1\n\n");
    more.send(()).unwrap();
    assert_eq!(answer.body.next().await.unwrap().unwrap(), "data: 2\n\n");
    assert!(answer.body.next().await.is_none());
    let [request] = server.arrived().try_into().unwrap();
    assert_eq!(request.header("accept"), Some("text/event-stream"));
    assert_eq!(request.header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn k2_a_compressed_answer_is_read_and_its_size_is_bounded_when_it_is_unpacked() {
    // 4 KiB of "x", packed by gzip.
    const PACKED: [u8; 38] = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xed, 0xc1, 0x01, 0x0d, 0x00,
        0x00, 0x00, 0xc2, 0xa0, 0xda, 0x8f, 0x6f, 0x0f, 0x07, 0x14, 0x00, 0x00, 0x00, 0xf0, 0x6e,
        0xc1, 0x77, 0x10, 0x3e, 0x00, 0x10, 0x00, 0x00,
    ];
    let server = Raw::start(|connection| {
        while connection.request().is_some() {
            let length = PACKED.len();
            let head = format!(
                "HTTP/1.1 500 Oops\r\ncontent-encoding: gzip\r\ncontent-length: {length}\r\n\r\n"
            );
            connection.write([head.as_bytes(), &PACKED].concat());
        }
    });
    let http = http(server.url());
    let request = Request::get("/v1/x".into());
    let whole = http.send(&request.clone().at_most(4096)).await.unwrap();
    assert_eq!((whole.head.status, whole.body.len()), (500, 4096));
    let failure = http.send(&request.at_most(4095)).await.unwrap_err();
    assert_eq!(failure.what, What::TooLarge);
}

#[tokio::test]
async fn an_answer_larger_than_allowed_is_refused_with_and_without_a_length() {
    let server = Raw::start(|connection| {
        while let Some(request) = connection.request() {
            if request.line.contains("chunked") {
                connection.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
                connection.write("a\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n");
            } else {
                connection.answer("200 OK", "", "01234567890123456789");
            }
        }
    });
    let http = http(server.url());
    for path in ["/v1/chunked", "/v1/plain"] {
        let request = Request::get(path.into());
        assert_eq!(
            http.send(&request.clone().at_most(20))
                .await
                .unwrap()
                .body
                .len(),
            20
        );
        let failure = http.send(&request.at_most(19)).await.unwrap_err();
        assert_eq!(failure.what, What::TooLarge);
    }
}

#[tokio::test]
async fn a_path_that_a_url_would_lead_elsewhere_is_not_sent() {
    let server = ok();
    let http = http(server.url());
    for path in [
        "/v1/devboxes/%2E%2E",
        "/v1/devboxes/..",
        "/v1/devboxes/",
        "/v1//x",
        "/v1/a b",
    ] {
        let failure = http.send(&Request::get(path.into())).await.unwrap_err();
        assert_eq!(
            (failure.sent, failure.what),
            (Sent::No, What::Unaddressable),
            "{path}"
        );
    }
    assert!(server.arrived().is_empty());
}
