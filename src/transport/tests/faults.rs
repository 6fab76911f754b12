//! What each fault becomes, and that nothing is sent twice.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::raw::Raw;
use super::{KEY, http, settings};
use crate::message::{Body, Failure, Request, Sent, What};
use crate::transport::{Http, Retrying, Transport};

fn mutation() -> Request {
    Request::mutation("/v1/devboxes".into(), Body::Json(Bytes::from_static(b"{}")))
}

fn read() -> Request {
    Request::get("/v1/devboxes".into())
}

async fn fails(server: &Raw, request: Request) -> Failure {
    http(server.url()).send(&request).await.unwrap_err()
}

#[tokio::test]
async fn r31_a_refused_connection_is_definite_and_names_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let failure = http(url.clone()).send(&mutation()).await.unwrap_err();
    assert_eq!((failure.sent, failure.what), (Sent::No, What::Connect));
    assert!(failure.detail.starts_with(&url), "{}", failure.detail);
    assert!(
        failure.detail.to_lowercase().contains("refused"),
        "{}",
        failure.detail
    );
}

/// An address whose queue of connections is full: the kernel drops every further one.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn r31_an_address_that_stays_silent_costs_a_read_twice_the_limit_and_a_mutation_once() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let connecting = || tokio::net::TcpStream::connect(address);
    let mut queued = Vec::new();
    while let Ok(stream) = tokio::time::timeout(Duration::from_millis(300), connecting()).await {
        queued.push(stream.unwrap());
    }
    let connect_timeout = Duration::from_millis(400);
    let transport = Retrying(
        Http::new(crate::transport::Settings {
            connect_timeout,
            ..settings(format!("http://{address}"))
        })
        .unwrap(),
    );
    for (request, attempts) in [(read(), 2), (mutation(), 1)] {
        let started = Instant::now();
        let failure = transport.send(&request).await.unwrap_err();
        assert_eq!(
            (failure.sent, failure.what, failure.attempts),
            (Sent::No, What::ConnectTimeout, attempts)
        );
        assert!(
            failure.detail.ends_with("not within 0.4 s"),
            "{}",
            failure.detail
        );
        // Three attempts would take longer than this; the margin is for a busy machine.
        assert!(started.elapsed() >= connect_timeout * attempts);
        assert!(started.elapsed() < connect_timeout * attempts + Duration::from_secs(2));
    }
}

#[tokio::test]
async fn r31_a_name_that_does_not_resolve_is_definite() {
    let failure = http("http://no-such-host.invalid".into())
        .send(&mutation())
        .await
        .unwrap_err();
    assert_eq!((failure.sent, failure.what), (Sent::No, What::Connect));
    assert!(
        failure.detail.contains("no-such-host.invalid"),
        "{}",
        failure.detail
    );
}

#[tokio::test]
async fn r29_a_mutation_whose_answer_is_lost_is_uncertain_and_sent_once() {
    let server = Raw::start(|connection| {
        connection.request();
    });
    let failure = Retrying(http(server.url()))
        .send(&mutation())
        .await
        .unwrap_err();
    assert_eq!((failure.sent, failure.what), (Sent::Maybe, What::Reset));
    assert_eq!((server.arrived().len(), server.connections()), (1, 1));
}

#[tokio::test]
async fn a_read_whose_answer_is_lost_is_asked_again() {
    let server = Raw::start(|connection| {
        connection.request();
    });
    let failure = Retrying(http(server.url()))
        .send(&read())
        .await
        .unwrap_err();
    assert_eq!((failure.what, failure.attempts), (What::Reset, 5));
    assert_eq!(server.arrived().len(), 5);
}

#[tokio::test]
async fn k2_an_answer_that_is_cut_is_no_answer() {
    for cut in [
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{\"id\"",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"id",
    ] {
        let server = Raw::start(move |connection| {
            connection.request();
            connection.write(cut);
        });
        let failure = fails(&server, mutation()).await;
        assert_eq!(
            (failure.sent, failure.what),
            (Sent::Maybe, What::Reset),
            "{cut:?}"
        );
    }
}

#[tokio::test]
async fn k2_bytes_behind_an_answer_are_never_the_answer_to_the_next_request() {
    let server = Raw::start(|connection| {
        while connection.request().is_some() {
            connection.write(
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}\
                 HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged",
            );
        }
    });
    let http = http(server.url());
    for request in [read(), mutation(), read(), mutation(), read()] {
        assert_eq!(http.send(&request).await.unwrap().body, "{}");
    }
    assert_eq!(server.arrived().len(), 5);
}

/// `gzip` of [`PLAIN`].
const ZIPPED: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x4a\xce\xcf\x2b\x49\xcd\x2b\x51\xb2\x52\x4a\xad\x48\x4c\x2e\x51\x48\xaa\x2c\x49\x2d\xd6\x51\x48\x2d\x4b\x2d\xaa\x54\xc8\xcf\x4b\x55\xc8\x4f\x53\x28\xc9\x48\xcd\x55\xaa\x05\x00\x81\x58\xc4\x27\x2c\x00\x00\x00";
const PLAIN: &str = r#"{"content":"exact bytes, every one of them"}"#;

