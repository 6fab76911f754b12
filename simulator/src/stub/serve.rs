//! Sockets: the one part of the stub that knows a version of HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::answer::answer;
use super::status::Status;

/// Accepts until `stop` fires; what is still open then ends with the runtime.
pub(super) async fn serve(listener: TcpListener, stop: CancellationToken) {
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
                tokio::spawn(serve_connection(stream, Arc::clone(&status)));
            }
            Err(error) => {
                // Out of descriptors: accepting again at once would spin.
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, status: Arc<Status>) {
    let service = service_fn(move |request| {
        let status = Arc::clone(&status);
        async move { Ok::<_, Infallible>(answer(request, &status).await) }
    });
    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "connection ended");
    }
}
