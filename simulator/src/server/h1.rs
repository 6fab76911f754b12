//! HTTP/1.1 on one connection.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::header::CONNECTION;
use http::{HeaderValue, Request};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::connection::{Connection, Hangup, InFlight};

/// The answer that is no answer: hyper drops the connection when it gets it.
#[derive(Debug, thiserror::Error)]
#[error("the connection is ended instead of an answer")]
struct HungUp;

/// Serves the connection until the client leaves, the idle limit passes or
/// `stop` fires.
pub(super) async fn serve_connection<S>(
    stream: S,
    connection: Arc<Connection>,
    router: Router,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service_connection = Arc::clone(&connection);
    let service = service_fn(move |request: Request<Incoming>| {
        let router = router.clone();
        let connection = Arc::clone(&service_connection);
        async move { answer(request, connection, router).await }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        // Pieces are copied together into bounded writes. `pipeline_flush` would do so
        // too, but without the bound: a body that is always ready would not be sent
        // before its end.
        .writev(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::select! {
        ended = served => if let Err(error) = ended {
            tracing::debug!(connection = connection.id, %error, "connection ended");
        },
        () = connection.idle_expired() => {
            tracing::debug!(connection = connection.id, "idle connection closed");
        }
        () = stop.cancelled() => {}
    }
}

async fn answer(
    request: Request<Incoming>,
    connection: Arc<Connection>,
    router: Router,
) -> Result<Response, HungUp> {
    let in_flight = connection.begin_request();
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(Arc::clone(&connection));
    let response = match router
        .oneshot(Request::from_parts(parts, Body::new(body)))
        .await
    {
        Ok(response) => response,
        Err::<_, Infallible>(never) => match never {},
    };
    match response.extensions().get::<Hangup>() {
        None => {
            let mut response = response.map(|body| until_sent(body, in_flight));
            if connection.is_retiring() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
            Ok(response)
        }
        Some(how) => {
            if *how == Hangup::Reset {
                connection.reset_on_close();
            }
            Err(HungUp)
        }
    }
}

/// Keeps the request counted until the last byte of its answer is taken.
fn until_sent(body: Body, in_flight: InFlight) -> Body {
    Body::new(body.map_frame(move |frame| {
        let _counted = &in_flight;
        frame
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::get;
    use bytes::Bytes;
    use futures::stream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_always_ready_is_sent_while_it_is_made() {
        const PIECE: &[u8] = &[b'y'; 16 * 1024];
        const PIECES: usize = 4096;
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let body = || async {
            Body::from_stream(stream::iter((0..PIECES).map(|_| {
                MADE.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(Bytes::from_static(PIECE))
            })))
        };
        let router = Router::new().route("/", get(body));
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let stop = CancellationToken::new();
        let served = serve_connection(server, Connection::new(1), router, stop.clone());
        let served = tokio::spawn(served);
        let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        client.write_all(request).await.unwrap();
        let mut head = [0; 15];
        client.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
        let made = MADE.load(Ordering::Relaxed) * PIECE.len();
        assert!(
            made < 2_000_000,
            "{made} bytes were made before one was sent"
        );
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert!(rest.len() > PIECES * PIECE.len());
        stop.cancel();
        served.await.unwrap();
    }
}
