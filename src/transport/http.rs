//! HTTP by reqwest: one attempt, whole or as a stream. The only file that names it.
//!
//! Redirects are never followed: the API has none, and following one could
//! carry the key to another origin or send a mutation twice. reqwest's own
//! retries are off. hyper may still put a request on a fresh connection when
//! the pooled one was found dead before the request reached the wire; that is
//! no second sending.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::HeaderValue;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, USER_AGENT,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::arrived::{Arrivals, joined};
use super::body::Gathered;
use super::lanes::{Lane, Lanes, Limits};
use super::opening::{Opening, Started};
use super::{Transport, causes, headers, opening, tls};
use crate::error::{Error, Result};
use crate::message::{
    Body, Failure, Head, Kind, Method, Request, Response, Sent, StreamResponse, What,
};
use crate::observe::Counter;

/// How long an unused connection is kept. Shorter than the 30 s after which
/// common servers close one, so that a mutation rarely meets a dying socket.
const IDLE_CONNECTION: Duration = Duration::from_secs(20);

/// Slowest upload that is waited for, in bytes a second.
const SLOWEST_UPLOAD: usize = 128 * 1024;

/// Slowest download that is waited for, in bytes a second.
const SLOWEST_DOWNLOAD: usize = 128 * 1024;

/// Bytes of an upload between two counts.
const COUNTED_PIECE: usize = 64 * 1024;

/// How often an answer may take the longest silence: one that trickles is never silent.
const LONGEST_ANSWER: u32 = 10;

/// Of answers that are read at once: what the HTTP library has by default.
const ANSWER_WINDOW: u32 = 2 * 1024 * 1024;

/// Of event streams, whose reader may be slow. Limits one to 10 MB/s at a
/// round trip of 50 ms.
const STREAM_WINDOW: u32 = 512 * 1024;

/// Bytes of one answer that an HTTP/2 server may send ahead of its reader.
///
/// A connection's allowance is this for every call that may share it. Were it
/// less, as it is by default, some streams that are read slowly would use it
/// up, and every other call on that connection would stand still.
#[derive(Debug, Clone, Copy)]
struct Window {
    stream_bytes: u32,
    connection_bytes: u32,
}

impl Window {
    const fn shared_by(per_lane: u32, stream_bytes: u32) -> Self {
        Self {
            stream_bytes,
            connection_bytes: per_lane * stream_bytes,
        }
    }
}

