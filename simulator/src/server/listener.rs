//! The listening socket and its accept loop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::Connection;
use super::negotiate;
use super::tls::Tls;

/// Room for a burst of a thousand clients that connect at once.
const BACKLOG: u32 = 4096;

/// Binds the address; port 0 picks a free one.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // A restart on a chosen port must not wait for the old port's TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// What every connection is served with.
pub(crate) struct Service {
    pub(crate) router: Router,
    /// Without it only plain connections are taken; with it both are.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Asked once a connection.
    pub(crate) max_concurrent_streams: Box<dyn Fn() -> u32 + Send + Sync>,
}

/// Accepts until `stop` fires, then waits for the connections to end.
pub(crate) async fn serve(listener: TcpListener, service: Service, stop: CancellationToken) {
    let service = Arc::new(service);
    let connections = TaskTracker::new();
    let mut next_id = 1;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _peer)) => {
                // Small replies must not wait for the client's delayed ACK.
                stream.set_nodelay(true).unwrap_or_default();
                let connection = Connection::new(next_id);
                next_id += 1;
                let (service, stop) = (Arc::clone(&service), stop.clone());
                connections.spawn(negotiate::serve_connection(
                    stream, connection, service, stop,
                ));
            }
            Err(error) => {
                // Out of descriptors: accepting again at once would spin.
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}
