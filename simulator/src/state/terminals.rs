//! The terminals of a box: named sessions that outlive their clients.
//!
//! Certain: a session is found by its name, has one client at a time, and is
//! kept for its idle time after the client has left; a close, a suspend and the
//! end of its shell end it. What a terminal shows while nobody is attached is
//! lost unless `pty_backlog_bytes` keeps some (inferred: clients ask for a new
//! prompt after they attached). The WebSocket is `proxy/terminals.rs`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::executions::guest_failed;
use super::ids;
use super::settings::Settings;
use crate::error::{ApiError, ApiResult};
use crate::guest::{Guest, Pty, PtySignal};

/// Pieces of output on their way to a client; one more has to wait.
const QUEUED_PIECES: usize = 16;

/// Columns and rows in character cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

impl Size {
    /// What a terminal has unless a size is asked for (certain).
    pub(crate) const DEFAULT: Self = Self {
        columns: 80,
        rows: 24,
    };

    /// A size from 1 to 1000 both ways; `None` for any other.
    pub(crate) fn new(columns: i64, rows: i64) -> Option<Self> {
        let legal = |count: i64| {
            u16::try_from(count)
                .ok()
                .filter(|it| (1..=1000).contains(it))
        };
        Some(Self {
            columns: legal(columns)?,
            rows: legal(rows)?,
        })
    }
}

/// Where a box's terminals are reached from outside; made anew at each call
/// and gone with the simulator (certain: they are not shown on the box).
#[derive(Debug)]
pub(crate) struct PtyTunnel {
    pub(crate) key: String,
    pub(crate) auth_token: String,
}

/// The terminals of one box.
#[derive(Debug, Default)]
pub(crate) struct Terminals {
    book: Mutex<Book>,
    /// Held while a session is made: two clients of one name share it.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Book {
    /// Tokens by tunnel key.
    tunnels: HashMap<String, String>,
    sessions: BTreeMap<String, Arc<Session>>,
}

impl Terminals {
    pub(crate) fn create_tunnel(&self) -> PtyTunnel {
        let tunnel = PtyTunnel {
            // A host name does not tell upper case from lower case.
            key: ids::token(32).to_ascii_lowercase(),
            auth_token: ids::token(43),
        };
        let (key, token) = (tunnel.key.clone(), tunnel.auth_token.clone());
        self.lock().tunnels.insert(key, token);
        tunnel
    }

    /// The token of a tunnel to this box.
    pub(crate) fn tunnel_token(&self, key: &str) -> Option<String> {
        self.lock().tunnels.get(key).cloned()
    }

    /// The session of a name, made if there is none whose shell lives; whether
    /// it was made now. A size that is given is applied either way.
    pub(crate) async fn open(
        &self,
        guest: &Guest,
        name: &str,
        size: Option<Size>,
        settings: &Settings,
        now_ms: i64,
    ) -> ApiResult<(Arc<Session>, bool)> {
        let _one_at_a_time = self.opening.lock().await;
        let known = self.lock().sessions.get(name).cloned();
        if let Some(session) = known.filter(|session| session.is_live()) {
            if let Some(size) = size {
                session.resize(size).await?;
            }
            // Whoever asks for it is about to attach.
            session.keep_from(now_ms);
            return Ok((session, false));
        }
        let size = size.unwrap_or(Size::DEFAULT);
        let pty = guest
            .pty(size.columns, size.rows)
            .await
            .map_err(guest_failed)?;
        let session = Session::start(name, pty, size, settings, now_ms);
        let mut book = self.lock();
        book.sessions.insert(name.to_owned(), Arc::clone(&session));
        Ok((session, true))
    }

    pub(crate) fn get(&self, name: &str) -> ApiResult<Arc<Session>> {
        let session = self.lock().sessions.get(name).cloned();
        session.ok_or_else(|| ApiError::not_found("PTY session", name))
    }

