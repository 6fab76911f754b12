//! Tries reads again. Nothing else passes through here more than once.
//!
//! A read changes nothing, so a dead pooled socket, a passing 5xx or a 429
//! need not reach the caller. Mutations are sent once; long polls and streams
//! are asked again by their callers, who know what a fault means there.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;
use uuid::Uuid;

use super::{Transport, observed};
use crate::message::{Failure, Kind, Request, Response, StreamResponse, What};

/// Requests for one read, the first included.
const MAX_ATTEMPTS: u32 = 5;

/// Of these, how many may wait in vain for a connection. An address that stays
/// silent for that long twice costs a caller more than a third time brings.
const MAX_CONNECT_TIMEOUTS: u32 = 2;

/// The first pause; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(150);

/// Longest pause of our own.
const MAX_PAUSE: Duration = Duration::from_secs(3);

/// A server that asks for more than this is not waited for: the caller learns
/// of it at once and can decide.
const MAX_ASKED_PAUSE: Duration = Duration::from_secs(20);

/// A transport that repeats the failed reads of another.
pub struct Retrying<T>(pub T);

impl<T: Transport> Transport for Retrying<T> {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, Failure>> {
        if !matches!(request.kind, Kind::Read | Kind::Download) {
            return self.0.send(request);
        }
        async move {
            let mut attempts = 1;
            let mut connect_timeouts = 0;
            loop {
                let mut result = self.0.send(request).await;
                match &mut result {
                    Ok(response) => response.head.attempts = attempts,
                    Err(failure) => failure.attempts = attempts,
                }
                if matches!(&result, Err(failure) if failure.what == What::ConnectTimeout) {
                    connect_timeouts += 1;
                }
                let asked = match &result {
                    Ok(response) if is_passing(response.head.status) => {
                        response.head.retry_after_seconds
                    }
                    Err(failure) if is_worth_another(failure.what) => None,
                    _ => return result,
                };
                let Some(pause) = pause(attempts, asked, jitter()) else {
                    return result;
                };
                let until = Instant::now() + pause;
                if attempts == MAX_ATTEMPTS
                    || connect_timeouts == MAX_CONNECT_TIMEOUTS
                    || request.deadline.is_some_and(|end| end <= until)
                {
                    return result;
                }
                if let Some(trace) = &request.trace {
                    let method = observed::method(request.method);
                    trace.retry(method, &request.path, &reason(&result), pause);
                }
                tokio::time::sleep_until(until).await;
                attempts += 1;
            }
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<StreamResponse, Failure>> {
        self.0.stream(request)
    }
}

/// Why another attempt is made, for events.
fn reason(result: &Result<Response, Failure>) -> String {
    match result {
        Ok(response) => format!("status {}", response.head.status),
        Err(failure) => observed::word(failure.what).to_owned(),
    }
}

/// Whether the same read may be answered better in a moment.
fn is_passing(status: u16) -> bool {
    // 501 and 505 say that it never will be.
    matches!(status, 408 | 429 | 500 | 502..=504 | 506..)
}

fn is_worth_another(what: What) -> bool {
    match what {
        What::Connect | What::ConnectTimeout | What::Timeout | What::Reset => true,
        // A certificate does not become valid, a password not right, an answer not smaller.
        What::Tls | What::Proxy | What::TooLarge | What::Unaddressable | What::Build => false,
    }
}

/// How long to wait after attempt number `attempts`; `None` to give up.
/// `jitter` is 0 to 1 and takes up to a quarter off, so that clients that
/// failed together do not come back together.
fn pause(attempts: u32, asked_seconds: Option<f64>, jitter: f64) -> Option<Duration> {
    let doubled = FIRST_PAUSE * 2_u32.saturating_pow(attempts.saturating_sub(1)).min(1024);
    let own = doubled.min(MAX_PAUSE).mul_f64(1.0 - 0.25 * jitter);
    let Some(asked) = asked_seconds else {
        return Some(own);
    };
    let asked = Duration::try_from_secs_f64(asked).unwrap_or(Duration::MAX);
    (asked <= MAX_ASKED_PAUSE).then(|| own.max(asked))
}

fn jitter() -> f64 {
    let [byte, ..] = *Uuid::new_v4().as_bytes();
    f64::from(byte) / 255.0
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::{Body, Head, Sent};
    use crate::transport::scripted::{Scripted, Step};

    fn asking_to_wait(status: u16, seconds: f64) -> Step {
        let head = Head {
            status,
            retry_after_seconds: Some(seconds),
            ..Head::default()
        };
        Step::Answer(Response {
            head,
            body: Bytes::new(),
        })
    }

    fn read() -> Request {
        Request::get("/v1/x".into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_gets_past_passing_faults_and_says_how_many_requests_it_took() {
        for status in [408, 429, 500, 502, 503, 504, 520] {
            let transport = Retrying(Scripted::new([
                Step::reset(),
                Step::refused(),
                Step::json(status, ""),
                Step::json(200, "{}"),
            ]));
            let response = transport.send(&read()).await.unwrap();
            assert_eq!((response.head.status, response.head.attempts), (200, 4));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_ends_after_five_requests_with_the_last_answer() {
        let transport = Retrying(Scripted::new((0..5).map(|_| Step::json(503, ""))));
        let started = Instant::now();
        let response = transport.send(&read()).await.unwrap();
        assert_eq!((response.head.status, response.head.attempts), (503, 5));
        let seconds = started.elapsed().as_secs_f64();
        assert!((1.6..2.4).contains(&seconds), "{seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_waits_twice_for_a_silent_address_and_no_longer() {
        let silent = || {
            let failure = Failure::new(Sent::No, What::ConnectTimeout, "not within 10 s");
            Step::Fail(failure).after(Duration::from_secs(10))
        };
        let transport = Retrying(Scripted::new([silent(), silent()]));
        let started = Instant::now();
        let failure = transport.send(&read()).await.unwrap_err();
        assert_eq!((failure.what, failure.attempts), (What::ConnectTimeout, 2));
        let seconds = started.elapsed().as_secs_f64();
        assert!((20.1..20.2).contains(&seconds), "{seconds}");

        // Other faults between them do not start the count anew, and one alone is survived.
        let steps = [silent(), Step::refused(), silent()];
        let failure = Retrying(Scripted::new(steps)).send(&read()).await;
        assert_eq!(failure.unwrap_err().attempts, 3);
        let steps = [silent(), Step::json(200, "{}")];
        let answer = Retrying(Scripted::new(steps)).send(&read()).await;
        assert_eq!(answer.unwrap().head.attempts, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_will_not_change_is_not_asked_for_again() {
        for status in [200, 301, 400, 401, 403, 404, 409, 422, 501] {
            let transport = Retrying(Scripted::new([Step::json(status, "")]));
            assert_eq!(transport.send(&read()).await.unwrap().head.status, status);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn r29_mutations_long_polls_and_streams_are_sent_once() {
        let body = || Body::Empty;
        for request in [
            Request::mutation("/v1/x".into(), body()),
            Request::long_poll("/v1/x".into(), body(), Duration::from_secs(1)),
            Request::stream("/v1/x".into(), Duration::from_secs(1)),
        ] {
            for step in [Step::reset(), Step::refused(), Step::json(503, "")] {
                let transport = Retrying(Scripted::new([step]));
                let _ = transport.send(&request).await;
                assert_eq!(transport.0.seen().len(), 1);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_is_given_the_time_it_asks_for_but_not_for_ever() {
        let transport = Retrying(Scripted::new([
            asking_to_wait(429, 7.0),
            Step::json(200, ""),
        ]));
        let started = Instant::now();
        transport.send(&read()).await.unwrap();
        assert_eq!(started.elapsed(), Duration::from_secs(7));

        for long in [21.0, 1e300] {
            let transport = Retrying(Scripted::new([asking_to_wait(429, long)]));
            assert_eq!(transport.send(&read()).await.unwrap().head.status, 429);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_retry_that_would_come_after_the_deadline_is_not_made() {
        let transport = Retrying(Scripted::new([asking_to_wait(429, 7.0)]));
        let request = read().by(Instant::now() + Duration::from_secs(5));
        let started = Instant::now();
        assert_eq!(transport.send(&request).await.unwrap().head.status, 429);
        assert_eq!(started.elapsed(), Duration::ZERO);
    }
}
