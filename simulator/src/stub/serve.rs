//! Sockets: the one part of the stub that knows TLS and versions of HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::answer::answer;
use super::status::Status;
use crate::server::{Protocol, Tls};

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 22;

/// Streams on one HTTP/2 connection: as many as the service is said to allow.
const MAX_STREAMS: u32 = 128;

/// Room for uploads and downloads, so that flow control is not what is measured.
const WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// Accepts until `stop` fires; what is still open then ends with the runtime.
pub(super) async fn serve(listener: TcpListener, tls: Option<Arc<Tls>>, stop: CancellationToken) {
    let status = Arc::new(Status::new());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, _peer)) => {
                // Small replies must not wait for the client's delayed ACK.
                stream.set_nodelay(true).unwrap_or_default();
                tokio::spawn(negotiate(stream, tls.clone(), Arc::clone(&status)));
            }
            Err(error) => {
                // Out of descriptors: accepting again at once would spin.
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn negotiate(stream: TcpStream, tls: Option<Arc<Tls>>, status: Arc<Status>) {
    let Some(tls) = tls else {
        return serve_connection(stream, Protocol::Http1, status).await;
    };
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(_) if first == [TLS_HANDSHAKE] => match tls.accept(stream).await {
            Ok((stream, protocol)) => serve_connection(stream, protocol, status).await,
            Err(error) => tracing::info!(%error, "no TLS handshake"),
        },
        Ok(_) => serve_connection(stream, Protocol::Http1, status).await,
        Err(error) => tracing::debug!(%error, "connection ended"),
    }
}

async fn serve_connection<S>(stream: S, protocol: Protocol, status: Arc<Status>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request| {
        let status = Arc::clone(&status);
        async move { Ok::<_, Infallible>(answer(request, &status).await) }
    });
    let stream = TokioIo::new(stream);
    let served = match protocol {
        Protocol::Http1 => {
            http1::Builder::new()
                .serve_connection(stream, service)
                .await
        }
        Protocol::Http2 => {
            http2::Builder::new(TokioExecutor::new())
                .max_concurrent_streams(MAX_STREAMS)
                .initial_stream_window_size(WINDOW_BYTES)
                .initial_connection_window_size(WINDOW_BYTES)
                .serve_connection(stream, service)
                .await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
}
