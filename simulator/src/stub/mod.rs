//! `--stub`: canned answers for benchmarks, at next to no cost.
//!
//! Nothing runs and nothing is remembered but the boxes: what a command prints
//! stands in the command (`command.rs`), what a file holds in its path
//! (`files.rs`), and an execution's id is all of the execution. So the client
//! is what is measured. Start reading in `answer.rs`; `record.rs` is the one
//! place of the simulator that knows how the adapter wraps a command.

mod answer;
mod body;
mod boxes;
mod command;
mod events;
mod execution;
mod files;
mod payload;
mod record;
mod serve;
mod status;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use tokio_util::sync::CancellationToken;

use crate::TlsOptions;
use crate::server::{self, Tls};

/// A running stub; it ends when dropped.
#[derive(Debug)]
pub struct Stub {
    address: SocketAddr,
    tls: Option<Arc<Tls>>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Stub {
    /// Starts a stub on a port of 127.0.0.1 (0 picks a free one) and returns
    /// once it accepts connections. It uses one thread, so that on a machine
    /// with few cores the client keeps the others. With `tls` the port speaks
    /// TLS and plain HTTP, as the simulator's does.
    ///
    /// # Errors
    ///
    /// What the system says when the port cannot be bound, a thread cannot be
    /// started or the certificate cannot be written.
    pub fn start(port: u16, tls: Option<&TlsOptions>) -> io::Result<Self> {
        let tls = tls.map(Tls::new).transpose()?.map(Arc::new);
        let stop = CancellationToken::new();
        let (stopping, serving_tls) = (stop.clone(), tls.clone());
        let (started, starting) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("runloop-stub".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                match runtime {
                    Ok(runtime) => runtime.block_on(run(port, serving_tls, stopping, &started)),
                    Err(error) => started.send(Err(error)).unwrap_or_default(),
                }
            })?;
        let address = starting.recv().unwrap_or_else(|_gone| {
            Err(io::Error::other("the stub ended before it was listening"))
        })?;
        Ok(Self {
            address,
            tls,
            stop,
            thread: Some(thread),
        })
    }

    /// The base URL, without a slash at its end; `https` with TLS.
    #[must_use]
    pub fn url(&self) -> String {
        match self.tls {
            Some(_) => format!("https://{}", self.address),
            None => self.plain_url(),
        }
    }

    /// The same without TLS, which goes on the same port always.
    #[must_use]
    pub fn plain_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The file with the authority's certificate, with TLS.
    #[must_use]
    pub fn ca_path(&self) -> Option<&Path> {
        self.tls.as_deref().map(Tls::ca_path)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the stub's thread panicked");
        }
    }
}

async fn run(
    port: u16,
    tls: Option<Arc<Tls>>,
    stop: CancellationToken,
    started: &mpsc::Sender<io::Result<SocketAddr>>,
) {
    let bound = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .and_then(|listener| Ok((listener.local_addr()?, listener)));
    match bound {
        Ok((address, listener)) => {
            started.send(Ok(address)).unwrap_or_default();
            serve::serve(listener, tls, stop).await;
        }
        Err(error) => started.send(Err(error)).unwrap_or_default(),
    }
}