    /// Hangs a terminal up and forgets it: its name is free again.
    pub(crate) fn close(&self, name: &str) -> ApiResult<()> {
        let session = self.get(name)?;
        self.lock().sessions.remove(name);
        session.hang_up();
        Ok(())
    }

    /// Ends what nobody has been attached to for the idle time; how long until
    /// the next is due.
    pub(crate) fn expire(&self, now_ms: i64) -> Option<i64> {
        let mut nearest = None::<i64>;
        self.lock().sessions.retain(|_name, session| {
            let Some(left_ms) = session.idle_left_ms(now_ms) else {
                return true;
            };
            if left_ms <= 0 {
                session.hang_up();
                return false;
            }
            nearest = Some(nearest.map_or(left_ms, |nearest| nearest.min(left_ms)));
            true
        });
        nearest
    }

    /// For people who look: names, sizes and whether a client is there.
    pub(crate) fn view(&self) -> Vec<Value> {
        let book = self.lock();
        let rows = book.sessions.values().map(|session| {
            let size = session.size();
            json!({
                "session_name": session.name,
                "cols": size.columns,
                "rows": size.rows,
                "attached": session.is_attached(),
                "exit_status": session.exit_code(),
            })
        });
        rows.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One shell on one terminal.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) name: String,
    /// What the attach URL carries.
    pub(crate) token: String,
    pub(crate) idle_ttl_seconds: u32,
    /// Bytes that are kept of what nobody saw.
    backlog_bytes: usize,
    /// Gone once it was hung up: the last handle closes the terminal.
    pty: Mutex<Option<Pty>>,
    shown: Mutex<Shown>,
    hung_up: CancellationToken,
}

#[derive(Debug)]
struct Shown {
    size: Size,
    client: Option<mpsc::Sender<Bytes>>,
    backlog: Vec<u8>,
    /// Virtual time since which nobody is attached.
    idle_since_ms: i64,
    exit_code: Option<i32>,
}

impl Session {
    fn start(name: &str, pty: Pty, size: Size, settings: &Settings, now_ms: i64) -> Arc<Self> {
        let session = Arc::new(Self {
            name: name.to_owned(),
            token: ids::token(43),
            idle_ttl_seconds: settings.pty_idle_ttl_seconds,
            backlog_bytes: settings.pty_backlog_bytes,
            pty: Mutex::new(Some(pty.clone())),
            shown: Mutex::new(Shown {
                size,
                client: None,
                backlog: Vec::new(),
                idle_since_ms: now_ms,
                exit_code: None,
            }),
            hung_up: CancellationToken::new(),
        });
        tokio::spawn(Arc::clone(&session).follow(pty));
        session
    }

    /// Hands on what the terminal shows until its end. A client that takes
    /// nothing makes the programs on the terminal wait.
    async fn follow(self: Arc<Self>, pty: Pty) {
        let over = async {
            while let Ok(Some(bytes)) = pty.read().await {
                self.show(bytes).await;
            }
            pty.exited().await
        };
        let exit_code = tokio::select! {
            code = over => Some(code),
            () = self.hung_up.cancelled() => pty.exit_code(),
        };
        let mut shown = self.shown();
        shown.exit_code = exit_code;
        // The client sees the end of the output.
        shown.client = None;
    }

    async fn show(&self, mut bytes: Bytes) {
        loop {
            let client = {
                let mut shown = self.shown();
                let present = shown.client.clone().filter(|client| !client.is_closed());
                let Some(client) = present else {
                    shown.keep(&bytes, self.backlog_bytes);
                    return;
                };
                client
            };
            match client.send(bytes).await {
                Ok(()) => return,
                Err(unsent) => bytes = unsent.0,
            }
        }
    }

