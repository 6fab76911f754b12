//! The simulator over TLS with HTTP/2, and everything that HTTP/2 does to a request.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt as _;
use runloop_simulator::{Options, Simulator, TlsOptions};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::{http, settings};
use crate::message::{Body, Request, Sent, What};
use crate::transport::{Http, Retrying, Settings, Transport, tls};

const POLICIES: &str = "/v1/network-policies";

struct Service {
    simulator: Simulator,
    control: Http,
}

impl Service {
    fn start(switches: Value) -> Self {
        let switches = runloop_simulator::Settings::default().patched(&switches);
        let simulator = Simulator::start(Options {
            settings: switches.unwrap(),
            tls: Some(TlsOptions::default()),
            panic_on_unexpected: true,
            ..Options::default()
        });
        let simulator = simulator.unwrap();
        let control = http(simulator.plain_url());
        Self { simulator, control }
    }

    fn client(&self, silence: Duration) -> Retrying<Http> {
        let mut roots = RootCertStore::empty();
        let pem = self.simulator.ca_pem().unwrap().as_bytes();
        roots
            .add(CertificateDer::from_pem_slice(pem).unwrap())
            .unwrap();
        let settings = Settings {
            silence_timeout: silence,
            ..settings(self.simulator.url().to_owned())
        };
        Retrying(Http::over(settings, tls::trusting(roots).unwrap()).unwrap())
    }

    async fn tell(&self, path: &str, body: Value) -> Value {
        let body = Body::Json(body.to_string().into());
        let answer = self
            .control
            .send(&Request::mutation(path.to_owned(), body))
            .await;
        serde_json::from_slice(&answer.unwrap().body).unwrap()
    }

    async fn fault(&self, path: &str, action: Value) {
        let rule = json!({ "match": { "path": path, "count": 1 }, "action": action });
        self.tell("/_simulator/faults", rule).await;
    }

    async fn journal(&self) -> Vec<Value> {
        let answer = self
            .control
            .send(&Request::get("/_simulator/journal".into()))
            .await;
        let mut journal: Value = serde_json::from_slice(&answer.unwrap().body).unwrap();
        serde_json::from_value(journal["entries"].take()).unwrap()
    }

    /// The connections that the requests so far came on.
    async fn connections(&self) -> Vec<u64> {
        let entries = self.journal().await;
        entries
            .iter()
            .map(|entry| entry["connection"].as_u64().unwrap())
            .collect()
    }
}

fn create(name: &str) -> Request {
    let body = json!({ "name": name }).to_string();
    Request::mutation(POLICIES.into(), Body::Json(Bytes::from(body)))
}

