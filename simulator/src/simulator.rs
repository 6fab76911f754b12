//! Starting and ending a simulator inside a program.
//!
//! The simulator runs on threads of its own, so it can be started from
//! blocking code and from inside any async runtime alike.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::guest::{Isolation, IsolationChoice, Machine, MachineOptions};
use crate::routes;
use crate::server::{self, Service, Tls, TlsOptions};
use crate::state::persist::StateDir;
use crate::state::settings::Settings;
use crate::state::{World, timers};

/// How long the end may take before what is still running is abandoned.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How a simulator is started.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// TCP port on 127.0.0.1; 0 picks a free one.
    pub port: u16,
    /// The only key that is accepted; without it any `ak_…` key is.
    pub api_key: Option<String>,
    /// The switches it starts with.
    pub settings: Settings,
    /// TLS with an authority of its own; plain HTTP goes on the same port.
    pub tls: Option<TlsOptions>,
    /// Whether boxes may have namespaces of their own.
    pub isolation: IsolationChoice,
    /// Keeps boxes, snapshots and all other resources here for the next start.
    pub state_dir: Option<PathBuf>,
    /// Dropping the simulator panics if a request matched no route.
    pub panic_on_unexpected: bool,
}

/// A running simulator; it ends when dropped.
#[derive(Debug)]
pub struct Simulator {
    address: SocketAddr,
    url: String,
    tls: Option<Arc<Tls>>,
    world: Arc<World>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
    panic_on_unexpected: bool,
}

impl Simulator {
    /// Starts a simulator and returns once it accepts connections.
    ///
    /// # Errors
    ///
    /// What the system says when the port cannot be bound, or when the boxes'
    /// processes or a thread cannot be started.
    pub fn start(options: Options) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let panic_on_unexpected = options.panic_on_unexpected;
        let tls = options
            .tls
            .as_ref()
            .map(Tls::new)
            .transpose()?
            .map(Arc::new);
        let (started, starting) = mpsc::channel();
        let (stopping, serving_tls) = (stop.clone(), tls.clone());
        let thread = std::thread::Builder::new()
            .name("runloop-simulator".to_owned())
            .spawn(move || {
                match tokio::runtime::Builder::new_multi_thread()
                    .enable_all()
                    .build()
                {
                    Ok(runtime) => {
                        runtime.block_on(run(options, serving_tls, stopping, &started));
                        runtime.shutdown_timeout(END_LIMIT);
                    }
                    Err(error) => started.send(Err(error)).unwrap_or_default(),
                }
            })?;
        let (address, world) = starting.recv().unwrap_or_else(|_gone| {
            Err(io::Error::other(
                "the simulator's thread ended before it was listening",
            ))
        })?;
        Ok(Self {
            address,
            url: match tls {
                Some(_) => format!("https://{address}"),
                None => format!("http://{address}"),
            },
            tls,
            world,
            stop,
            thread: Some(thread),
            panic_on_unexpected,
        })
    }

    /// The base URL, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// As [`url`](Self::url) without TLS, which goes on the same port always.
    #[must_use]
    pub fn plain_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The certificate of the authority that a client has to trust, where
    /// there is TLS.
    #[must_use]
    pub fn ca_pem(&self) -> Option<&str> {
        self.tls.as_deref().map(Tls::ca_pem)
    }

    /// The absolute path of the file that holds [`ca_pem`](Self::ca_pem).
    #[must_use]
    pub fn ca_path(&self) -> Option<&Path> {
        self.tls.as_deref().map(Tls::ca_path)
    }

    /// How boxes are kept apart on this machine, as in `/_simulator/health`.
    #[must_use]
    pub fn isolation(&self) -> &'static str {
        self.world.isolation()
    }

    /// Every `METHOD /path` so far that no route matched.
    #[must_use]
    pub fn unexpected_requests(&self) -> Vec<String> {
        self.world.journal.unexpected()
    }

    /// Asks it to end; dropping it waits until it has.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Resolves when the simulator has been asked to end.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the simulator's thread panicked");
        }
        let unexpected = self.unexpected_requests();
        if self.panic_on_unexpected && !unexpected.is_empty() && !std::thread::panicking() {
            #[expect(clippy::panic, reason = "asked for with `panic_on_unexpected`")]
            {
                panic!("the simulator has no route for: {}", unexpected.join(", "));
            }
        }
    }
}

/// Serves until `stop` fires, then ends every box.
async fn run(
    options: Options,
    tls: Option<Arc<Tls>>,
    stop: CancellationToken,
    started: &mpsc::Sender<io::Result<(SocketAddr, Arc<World>)>>,
) {
    let (listener, address, world, state) = match prepare(options, stop).await {
        Ok(prepared) => prepared,
        Err(error) => {
            started.send(Err(error)).unwrap_or_default();
            return;
        }
    };
    let timers = tokio::spawn(timers::run(Arc::clone(&world)));
    let saving = state
        .clone()
        .map(|state| tokio::spawn(state.keep_saving(Arc::clone(&world))));
    started
        .send(Ok((address, Arc::clone(&world))))
        .unwrap_or_default();
    let settings = Arc::clone(&world);
    let service = Service {
        router: routes::router(Arc::clone(&world)),
        tls,
        max_concurrent_streams: Box::new(move || {
            settings.settings.get().http2_max_concurrent_streams
        }),
    };
    server::serve(listener, service, world.stopping.clone()).await;
    timers.abort();
    if let (Some(state), Some(saving)) = (state, saving) {
        saving.abort();
        if let Err(error) = state.save(&world) {
            tracing::error!(%error, "the state could not be saved");
        }
    }
    world.end().await;
}

type Prepared = (TcpListener, SocketAddr, Arc<World>, Option<StateDir>);

async fn prepare(options: Options, stop: CancellationToken) -> io::Result<Prepared> {
    let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, options.port)))?;
    let address = listener.local_addr()?;
    let state = options.state_dir.map(StateDir::open).transpose()?;
    let machine = MachineOptions {
        state_dir: state.as_ref().map(StateDir::machine_dir),
        isolation: options.isolation,
    };
    let machine = Machine::start(machine).await.map_err(io::Error::other)?;
    if let Isolation::Plain { reason } = machine.isolation() {
        tracing::warn!(
            reason,
            "boxes are plain processes: they share this machine's network"
        );
    }
    let world = World::new(options.settings, options.api_key, machine, stop);
    if let Some(state) = &state {
        state.load(&world).await?;
    }
    Ok((listener, address, world, state))
}
