//! The `runloop-simulator` binary.
//!
//! Prints one line of JSON on stdout once it listens; its log goes to stderr.
//! It ends on SIGINT and SIGTERM and, unless `--detach` is given, with its
//! parent: when a stdin that is a pipe or a socket reaches its end, and when
//! the process that started it is gone.

use std::io::{IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{Pid, getppid};
use runloop_simulator::guest::IsolationChoice;
use runloop_simulator::stub::Stub;
use runloop_simulator::{Certificate, Options, Settings, Simulator, TlsOptions};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing_subscriber::EnvFilter;

/// How often the parent is looked for.
const PARENT_CHECK: Duration = Duration::from_millis(200);

/// A local Runloop API with real processes, for tests and offline work.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Port on 127.0.0.1; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Accept this key only (default: any key that starts with ak_)
    #[arg(long)]
    api_key: Option<String>,
    /// Speak TLS (HTTP/2 and HTTP/1.1) beside plain HTTP on the same port, with an
    /// authority of its own whose certificate's path is printed as `ca`
    #[arg(long)]
    tls: bool,
    /// Write the authority's certificate to DIR/ca.pem (implies --tls)
    #[arg(long, value_name = "DIR")]
    tls_dir: Option<PathBuf>,
    /// The certificate to show (implies --tls)
    #[arg(long, value_name = "KIND")]
    tls_certificate: Option<CertificateKind>,
    /// Offer HTTP/1.1 only over TLS (implies --tls)
    #[arg(long)]
    tls_http1: bool,
    /// Keep Devboxes, snapshots and all other resources here for the next start
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Start with a switch set; see `GET /_simulator/settings` for all names
    #[arg(long = "set", value_name = "NAME=VALUE")]
    assignments: Vec<String>,
    /// Go on after the process that started this one has ended
    #[arg(long)]
    detach: bool,
    /// Run commands as plain processes even where boxes could have namespaces
    #[arg(long)]
    plain: bool,
    /// Canned answers for benchmarks: nothing runs, and other switches but
    /// --port, --tls and --detach have no effect
    #[arg(long)]
    stub: bool,
    /// Log lines as JSON
    #[arg(long)]
    log_json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CertificateKind {
    Valid,
    Expired,
    WrongName,
}

impl Arguments {
    fn tls(&self) -> Option<TlsOptions> {
        let is_asked =
            self.tls || self.tls_dir.is_some() || self.tls_certificate.is_some() || self.tls_http1;
        is_asked.then(|| TlsOptions {
            dir: self.tls_dir.clone(),
            certificate: match self.tls_certificate {
                None | Some(CertificateKind::Valid) => Certificate::Valid,
                Some(CertificateKind::Expired) => Certificate::Expired,
                Some(CertificateKind::WrongName) => Certificate::WrongName,
            },
            http1_only: self.tls_http1,
        })
    }

    fn options(&self) -> Result<Options, String> {
        let settings = self
            .assignments
            .iter()
            .try_fold(Settings::default(), |settings, text| {
                settings.with_assignment(text)
            })?;
        Ok(Options {
            port: self.port,
            api_key: self.api_key.clone(),
            settings,
            tls: self.tls(),
            state_dir: self.state.clone(),
            isolation: if self.plain {
                IsolationChoice::Plain
            } else {
                IsolationChoice::Auto
            },
            ..Options::default()
        })
    }
}

fn main() -> ExitCode {
    // Before anything else: a parent that ends during the start must be noticed.
    let parent = getppid();
    let arguments = Arguments::parse();
    start_log(arguments.log_json);
    match run(&arguments, parent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            tracing::error!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn start_log(json: bool) {
    let filter = EnvFilter::try_from_env("RUNLOOP_SIMULATOR_LOG")
        .unwrap_or_else(|_unset| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if json {
        log.json().init();
    } else {
        log.with_ansi(std::io::stderr().is_terminal()).init();
    }
}

fn run(arguments: &Arguments, parent: Pid) -> Result<(), String> {
    let options = arguments.options()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    // Before there is anything to clean up and anybody who could ask for the end.
    let signals = {
        let _context = runtime.enter();
        Signals::take().map_err(|error| error.to_string())?
    };
    let running = Running::start(options, arguments.stub)
        .map_err(|error| format!("cannot start: {error}"))?;
    announce(&running).map_err(|error| format!("cannot write to stdout: {error}"))?;
    let reason = runtime.block_on(end(signals, arguments.detach, parent));
    tracing::info!(reason, "ending");
    drop(running);
    // The stdin reader may be blocked for ever: do not wait for it.
    runtime.shutdown_background();
    Ok(())
}

/// What listens.
enum Running {
    Simulator(Simulator),
    Stub(Stub),
}

impl Running {
    fn start(options: Options, is_stub: bool) -> std::io::Result<Self> {
        if is_stub {
            Stub::start(options.port, options.tls.as_ref()).map(Self::Stub)
        } else {
            Simulator::start(options).map(Self::Simulator)
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Simulator(simulator) => simulator.url().to_owned(),
            Self::Stub(stub) => stub.url(),
        }
    }

    fn plain_url(&self) -> String {
        match self {
            Self::Simulator(simulator) => simulator.plain_url(),
            Self::Stub(stub) => stub.plain_url(),
        }
    }

    fn ca_path(&self) -> Option<&Path> {
        match self {
            Self::Simulator(simulator) => simulator.ca_path(),
            Self::Stub(stub) => stub.ca_path(),
        }
    }

    fn isolation(&self) -> &'static str {
        match self {
            Self::Simulator(simulator) => simulator.isolation(),
            Self::Stub(_) => "none",
        }
    }
}

fn announce(running: &Running) -> std::io::Result<()> {
    let mut line = serde_json::json!({
        "url": running.url(),
        "isolation": running.isolation(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    if let (Some(path), Some(fields)) = (running.ca_path(), line.as_object_mut()) {
        fields.insert("ca".to_owned(), path.to_string_lossy().into());
        fields.insert("plain_url".to_owned(), running.plain_url().into());
    }
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// The signals that ask for an orderly end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From here on they no longer end the process by themselves.
    fn take() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }
}

/// Resolves with the reason to end.
async fn end(mut signals: Signals, detached: bool, parent: Pid) -> &'static str {
    tokio::select! {
        _ = signals.interrupt.recv() => "SIGINT",
        _ = signals.terminate.recv() => "SIGTERM",
        () = stdin_end(), if !detached => "stdin reached its end",
        () = parent_end(parent), if !detached => "the parent is gone",
    }
}

/// Resolves at the end of a stdin that somebody holds open for us: a pipe, or
/// the socket that Node gives. Any other stdin says nothing about the parent.
async fn stdin_end() {
    let held_open = fstat(std::io::stdin().as_fd()).is_ok_and(|stat| {
        let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
        kind == SFlag::S_IFIFO || kind == SFlag::S_IFSOCK
    });
    if !held_open {
        return std::future::pending().await;
    }
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 1024];
        while let Ok(1..) = std::io::stdin().lock().read(&mut buffer) {}
        ended.send(()).unwrap_or_default();
    });
    end.await.unwrap_or_default();
}

/// Looked for, not signalled: a parent-death signal would fire when the
/// *thread* that started us ends.
async fn parent_end(parent: Pid) {
    while getppid() == parent {
        tokio::time::sleep(PARENT_CHECK).await;
    }
}