    /// Makes the caller the session's client (certain: there is one at a time;
    /// what a second one is told is unknown: 409). Of a shell that has ended
    /// the output is over at once.
    pub(crate) fn attach(self: &Arc<Self>, now_ms: NowMs) -> ApiResult<Attachment> {
        let mut shown = self.shown();
        if shown.client.is_some() {
            return Err(ApiError::new(
                http::StatusCode::CONFLICT,
                format!("PTY session {} has a client attached", self.name),
            ));
        }
        let (client, output) = mpsc::channel(QUEUED_PIECES);
        let backlog = std::mem::take(&mut shown.backlog);
        if !backlog.is_empty() {
            // A fresh channel has room.
            client.try_send(backlog.into()).unwrap_or_default();
        }
        if self.is_over(&shown) {
            drop(client);
        } else {
            shown.client = Some(client);
        }
        Ok(Attachment {
            session: Arc::clone(self),
            output,
            now_ms,
        })
    }

    /// Types; waits for the terminal to take it.
    pub(crate) async fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        match self.pty() {
            Some(pty) => pty.write(bytes).await,
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// 400 once the shell has ended.
    pub(crate) async fn resize(&self, size: Size) -> ApiResult<()> {
        let pty = self.live_pty()?;
        pty.resize(size.columns, size.rows)
            .await
            .map_err(guest_failed)?;
        self.shown().size = size;
        Ok(())
    }

    /// To the process group in the foreground; 400 where there is none.
    pub(crate) async fn signal(&self, signal: PtySignal) -> ApiResult<()> {
        let pty = self.live_pty()?;
        if pty.signal(signal).await.map_err(guest_failed)? {
            Ok(())
        } else {
            Err(self.has_ended())
        }
    }

    pub(crate) fn size(&self) -> Size {
        self.shown().size
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.shown().client.is_some()
    }

    /// The shell's exit code, or 128 + signal; `None` while it lives and where
    /// the terminal was hung up before it ended.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        self.shown().exit_code
    }

    fn is_live(&self) -> bool {
        !self.is_over(&self.shown())
    }

    fn is_over(&self, shown: &Shown) -> bool {
        shown.exit_code.is_some() || self.hung_up.is_cancelled()
    }

    /// Lets go of the terminal: the kernel hangs up what runs on it.
    fn hang_up(&self) {
        self.hung_up.cancel();
        self.lock_pty().take();
    }

    fn keep_from(&self, now_ms: i64) {
        self.shown().idle_since_ms = now_ms;
    }

    fn idle_left_ms(&self, now_ms: i64) -> Option<i64> {
        let shown = self.shown();
        let ttl_ms = i64::from(self.idle_ttl_seconds) * 1000;
        let is_idle = shown.client.is_none();
        is_idle.then(|| shown.idle_since_ms + ttl_ms - now_ms)
    }

    fn live_pty(&self) -> ApiResult<Pty> {
        self.pty()
            .filter(|pty| pty.exit_code().is_none())
            .ok_or_else(|| self.has_ended())
    }

    fn has_ended(&self) -> ApiError {
        ApiError::bad_request(format!("the shell of PTY session {} has ended", self.name))
    }

    fn pty(&self) -> Option<Pty> {
        self.lock_pty().clone()
    }

    fn lock_pty(&self) -> MutexGuard<'_, Option<Pty>> {
        self.pty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    /// Keeps the newest bytes of what nobody saw.
    fn keep(&mut self, bytes: &[u8], max_bytes: usize) {
        self.backlog.extend_from_slice(bytes);
        let surplus = self.backlog.len().saturating_sub(max_bytes);
        self.backlog.drain(..surplus);
    }
}

/// Tells virtual time.
pub(crate) type NowMs = Box<dyn Fn() -> i64 + Send + Sync>;

/// A client's place at a session, free again when dropped.
pub(crate) struct Attachment {
    pub(crate) session: Arc<Session>,
    /// What the terminal shows; ends with the session.
    pub(crate) output: mpsc::Receiver<Bytes>,
    now_ms: NowMs,
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut shown = self.session.shown();
        shown.client = None;
        shown.idle_since_ms = (self.now_ms)();
    }
}