fn list() -> Request {
    Request::get(POLICIES.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn r29_whatever_http_2_does_a_mutation_is_sent_once_and_a_read_is_asked_again() {
    let service = Service::start(json!({}));
    let client = service.client(Duration::from_secs(1));
    client.send(&list()).await.unwrap();
    for (number, (action, failed)) in [
        (json!({ "type": "goaway" }), None),
        (json!({ "type": "goaway_reply" }), Some(What::Reset)),
        (json!({ "type": "goaway_request" }), Some(What::Reset)),
        (
            json!({ "type": "reset_request", "code": "refused_stream" }),
            Some(What::Reset),
        ),
        (
            json!({ "type": "reset_reply", "code": "refused_stream" }),
            Some(What::Reset),
        ),
        (
            json!({ "type": "reset_reply", "code": "internal_error" }),
            Some(What::Reset),
        ),
        (
            json!({ "type": "truncate_reply", "bytes": 9 }),
            Some(What::Reset),
        ),
        (
            json!({ "type": "stall_reply", "bytes": 9 }),
            Some(What::Timeout),
        ),
        (json!({ "type": "hold_reply" }), Some(What::Timeout)),
        (
            json!({ "type": "drop_reply", "reset": true }),
            Some(What::Reset),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let shown = action.to_string();
        let before = service.journal().await.len();
        service.fault(POLICIES, action.clone()).await;
        match (client.send(&create(&format!("p{number}"))).await, failed) {
            (Ok(answer), None) => assert_eq!(answer.head.status, 200, "{shown}"),
            (Err(failure), Some(what)) => {
                assert_eq!((failure.sent, failure.what), (Sent::Maybe, what), "{shown}");
            }
            (other, _) => panic!("{shown}: {other:?}"),
        }
        let sent = service.journal().await.split_off(before);
        assert_eq!(sent.len(), 1, "{shown}: {sent:?}");
        assert_eq!(
            (&sent[0]["http_version"], &sent[0]["tls"]),
            (&json!("2"), &json!(true))
        );

        service.fault(POLICIES, action).await;
        let answer = client.send(&list()).await.unwrap();
        let attempts = if failed.is_some() { 2 } else { 1 };
        assert_eq!(
            (answer.head.status, answer.head.attempts),
            (200, attempts),
            "{shown}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_goaway_and_after_an_idle_close_the_next_mutation_goes_out_once_on_another_connection()
 {
    let service = Service::start(json!({ "keep_alive_seconds": 0.2 }));
    let client = service.client(Duration::from_secs(5));
    client.send(&create("a")).await.unwrap();
    service.fault(POLICIES, json!({ "type": "goaway" })).await;
    client.send(&create("b")).await.unwrap();
    // GOAWAY comes after the answer, and nothing else tells of it.
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.send(&create("c")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    client.send(&create("d")).await.unwrap();
    let [a, b, c, d] = service.connections().await.try_into().unwrap();
    assert_eq!(a, b);
    assert_ne!(b, c);
    assert_ne!(c, d);
}

#[tokio::test(flavor = "multi_thread")]
async fn goaway_lets_what_is_in_flight_be_answered() {
    let service = Service::start(json!({}));
    let client = service.client(Duration::from_secs(5));
    client.send(&list()).await.unwrap();
    let late = json!({ "type": "delay_reply", "milliseconds": 500 });
    service.fault("/v1/accounts/me", late).await;
    let me = Request::get("/v1/accounts/me".into());
    let slow = client.send(&me);
    let quick = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        service
            .fault(POLICIES, json!({ "type": "goaway_request" }))
            .await;
        client.send(&list()).await
    };
    let (slow, quick) = tokio::join!(slow, quick);
    assert_eq!(
        (slow.unwrap().head.attempts, quick.unwrap().head.attempts),
        (1, 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_stream_of_events_ends_with_the_silence_limit() {
    let service = Service::start(json!({}));
    let client = service.client(Duration::from_millis(500));
    service
        .fault(
            "/v1/accounts/me",
            json!({ "type": "stall_reply", "bytes": 9 }),
        )
        .await;
    let request = Request::stream("/v1/accounts/me".into(), Duration::ZERO);
    let mut body = client.stream(&request).await.unwrap().body;
    assert_eq!(body.next().await.unwrap().unwrap().len(), 9);
    let began = Instant::now();
    let failure = body.next().await.unwrap().unwrap_err();
    assert_eq!(failure.what, What::Timeout);
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_odd_retry_after_is_survived_and_an_absurd_one_is_the_callers() {
    let service = Service::start(json!({}));
    let client = service.client(Duration::from_secs(5));
    for (value, attempts) in [
        (json!(null), 2),
        (json!(""), 2),
        (json!("0"), 2),
        (json!("0.01"), 2),
        (json!("-1"), 2),
        (json!("-1e9"), 2),
        (json!("NaN"), 2),
        (json!("soon"), 2),
        (json!("0, 0"), 2),
        (json!("Thu, 01 Jan 1970 00:00:00 GMT"), 2),
        (json!("Wed, 99 Foo 2026 99:99:99 GMT"), 2),
        (json!("1e999"), 2),
        (json!("99999999999999999999"), 1),
        (json!("1e300"), 1),
        (json!("Fri, 31 Dec 9999 23:59:59 GMT"), 1),
    ] {
        let limit = json!({ "type": "rate_limit", "retry_after": value });
        service.fault(POLICIES, limit.clone()).await;
        let began = Instant::now();
        let answer = client.send(&list()).await.unwrap();
        let expected = if attempts == 2 { 200 } else { 429 };
        assert_eq!(
            (answer.head.status, answer.head.attempts),
            (expected, attempts),
            "{limit}"
        );
        assert!(began.elapsed() < Duration::from_secs(5), "{limit}");
        // A mutation is never tried again, whatever is asked.
        service.fault(POLICIES, limit.clone()).await;
        let before = service.journal().await.len();
        assert_eq!(
            client.send(&create("limited")).await.unwrap().head.status,
            429,
            "{limit}"
        );
        assert_eq!(service.journal().await.len() - before, 1, "{limit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k6_over_tls_too_no_redirect_is_followed_by_a_read_or_a_mutation() {
    let service = Service::start(json!({}));
    let elsewhere = Service::start(json!({}));
    let client = service.client(Duration::from_secs(5));
    for status in [301, 302, 303, 307, 308] {
        let to = elsewhere.simulator.url();
        let redirect = json!({ "type": "redirect", "status": status, "origin": to });
        for request in [list(), create("redirected")] {
            service.fault(POLICIES, redirect.clone()).await;
            assert_eq!(client.send(&request).await.unwrap().head.status, status);
        }
    }
    assert!(elsewhere.journal().await.is_empty());
}