/// Where and how to connect.
#[derive(Clone)]
pub struct Settings {
    /// `https://host[:port][/prefix]` without a trailing slash, as a URL parser
    /// writes it; `http` only on loopback.
    pub base_url: String,
    /// Whether `base_url` is on this machine, so that no proxy is asked.
    pub is_loopback: bool,
    /// The whole `Authorization` value, marked sensitive.
    pub authorization: HeaderValue,
    /// Limit on making a connection: name, TCP, proxy and TLS together.
    pub connect_timeout: Duration,
    /// Limit on silence: from the request to the answer, and between two pieces of it.
    pub silence_timeout: Duration,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

/// The transport that does HTTP. Answers of any status are answers.
pub struct Http {
    settings: Settings,
    /// Calls that are answered at once.
    short: Lanes<reqwest::Client>,
    /// Long polls, held calls and event streams: they occupy a stream of an
    /// HTTP/2 connection for seconds and must not starve the short ones.
    held: Lanes<reqwest::Client>,
    /// Files: they fill the flow-control window of their connection.
    bulk: Lanes<reqwest::Client>,
    /// Whether the host was heard to speak HTTP/2. A client that has to find
    /// out makes a connection for every call that comes before the first
    /// answer; one that knows makes a single one.
    speaks_http2: Arc<AtomicBool>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Http {
    /// Prepares connections; makes none yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when `NODE_EXTRA_CA_CERTS` names a file without certificates.
    pub fn new(settings: Settings) -> Result<Self> {
        // Reading the system's certificates takes longer than a request on loopback.
        let tls = if settings.base_url.starts_with("https:") {
            tls::client_config()?
        } else {
            tls::trusting(rustls::RootCertStore::empty())?
        };
        Self::over(settings, tls)
    }

    /// As [`new`](Self::new), with this configuration of TLS.
    pub(super) fn over(settings: Settings, tls: rustls::ClientConfig) -> Result<Self> {
        // Shows now what would fail later; costs no connection.
        build(
            &settings,
            tls.clone(),
            false,
            Window::shared_by(1, ANSWER_WINDOW),
        )?;
        let speaks_http2 = Arc::new(AtomicBool::new(false));
        let lanes = |per_lane: u8, max_lanes, stream_bytes| {
            let window = Window::shared_by(per_lane.into(), stream_bytes);
            let (settings, tls) = (settings.clone(), tls.clone());
            let speaks_http2 = speaks_http2.clone();
            let limits = Limits {
                per_lane: per_lane.into(),
                max_lanes,
                idle: IDLE_CONNECTION,
            };
            Lanes::new(limits, move || {
                let speaks_http2 = speaks_http2.load(Ordering::Relaxed);
                build(&settings, tls.clone(), speaks_http2, window).ok()
            })
        };
        let short = lanes(64, 8, ANSWER_WINDOW);
        let held = lanes(96, 64, STREAM_WINDOW);
        let bulk = lanes(8, 8, ANSWER_WINDOW);
        Ok(Self {
            short,
            held,
            bulk,
            speaks_http2,
            settings,
        })
    }

    fn lanes(&self, request: &Request) -> &Lanes<reqwest::Client> {
        match (request.kind, &request.body) {
            (Kind::Download, _) | (_, Body::Multipart { .. }) => &self.bulk,
            (Kind::LongPoll | Kind::Stream, _) => &self.held,
            _ if request.hold > Duration::ZERO => &self.held,
            _ => &self.short,
        }
    }

    /// Remembers what the host speaks.
    fn learn(&self, outcome: &reqwest::Result<reqwest::Response>) {
        match outcome {
            Ok(answer) => {
                let is_http2 = answer.version() == http::Version::HTTP_2;
                self.speaks_http2.store(is_http2, Ordering::Relaxed);
            }
            // A host that gave up HTTP/2 ends the handshake.
            Err(error)
                if causes::is_tls(error) && self.speaks_http2.swap(false, Ordering::Relaxed) =>
            {
                [&self.short, &self.held, &self.bulk]
                    .into_iter()
                    .for_each(Lanes::renew);
            }
            Err(_) => {}
        }
    }

    /// Sends the request and waits for the head of the answer.
    async fn open(&self, request: &Request) -> std::result::Result<Open, Failure> {
        let id = headers::new_request_id();
        let lanes = self.lanes(request);
        let silence = self.silence(request);
        loop {
            let none = || Failure::new(Sent::No, What::Build, "no HTTP client could be made");
            let mut lane = lanes.take().ok_or_else(none)?;
            let opening = matches!(request.body, Body::Json(_)).then(Arc::<Opening>::default);
            let builder = self.builder(&lane, request, &id, opening.as_ref())?;
            if self.speaks_http2.load(Ordering::Relaxed) {
                let admitted = lane.admitted();
                within(silence, request.deadline, admitted)
                    .await
                    .map_err(unsent)?;
            }
            let mut sending = std::pin::pin!(builder.send());
            let is_http2 = || self.speaks_http2.load(Ordering::Relaxed);
            let started = match &opening {
                Some(opening) => opening
                    .started(lanes, &mut lane, is_http2, sending.as_mut())
                    .left_future(),
                None => opening::answered(lanes, &lane, request, is_http2, sending.as_mut())
                    .right_future(),
            };
            let withdraw = || opening.as_ref().is_some_and(|opening| opening.withdraw());
            let outcome = match within(silence, request.deadline, started).await {
                Ok(Started::Ended(outcome)) => outcome,
                Ok(Started::Opened) => within(silence, request.deadline, sending).await?,
                Ok(Started::Elsewhere) => continue,
                Err(late) if withdraw() => return Err(unsent(late)),
                Err(late) => return Err(late),
            };
            lane.opened();
            lane.settled();
            self.learn(&outcome);
            let answer = outcome.map_err(|error| failure(error, &self.settings))?;
            let head = Head {
                status: answer.status().as_u16(),
                request_id: headers::request_id(answer.headers()).or(Some(id)),
                retry_after_seconds: headers::retry_after_seconds(answer.headers()),
                content_type: headers::content_type(answer.headers()),
                attempts: 1,
            };
            return Ok(Open {
                head,
                answer,
                lane,
                silence,
            });
        }
    }

    /// The address, which leads exactly where the path says.
    fn url(&self, path: &str) -> std::result::Result<Url, Failure> {
        let asked = path.split('?').next().unwrap_or(path);
        let text = [self.settings.base_url.as_str(), path].concat();
        match Url::parse(&text) {
            // A parser resolves `..` away, encoded or not, and so leads elsewhere.
            Ok(url) if url.as_str() == text && !asked.contains("//") && !asked.ends_with('/') => {
                Ok(url)
            }
            _ => Err(Failure::new(
                Sent::No,
                What::Unaddressable,
                "no address leads there",
            )),
        }
    }

    fn silence(&self, request: &Request) -> Duration {
        let upload_bytes = match &request.body {
            Body::Multipart { file, .. } => file.len(),
            _ => 0,
        };
        let upload = Duration::from_secs((upload_bytes / SLOWEST_UPLOAD) as u64);
        self.settings.silence_timeout + request.hold + upload
    }

    fn builder(
        &self,
        client: &reqwest::Client,
        request: &Request,
        id: &str,
        opening: Option<&Arc<Opening>>,
    ) -> std::result::Result<reqwest::RequestBuilder, Failure> {
        let url = self.url(&request.path)?;
        let mut builder = match request.method {
            Method::Get => client.get(url),
            Method::Post => client.post(url),
        };
        builder = builder.header(headers::REQUEST_ID, id);
        builder = match request.kind {
            // Compressed events would arrive in blocks instead of at once.
            Kind::Stream => builder
                .header(ACCEPT, HeaderValue::from_static("text/event-stream"))
                .header(ACCEPT_ENCODING, HeaderValue::from_static("identity")),
            Kind::Download => builder.header(ACCEPT, HeaderValue::from_static("*/*")),
            _ => builder.header(ACCEPT, HeaderValue::from_static("application/json")),
        };
        Ok(match &request.body {
            Body::Empty if request.method == Method::Get => builder,
            // Some servers refuse a POST that does not say how long it is.
            Body::Empty => builder.header(CONTENT_LENGTH, HeaderValue::from_static("0")),
            Body::Json(json) => {
                let builder =
                    builder.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                match opening {
                    None => builder.body(json.clone()),
                    Some(opening) => {
                        builder
                            .header(CONTENT_LENGTH, json.len())
                            .body(reqwest::Body::wrap_stream(
                                opening.clone().body(json.clone()),
                            ))
                    }
                }
            }
            Body::Multipart { path, file } => {
                let length = file.len() as u64;
                let content = match &request.counter {
                    Some(counter) => counted(file.clone(), counter.clone()),
                    None => file.clone().into(),
                };
                let part = reqwest::multipart::Part::stream_with_length(content, length)
                    .file_name("file")
                    .mime_str("application/octet-stream")
                    .map_err(|error| failure(error, &self.settings))?;
                let form = reqwest::multipart::Form::new();
                builder.multipart(form.text("path", path.clone()).part("file", part))
            }
        })
    }
}

/// A body that tells how much of it the connection has taken.
fn counted(content: Bytes, counter: Counter) -> reqwest::Body {
    let total = content.len();
    let pieces = futures::stream::unfold(content, move |mut rest| {
        counter.at((total - rest.len()) as u64);
        let piece = rest.split_to(rest.len().min(COUNTED_PIECE));
        let next = (!piece.is_empty()).then(|| (Ok::<_, std::convert::Infallible>(piece), rest));
        futures::future::ready(next)
    });
    reqwest::Body::wrap_stream(pieces)
}

struct Open {
    head: Head,
    answer: reqwest::Response,
    lane: Lane<reqwest::Client>,
    silence: Duration,
}

impl Transport for Http {
    fn send<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, std::result::Result<Response, Failure>> {
        async move {
            let Open {
                head,
                mut answer,
                lane: _lane,
                silence,
            } = self.open(request).await?;
            let too_large = || Failure::too_large(request.max_body_bytes);
            let announced = answer.content_length().unwrap_or(0);
            if announced > request.max_body_bytes as u64 {
                return Err(too_large());
            }
            let end = Instant::now() + longest(request, silence);
            let end = request.deadline.map_or(end, |deadline| deadline.min(end));
            let mut body = Gathered::new(usize::try_from(announced).unwrap_or(0));
            while let Some(piece) = within(silence, Some(end), answer.chunk())
                .await?
                .map_err(broken)?
            {
                if body.len().saturating_add(piece.len()) > request.max_body_bytes {
                    return Err(too_large());
                }
                body.push(piece);
                if let Some(counter) = &request.counter
                    && request.kind == Kind::Download
                    && head.is_success()
                {
                    counter.at(body.len() as u64);
                }
            }
            let body = body.into_bytes();
            Ok(Response { head, body })
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, std::result::Result<StreamResponse, Failure>> {
        async move {
            let Open {
                head,
                answer,
                lane,
                silence,
            } = self.open(request).await?;
            let deadline = request.deadline;
            let mut body = answer.bytes_stream().boxed();
            let body = Arrivals::spawn(move |to| async move {
                let _lane = lane;
                loop {
                    let first = match within(silence, deadline, body.next()).await {
                        Ok(Some(Ok(first))) => first,
                        Ok(None) => return,
                        Ok(Some(Err(error))) => return give(&to, Err(broken(error))).await,
                        Err(timeout) => return give(&to, Err(timeout)).await,
                    };
                    let (bytes, end) = joined(first, &mut body).await;
                    give(&to, Ok(bytes)).await;
                    match end {
                        None => {}
                        Some(Ok(())) => return,
                        Some(Err(error)) => return give(&to, Err(broken(error))).await,
                    }
                }
            });
            Ok(StreamResponse {
                head,
                body: body.boxed(),
            })
        }
        .boxed()
    }
}

fn build(
    settings: &Settings,
    mut tls: rustls::ClientConfig,
    speaks_http2: bool,
    window: Window,
) -> Result<reqwest::Client> {
    if speaks_http2 {
        tls.alpn_protocols.retain(|protocol| protocol == b"h2");
    }
    let mut defaults = HeaderMap::new();
    defaults.insert(AUTHORIZATION, settings.authorization.clone());
    defaults.insert(
        USER_AGENT,
        HeaderValue::from_static(headers::USER_AGENT_VALUE),
    );
    let mut builder = reqwest::Client::builder()
        .default_headers(defaults)
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(IDLE_CONNECTION)
        .http2_initial_stream_window_size(window.stream_bytes)
        .http2_initial_connection_window_size(window.connection_bytes)
        .http2_max_header_list_size(64 * 1024)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .http2_keep_alive_timeout(Duration::from_secs(20));
    if speaks_http2 {
        builder = builder.http2_prior_knowledge();
    }
    if settings.is_loopback {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        Error::internal(format!(
            "the HTTP client could not be built: {}",
            causes::sentence(&error)
        ))
    })
}

/// Hands a piece over. Nobody to take it ends the task from outside.
async fn give(
    to: &mpsc::Sender<std::result::Result<Bytes, Failure>>,
    piece: std::result::Result<Bytes, Failure>,
) {
    let _ = to.send(piece).await;
}

/// How long a whole answer may take.
fn longest(request: &Request, silence: Duration) -> Duration {
    let file = match request.kind {
        Kind::Download => (request.max_body_bytes / SLOWEST_DOWNLOAD) as u64,
        _ => 0,
    };
    silence * LONGEST_ANSWER + Duration::from_secs(file)
}

/// Runs until the silence limit or the deadline, whichever comes first.
async fn within<T>(
    silence: Duration,
    deadline: Option<Instant>,
    work: impl Future<Output = T>,
) -> std::result::Result<T, Failure> {
    let silent_at = Instant::now() + silence;
    let at = deadline.map_or(silent_at, |deadline| deadline.min(silent_at));
    timeout_at(at, work).await.map_err(|_| {
        let detail = if at < silent_at {
            "the deadline of the call came before the answer".to_owned()
        } else {
            format!("no byte arrived for {} s", silence.as_secs_f64())
        };
        Failure::new(Sent::Maybe, What::Timeout, detail)
    })
}

/// A limit that passed before the request had left.
fn unsent(late: Failure) -> Failure {
    let detail = format!("no connection took the request: {}", late.detail);
    Failure::new(Sent::No, late.what, detail)
}

/// The failure of a request whose answer did not begin.
fn failure(error: reqwest::Error, settings: &Settings) -> Failure {
    // The paths below the base URL hold ids.
    let (is_builder, is_connect) = (error.is_builder(), error.is_connect());
    let (is_timeout, error) = (error.is_timeout(), error.without_url());
    let (sent, what) = match () {
        () if is_builder => (Sent::No, What::Build),
        () if is_connect && causes::is_tls(&error) => (Sent::No, What::Tls),
        () if is_connect && causes::is_proxy_credentials(&error) => (Sent::No, What::Proxy),
        () if is_connect && is_timeout => (Sent::No, What::ConnectTimeout),
        () if is_connect => (Sent::No, What::Connect),
        () if is_timeout => (Sent::Maybe, What::Timeout),
        () => (Sent::Maybe, What::Reset),
    };
    let mut detail = causes::sentence(&error);
    if is_connect {
        let limit = settings.connect_timeout.as_secs_f64();
        if is_timeout {
            detail = format!("not within {limit} s");
        }
        // The base URL holds no user info.
        detail = format!("{}: {detail}", settings.base_url);
        if let Some(advice) = causes::advice(&error) {
            detail = format!("{detail}; {advice}");
        }
    }
    Failure::new(sent, what, detail)
}

/// The failure of a request whose answer broke off.
fn broken(error: reqwest::Error) -> Failure {
    let cause = causes::sentence(&error.without_url());
    Failure::new(
        Sent::Maybe,
        What::Reset,
        format!("the answer broke off: {cause}"),
    )
}
