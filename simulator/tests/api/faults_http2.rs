//! Faults that HTTP/2 has of its own, and the others as HTTP/2 shows them.

use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use http::Request;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::support::{Client, KEY};

const ME: &str = "/v1/accounts/me";
const POLICIES: &str = "/v1/network-policies";

/// One connection that shows what a frame says.
struct Wire {
    sender: SendRequest<Bytes>,
    origin: String,
    /// Ends with the connection.
    driver: JoinHandle<Result<(), h2::Error>>,
}

impl Wire {
    async fn open(client: &Client) -> Self {
        let origin = client.simulator.plain_url();
        let address = origin.trim_start_matches("http://");
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        let driver = tokio::spawn(connection);
        let mut sender = sender.ready().await.unwrap();
        // The server's settings have arrived with the first answer.
        let (answer, _) = sender
            .send_request(request(&origin, ME, "GET"), true)
            .unwrap();
        answer.await.unwrap();
        Self {
            sender,
            origin,
            driver,
        }
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> ResponseFuture {
        let mut sender = self.sender.clone().ready().await.unwrap();
        let request = request(&self.origin, path, method);
        let (answer, mut stream) = sender.send_request(request, body.is_none()).unwrap();
        if let Some(body) = body {
            stream.send_data(body.to_string().into(), true).unwrap();
        }
        answer
    }

    async fn get(&self) -> ResponseFuture {
        self.send("GET", ME, None).await
    }

    async fn create(&self) -> ResponseFuture {
        self.send("POST", POLICIES, Some(json!({ "name": "p" })))
            .await
    }
}

fn request(origin: &str, path: &str, method: &str) -> Request<()> {
    Request::builder()
        .method(method)
        .uri(format!("{origin}{path}"))
        .header("authorization", format!("Bearer {KEY}"))
        .header("content-type", "application/json")
        .body(())
        .unwrap()
}

async fn fault(client: &Client, path: &str, action: Value) {
    client
        .fault(json!({ "match": { "path": path, "count": 1 }, "action": action }))
        .await;
}

async fn policies(client: &Client) -> usize {
    let page = client.get(POLICIES).await.json(200);
    page["network_policies"].as_array().unwrap().len()
}

/// What came of a body, and how it ended.
async fn body(mut body: RecvStream) -> (Vec<u8>, Option<h2::Error>) {
    let mut bytes = Vec::new();
    while let Some(piece) = body.data().await {
        match piece {
            Ok(piece) => {
                body.flow_control().release_capacity(piece.len()).unwrap();
                bytes.extend_from_slice(&piece);
            }
            Err(error) => return (bytes, Some(error)),
        }
    }
    (bytes, None)
}

#[tokio::test]
async fn a_connection_takes_as_many_streams_as_the_switch_says() {
    let client = Client::start_set(json!({ "http2_max_concurrent_streams": 3 }));
    let wire = Wire::open(&client).await;
    assert_eq!(wire.sender.current_max_send_streams(), 3);
    client
        .post(
            "/_simulator/settings",
            json!({ "http2_max_concurrent_streams": 100 }),
        )
        .await
        .json(200);
    assert_eq!(
        Wire::open(&client).await.sender.current_max_send_streams(),
        100
    );
}

#[tokio::test]
async fn a_stream_is_refused_before_acting_and_the_connection_goes_on() {
    let client = Client::start();
    let wire = Wire::open(&client).await;
    let action = json!({ "type": "reset_request", "code": "refused_stream" });
    fault(&client, POLICIES, action).await;
    let error = wire.create().await.await.unwrap_err();
    assert!(error.is_reset() && error.is_remote(), "{error:?}");
    assert_eq!(error.reason(), Some(Reason::REFUSED_STREAM));
    assert_eq!(policies(&client).await, 0);
    assert_eq!(wire.get().await.await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_stream_is_reset_after_acting() {
    for (code, reason) in [
        ("internal_error", Reason::INTERNAL_ERROR),
        ("cancel", Reason::CANCEL),
        ("refused_stream", Reason::REFUSED_STREAM),
    ] {
        let client = Client::start();
        let wire = Wire::open(&client).await;
        fault(
            &client,
            POLICIES,
            json!({ "type": "reset_reply", "code": code }),
        )
        .await;
        let error = wire.create().await.await.unwrap_err();
        assert_eq!((error.is_reset(), error.reason()), (true, Some(reason)));
        assert_eq!(policies(&client).await, 1);
        assert_eq!(wire.get().await.await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn goaway_excludes_the_request_that_was_not_acted_on_and_older_ones_are_answered() {
    let client = Client::start();
    let wire = Wire::open(&client).await;
    fault(
        &client,
        ME,
        json!({ "type": "delay_reply", "milliseconds": 400 }),
    )
    .await;
    let older = tokio::spawn(wire.get().await);
    fault(&client, POLICIES, json!({ "type": "goaway_request" })).await;
    let error = wire.create().await.await.unwrap_err();
    assert!(error.is_go_away() && error.is_remote(), "{error:?}");
    assert_eq!(error.reason(), Some(Reason::NO_ERROR));
    assert_eq!(older.await.unwrap().unwrap().status(), 200);
    assert_eq!(policies(&client).await, 0);
    wire.driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn goaway_does_not_exclude_what_was_acted_on() {
    for (action, reason) in [
        (json!({ "type": "goaway_reply" }), None),
        (
            json!({ "type": "goaway_reply", "code": "enhance_your_calm" }),
            Some(Reason::ENHANCE_YOUR_CALM),
        ),
    ] {
        let client = Client::start();
        let wire = Wire::open(&client).await;
        fault(&client, POLICIES, action).await;
        let error = wire.create().await.await.unwrap_err();
        // All that the stream has is the end of the connection.
        assert!(error.is_io(), "{error:?}");
        let ended = wire.driver.await.unwrap();
        assert_eq!(ended.err().and_then(|error| error.reason()), reason);
        assert_eq!(policies(&client).await, 1);
    }
}

#[tokio::test]
async fn goaway_with_an_answer_ends_the_connection_once_all_are_answered() {
    let client = Client::start();
    let wire = Wire::open(&client).await;
    fault(
        &client,
        ME,
        json!({ "type": "delay_reply", "milliseconds": 400 }),
    )
    .await;
    let older = tokio::spawn(wire.get().await);
    fault(&client, POLICIES, json!({ "type": "goaway" })).await;
    assert_eq!(wire.create().await.await.unwrap().status(), 200);
    assert_eq!(older.await.unwrap().unwrap().status(), 200);
    wire.driver.await.unwrap().unwrap();
    assert_eq!(policies(&client).await, 1);
}

#[tokio::test]
async fn over_http_1_the_same_faults_end_the_connection() {
    for (action, acted) in [
        (
            json!({ "type": "reset_request", "code": "refused_stream" }),
            0,
        ),
        (json!({ "type": "goaway_request" }), 0),
        (json!({ "type": "reset_reply", "code": "cancel" }), 1),
        (json!({ "type": "goaway_reply" }), 1),
    ] {
        let client = Client::start();
        fault(&client, POLICIES, action).await;
        let request = client.request(reqwest::Method::POST, POLICIES);
        request
            .json(&json!({ "name": "p" }))
            .send()
            .await
            .unwrap_err();
        assert_eq!(policies(&client).await, acted);
    }
    let client = Client::start();
    fault(&client, ME, json!({ "type": "goaway" })).await;
    let answer = client.get(ME).await;
    assert_eq!(answer.headers["connection"], "close");
    answer.json(200);
}

#[tokio::test]
async fn an_idle_connection_ends_with_goaway_and_a_busy_one_does_not() {
    let client = Client::start_set(json!({ "keep_alive_seconds": 0.2, "latency_ms": 500 }));
    let begin = Instant::now();
    let wire = Wire::open(&client).await;
    wire.driver.await.unwrap().unwrap();
    assert!(
        begin.elapsed() >= Duration::from_millis(700),
        "{:?}",
        begin.elapsed()
    );
}

#[tokio::test]
async fn a_cut_body_is_a_reset_stream_and_a_stalled_one_stays_open() {
    let client = Client::start();
    let wire = Wire::open(&client).await;
    fault(
        &client,
        ME,
        json!({ "type": "truncate_reply", "bytes": 10 }),
    )
    .await;
    let answer = wire.get().await.await.unwrap();
    let (bytes, error) = body(answer.into_body()).await;
    assert_eq!(bytes.len(), 10);
    assert_eq!(error.unwrap().reason(), Some(Reason::INTERNAL_ERROR));

    fault(&client, ME, json!({ "type": "stall_reply", "bytes": 10 })).await;
    let mut answer = wire.get().await.await.unwrap().into_body();
    assert_eq!(answer.data().await.unwrap().unwrap().len(), 10);
    let more = tokio::time::timeout(Duration::from_millis(300), answer.data()).await;
    assert!(more.is_err(), "{more:?}");
    assert_eq!(wire.get().await.await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_dropped_connection_takes_every_stream_with_it() {
    let client = Client::start();
    let wire = Wire::open(&client).await;
    fault(&client, ME, json!({ "type": "hold_reply" })).await;
    let held = tokio::spawn(wire.get().await);
    fault(
        &client,
        POLICIES,
        json!({ "type": "drop_reply", "reset": true }),
    )
    .await;
    let error = wire.create().await.await.unwrap_err();
    assert!(error.is_io(), "{error:?}");
    assert!(held.await.unwrap().is_err());
    assert_eq!(policies(&client).await, 1);
}
