//! Tells of each attempt, where the request carries a trace.

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

use super::Transport;
use crate::message::{Body, Failure, Method, Request, Response, StreamResponse, What};
use crate::observe::{Span, Trace};

/// A transport that tells of what another does. Without a trace it only passes on.
pub struct Observed<T>(pub T);

impl<T: Transport> Transport for Observed<T> {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, Failure>> {
        let Some(trace) = &request.trace else {
            return self.0.send(request);
        };
        async move {
            let mut span = begin(trace, request);
            let result = self.0.send(request).await;
            match &result {
                Ok(Response { head, body }) => {
                    span.answered(head.status, head.request_id.as_deref());
                    span.received(body.len());
                    span.ended(None);
                }
                Err(failure) => span.ended(Some(word(failure.what))),
            }
            result
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<StreamResponse, Failure>> {
        let Some(trace) = &request.trace else {
            return self.0.stream(request);
        };
        async move {
            let mut span = begin(trace, request);
            match self.0.stream(request).await {
                Ok(StreamResponse { head, body }) => {
                    span.answered(head.status, head.request_id.as_deref());
                    // The span lives as long as the body: to its end, or until it is dropped.
                    let body = body.map(Some).chain(futures::stream::iter([None]));
                    let body = body.scan((span, false), |(span, is_broken), piece| {
                        match &piece {
                            Some(Ok(piece)) => span.received(piece.len()),
                            Some(Err(failure)) => {
                                *is_broken = true;
                                span.ended(Some(word(failure.what)));
                            }
                            None if *is_broken => {}
                            None => span.ended(None),
                        }
                        futures::future::ready(piece)
                    });
                    Ok(StreamResponse {
                        head,
                        body: body.boxed(),
                    })
                }
                Err(failure) => {
                    span.ended(Some(word(failure.what)));
                    Err(failure)
                }
            }
        }
        .boxed()
    }
}

fn begin(trace: &std::sync::Arc<Trace>, request: &Request) -> Span {
    let sent_bytes = match &request.body {
        Body::Empty => 0,
        Body::Json(json) => json.len(),
        Body::Multipart { file, .. } => file.len(),
    };
    trace.attempt(method(request.method), &request.path, sent_bytes)
}

pub(super) fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
    }
}

/// A failure's kind, as events name it.
pub(super) fn word(what: What) -> &'static str {
    match what {
        What::Connect | What::ConnectTimeout => "connect",
        What::Timeout => "timeout",
        What::Reset => "reset",
        What::Tls => "tls",
        What::Proxy => "proxy",
        What::TooLarge => "too_large",
        What::Unaddressable => "unaddressable",
        What::Build => "build",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use bytes::Bytes;
    use serde_json::Value;

    use super::*;
    use crate::message::{Head, Sent};
    use crate::observe::{Event, Observer};
    use crate::transport::Retrying;
    use crate::transport::scripted::{Scripted, Step};

    /// Keeps events as a listener in JavaScript would see them.
    #[derive(Default)]
    struct Kept(Mutex<Vec<Value>>);

    impl Observer for Kept {
        fn is_active(&self) -> bool {
            true
        }

        fn observe(&self, event: &Event<'_>) {
            let event = serde_json::to_value(event).unwrap();
            self.0.lock().unwrap().push(event);
        }
    }

    impl Kept {
        /// Type, attempt, status and failure of each event.
        fn lines(&self) -> Vec<String> {
            let events = self.0.lock().unwrap();
            let field = |event: &Value, name: &str| event.get(name).map(Value::to_string);
            let shown = |event: &Value| {
                ["type", "attempt", "status", "failure", "reason"]
                    .iter()
                    .filter_map(|name| field(event, name))
                    .collect::<Vec<_>>()
                    .join(" ")
                    .replace('"', "")
            };
            events.iter().map(shown).collect()
        }
    }

    fn traced(request: Request, observer: &Arc<Kept>) -> Request {
        let observer: Arc<dyn Observer> = Arc::<Kept>::clone(observer);
        let trace = Trace::new(observer, "sandbox_inspect", Some("op-1".into()));
        Request {
            trace: Some(trace),
            ..request
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_attempt_of_a_read_is_told_with_what_came_of_it() {
        let kept = Arc::new(Kept::default());
        let script = Scripted::new([Step::reset(), Step::json(503, ""), Step::json(200, "{}")]);
        let request = traced(Request::get("/v1/devboxes/x?cursor=secret".into()), &kept);
        let transport = Retrying(Observed(script));
        transport.send(&request).await.unwrap();
        assert_eq!(
            kept.lines(),
            [
                "request.start 1",
                "request.end 1 reset",
                "retry 1 reset",
                "request.start 2",
                "request.end 2 503",
                "retry 2 status 503",
                "request.start 3",
                "request.end 3 200",
            ]
        );
        let events = kept.0.lock().unwrap();
        for event in events.iter() {
            assert_eq!(event["route"], "/v1/devboxes/{id}");
            assert_eq!(event["path"], "/v1/devboxes/x");
            assert_eq!(event["operationId"], "op-1");
        }
        assert_eq!(events[7]["receivedBytes"], 2);
        assert!(!format!("{events:?}").contains("secret"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_nobody_waits_for_ends_as_dropped() {
        let kept = Arc::new(Kept::default());
        let transport = Observed(Scripted::new([Step::Hang]));
        let request = traced(Request::get("/v1/x".into()), &kept);
        let sending = transport.send(&request);
        assert!(
            tokio::time::timeout(Duration::from_secs(1), sending)
                .await
                .is_err()
        );
        assert_eq!(kept.lines(), ["request.start 1", "request.end 1 dropped"]);
        let duration = kept.0.lock().unwrap()[1]["durationMs"].as_f64();
        assert_eq!(duration, Some(1000.0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_where_its_body_does_breaks_or_is_let_go() {
        let pieces = || {
            vec![
                Ok(Bytes::from_static(b"abc")),
                Ok(Bytes::from_static(b"de")),
            ]
        };
        let broken = Failure::new(Sent::Maybe, What::Reset, "reset");
        let head = || Head {
            status: 200,
            ..Head::default()
        };
        let kept = Arc::new(Kept::default());
        let transport = Observed(Scripted::new([
            Step::Stream(head(), pieces()),
            Step::Stream(head(), vec![Ok(Bytes::from_static(b"abc")), Err(broken)]),
            Step::Stream(head(), pieces()),
        ]));
        for read in [9, 9, 1] {
            let request = Request::stream("/v1/x".into(), Duration::ZERO);
            let answer = transport.stream(&traced(request, &kept)).await.unwrap();
            let _ = answer.body.take(read).collect::<Vec<_>>().await;
        }
        assert_eq!(
            kept.lines(),
            [
                "request.start 1",
                "request.end 1 200",
                "request.start 1",
                "request.end 1 200 reset",
                "request.start 1",
                "request.end 1 200 dropped",
            ]
        );
        let received: Vec<_> = kept
            .0
            .lock()
            .unwrap()
            .iter()
            .map(|each| each["receivedBytes"].clone())
            .collect();
        assert_eq!(
            received[1..6],
            [5.into(), Value::Null, 3.into(), Value::Null, 3.into()]
        );
    }
}