#[tokio::test]
async fn k2_a_compressed_answer_is_whole_or_none_wherever_it_is_cut() {
    let server = Raw::start(|connection| {
        while let Some(request) = connection.request() {
            // The length is right, so that only the content can tell.
            let cut: usize = request
                .line
                .split(['/', ' '])
                .nth(2)
                .unwrap()
                .parse()
                .unwrap();
            connection.write(format!(
                "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {cut}\r\n\r\n"
            ));
            connection.write(&ZIPPED[..cut]);
        }
    });
    let http = http(server.url());
    for cut in 0..=ZIPPED.len() {
        let answer = http.send(&Request::get(format!("/{cut}"))).await;
        match answer {
            Ok(answer) if cut == ZIPPED.len() => assert_eq!(answer.body, PLAIN),
            Ok(answer) => assert!(answer.body.is_empty() && cut == 0, "cut at {cut}"),
            Err(failure) => {
                assert!(cut < ZIPPED.len());
                assert_eq!(failure.what, What::Reset, "cut at {cut}");
            }
        }
    }
}

#[tokio::test]
async fn something_that_is_no_http_is_no_answer() {
    let server = Raw::start(|connection| {
        connection.request();
        connection.write("220 mail.example ESMTP\r\n");
    });
    let failure = fails(&server, mutation()).await;
    assert_eq!((failure.sent, failure.what), (Sent::Maybe, What::Reset));
}

#[tokio::test]
async fn headers_without_end_are_refused() {
    let server = Raw::start(|connection| {
        connection.request();
        connection.write("HTTP/1.1 200 OK\r\n");
        for number in 0..10_000 {
            connection.write(format!("x-{number}: {}\r\n", "y".repeat(200)));
        }
        connection.hang();
    });
    assert_eq!(fails(&server, read()).await.what, What::Reset);
}

fn impatient(server: &Raw) -> Http {
    let silence_timeout = Duration::from_millis(200);
    Http::new(crate::transport::Settings {
        silence_timeout,
        ..settings(server.url())
    })
    .unwrap()
}

#[tokio::test]
async fn f2_silence_ends_a_call_before_and_within_the_answer() {
    let server = Raw::start(|connection| {
        if connection
            .request()
            .is_some_and(|request| request.line.contains("half"))
        {
            connection.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{");
        }
        connection.hang();
    });
    for path in ["/v1/none", "/v1/half"] {
        let started = Instant::now();
        let request = Request::mutation(path.into(), Body::Empty);
        let failure = impatient(&server).send(&request).await.unwrap_err();
        assert_eq!((failure.sent, failure.what), (Sent::Maybe, What::Timeout));
        assert!(started.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test]
async fn f2_a_held_call_is_given_its_hold_and_a_deadline_ends_it_all_the_same() {
    let server = Raw::start(|connection| {
        connection.request();
        std::thread::sleep(Duration::from_millis(600));
        connection.answer("408 Request Timeout", "", "");
    });
    let held = Request::long_poll("/v1/x".into(), Body::Empty, Duration::from_secs(2));
    let response = impatient(&server).send(&held).await.unwrap();
    assert_eq!(response.head.status, 408);

    let deadline = tokio::time::Instant::now() + Duration::from_millis(100);
    let failure = impatient(&server)
        .send(&held.by(deadline))
        .await
        .unwrap_err();
    assert_eq!(failure.what, What::Timeout);
    assert!(failure.detail.contains("deadline"), "{}", failure.detail);
}

#[tokio::test]
async fn k6_a_redirect_is_not_followed_and_the_key_goes_nowhere_else() {
    let other = Raw::start(|connection| while connection.request().is_some() {});
    let location = format!("location: {}/v1/stolen\r\n", other.url());
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let location = location.clone();
        let server = Raw::start(move |connection| {
            while connection.request().is_some() {
                connection.answer(status, &location, "");
            }
        });
        let http = http(server.url());
        for request in [read(), mutation()] {
            let response = http.send(&request).await.unwrap();
            assert_eq!(response.head.status.to_string(), status[..3]);
        }
        assert_eq!(server.arrived().len(), 2);
    }
    assert!(other.arrived().is_empty());
}

#[tokio::test]
async fn v17_a_failure_holds_no_key() {
    let server = Raw::start(|connection| {
        connection.request();
    });
    let http = http(server.url());
    let failure = http.send(&mutation()).await.unwrap_err();
    assert!(
        !format!("{failure:?} {http:?}").contains(KEY),
        "{failure:?}"
    );
}

#[tokio::test]
async fn an_answer_that_trickles_ends_after_ten_times_the_silence_that_is_allowed() {
    let server = Raw::start(|connection| {
        connection.request();
        connection.write("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n");
        for _ in 0..1000 {
            connection.write(" ");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    // Long enough for a busy machine, on which a thread may stand still.
    let silence_timeout = Duration::from_millis(500);
    let transport = Http::new(crate::transport::Settings {
        silence_timeout,
        ..settings(server.url())
    });
    let started = Instant::now();
    let failure = transport.unwrap().send(&mutation()).await.unwrap_err();
    assert_eq!(failure.what, What::Timeout);
    assert!(started.elapsed() >= silence_timeout * 9);
    // Until the server stops would be 10 s.
    assert!(started.elapsed() < Duration::from_secs(8));
}
