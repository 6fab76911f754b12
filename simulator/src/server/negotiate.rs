//! Finding out what a new connection speaks: TLS or not, HTTP/1.1 or HTTP/2.
//!
//! The first bytes tell: a TLS handshake begins with 22, HTTP/2 without TLS
//! (prior knowledge) with `PRI`, which is no method of HTTP/1.1.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::listener::Service;
use super::socket::Socket;
use super::tls::Protocol;
use super::{h1, h2};

const TLS_HANDSHAKE: u8 = 22;
const HTTP2_PREFACE: &[u8; 3] = b"PRI";

/// Between two looks at a beginning that is not yet clear.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Serves the connection until its end, whatever it speaks.
pub(super) async fn serve_connection(
    stream: TcpStream,
    connection: Arc<Connection>,
    service: Arc<Service>,
    stop: CancellationToken,
) {
    let id = connection.id;
    let spoken = tokio::select! {
        spoken = beginning(&stream) => spoken,
        () = stop.cancelled() => return,
    };
    let socket = Socket::new(stream, Arc::clone(&connection));
    let router = service.router.clone();
    let streams = (service.max_concurrent_streams)();
    match (spoken, &service.tls) {
        (Ok(Beginning::Tls), Some(tls)) => {
            connection.set_tls();
            let accepted = tokio::select! {
                accepted = tls.accept(socket) => accepted,
                () = stop.cancelled() => return,
            };
            match accepted {
                Ok((stream, Protocol::Http1)) => {
                    h1::serve_connection(stream, connection, router, stop).await;
                }
                Ok((stream, Protocol::Http2)) => {
                    h2::serve_connection(stream, connection, router, streams, stop).await;
                }
                Err(error) => tracing::info!(connection = id, %error, "no TLS handshake"),
            }
        }
        (Ok(Beginning::Tls), None) => {
            tracing::info!(
                connection = id,
                "a client speaks TLS, which is not on (--tls)"
            );
        }
        (Ok(Beginning::Http2), _) => {
            h2::serve_connection(socket, connection, router, streams, stop).await;
        }
        (Ok(Beginning::Other), _) => {
            h1::serve_connection(socket, connection, router, stop).await;
        }
        (Err(error), _) => tracing::debug!(connection = id, %error, "connection ended"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    Tls,
    Http2,
    Other,
}

/// Looks at the first bytes without taking them.
async fn beginning(stream: &TcpStream) -> io::Result<Beginning> {
    let mut first = [0; HTTP2_PREFACE.len()];
    loop {
        let count = stream.peek(&mut first).await?;
        match first.get(..count).unwrap_or_default() {
            [TLS_HANDSHAKE, ..] => return Ok(Beginning::Tls),
            seen if seen == HTTP2_PREFACE => return Ok(Beginning::Http2),
            seen if !seen.is_empty() && HTTP2_PREFACE.starts_with(seen) => {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            _ => return Ok(Beginning::Other),
        }
    }
}
