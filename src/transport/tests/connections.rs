//! How connections are shared, kept and replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::raw::Raw;
use super::secure::{Authority, server_config};
use super::{http, settings};
use crate::message::{Body, Request, Sent, What};
use crate::transport::{Http, Settings, Transport};

/// As the real service is understood to allow (a comment in its official Python client).
const STREAMS: u32 = 128;

/// How long the server holds a call that it lets go.
const HELD: Duration = Duration::from_secs(2);

/// A server that speaks HTTP/2 over TLS, holds `/held` and answers the rest at once.
async fn http2(authority: &Authority, streams: u32) -> (Http, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "https://localhost:{}",
        listener.local_addr().unwrap().port()
    );
    let acceptor = TlsAcceptor::from(Arc::new(server_config(authority, &["localhost"])));
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                let service = service_fn(|request: hyper::Request<_>| async move {
                    assert_eq!(request.version(), hyper::Version::HTTP_2);
                    let _: &hyper::body::Incoming = request.body();
                    if request.uri().path() == "/held" {
                        // One that was withdrawn at the last moment has no body.
                        let body = request.into_body().collect().await;
                        if !body.is_ok_and(|body| body.to_bytes() == "let go") {
                            std::future::pending::<()>().await;
                        }
                        tokio::time::sleep(HELD).await;
                        return Ok(hyper::Response::new(BodyExt::boxed(Full::from("held"))));
                    }
                    let body = match request.uri().path() {
                        "/endless" => {
                            let piece = Bytes::from(vec![b'x'; 16 * 1024]);
                            let pieces =
                                futures::stream::repeat(piece).map(|piece| Ok(Frame::data(piece)));
                            BodyExt::boxed(StreamBody::new(pieces))
                        }
                        _ => BodyExt::boxed(Full::from("short")),
                    };
                    Ok::<_, std::convert::Infallible>(hyper::Response::new(body))
                });
                let mut builder = auto::Builder::new(TokioExecutor::new());
                builder.http2().max_concurrent_streams(streams);
                let _ = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    // Long enough for a busy machine: nothing here waits for silence to end.
    let settings = Settings {
        silence_timeout: Duration::from_secs(60),
        ..settings(url)
    };
    let http = Http::over(settings, authority.client_config()).unwrap();
    (http, connections)
}

#[tokio::test(flavor = "multi_thread")]
async fn held_calls_open_further_connections_and_never_starve_a_short_read() {
    let (http, connections) = http2(&Authority::new(), STREAMS).await;
    let http = Arc::new(http);
    let short = Request::get("/short".into());
    http.send(&short).await.unwrap();
    let held: Vec<_> = (0..300)
        .map(|_| {
            let http = http.clone();
            tokio::spawn(async move {
                let hold = Duration::from_secs(60);
                let _ = http
                    .send(&Request::long_poll("/held".into(), Body::Empty, hold))
                    .await;
            })
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(http.send(&short).await.unwrap().head.status, 200);
    }
    // One for the short calls, and four for 300 held ones at 96 each: no call
    // had to find out by a connection of its own that the host speaks HTTP/2.
    while connections.load(Ordering::SeqCst) < 5 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(http.send(&short).await.unwrap().head.status, 200);
    assert_eq!(connections.load(Ordering::SeqCst), 5);
    held.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_few_calls_fit_a_connection_no_held_one_waits_for_another_or_is_refused() {
    let (http, connections) = http2(&Authority::new(), 8).await;
    let short = Request::get("/short".into());
    http.send(&short).await.unwrap();
    let body = Body::Json("let go".into());
    let request = Request::mutation("/held".into(), body).held(HELD);
    let begun = tokio::time::Instant::now();
    let all = futures::future::join_all((0..200).map(|_| http.send(&request)));
    let reads = async {
        for _ in 0..20 {
            assert_eq!(http.send(&short).await.unwrap().head.status, 200);
        }
    };
    let (held, ()) = tokio::join!(all, reads);
    for answer in held {
        assert_eq!(answer.unwrap().body, "held");
    }
    // Behind each other they take 24 s; 8 fit on each of 25 connections.
    assert!(begun.elapsed() < 10 * HELD, "{:?}", begun.elapsed());
    let connections = connections.load(Ordering::SeqCst);
    assert!((26..=100).contains(&connections), "{connections}");
}

#[tokio::test]
async fn r29_a_deadline_that_passes_while_there_is_no_connection_leaves_a_mutation_unsent() {
    // Takes connections, and never speaks TLS.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let settings = settings(format!("https://localhost:{port}"));
    let http = Http::over(settings, Authority::new().client_config()).unwrap();
    let soon = tokio::time::Instant::now() + Duration::from_millis(300);
    let request = Request::mutation("/short".into(), Body::Json("{}".into())).by(soon);
    let failure = http.send(&request).await.unwrap_err();
    assert_eq!((failure.sent, failure.what), (Sent::No, What::Timeout));
}

#[tokio::test(flavor = "multi_thread")]
async fn c1_streams_that_nobody_reads_stop_no_other_call_on_their_connection() {
    let (http, connections) = http2(&Authority::new(), STREAMS).await;
    http.send(&Request::get("/short".into())).await.unwrap();
    let mut unread = Vec::new();
    for _ in 0..80 {
        let request = Request::stream("/endless".into(), Duration::ZERO);
        unread.push(http.stream(&request).await.unwrap());
    }
    let poll = Request::long_poll("/short".into(), Body::Empty, Duration::from_secs(1));
    // The server goes on sending until it may not any more.
    for _ in 0..20 {
        let answer = tokio::time::timeout(Duration::from_secs(20), http.send(&poll));
        assert_eq!(answer.await.unwrap().unwrap().body, "short");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(connections.load(Ordering::SeqCst), 2, "all share one");
}

#[tokio::test(flavor = "multi_thread")]
async fn short_calls_share_one_connection() {
    let (http, connections) = http2(&Authority::new(), STREAMS).await;
    let request = Request::get("/short".into());
    http.send(&request).await.unwrap();
    let together = (0..60).map(|_| http.send(&request));
    for response in futures::future::join_all(together).await {
        assert_eq!(response.unwrap().head.status, 200);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn r29_a_mutation_after_the_server_closed_a_kept_connection_is_sent_once_on_another() {
    let server = Raw::start(|connection| {
        connection.request();
        connection.answer("200 OK", "", "{}");
    });
    let http = http(server.url());
    let request = Request::mutation("/v1/x".into(), Body::Empty);
    for number in 1..=5 {
        http.send(&request).await.unwrap();
        assert_eq!(
            (server.arrived().len(), server.connections()),
            (number, number)
        );
        // Until the end of the connection has been seen, it may be used once more.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
