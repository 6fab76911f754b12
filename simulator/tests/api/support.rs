//! A simulator of its own for each test and a client that speaks JSON to it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use runloop_simulator::{Options, Settings, Simulator};
use serde_json::{Value, json};

/// The key that clients send unless told otherwise.
pub(crate) const KEY: &str = "ak_test_0123456789";

/// A client and the simulator it talks to.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) simulator: Arc<Simulator>,
    http: reqwest::Client,
    key: String,
}

/// An answer with its body read.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The JSON of an answer that must have this status.
    #[track_caller]
    pub(crate) fn json(&self, status: u16) -> Value {
        let text = self.text();
        assert_eq!(self.status, status, "{text}");
        serde_json::from_str(&text).expect("the answer is JSON")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub(crate) fn start() -> Self {
        Self::start_with(Options::default())
    }

    /// Starts a simulator with these switches, given as JSON.
    pub(crate) fn start_set(settings: Value) -> Self {
        let settings = Settings::default()
            .patched(&settings)
            .expect("known settings");
        Self::start_with(Options {
            settings,
            ..Options::default()
        })
    }

    pub(crate) fn start_with(options: Options) -> Self {
        let key = options.api_key.clone().unwrap_or_else(|| KEY.to_owned());
        let simulator = Arc::new(Simulator::start(options).expect("a simulator starts"));
        // Refused where another test of this process was quicker.
        rustls::crypto::ring::default_provider()
            .install_default()
            .unwrap_or_default();
        let http = http(&simulator).build().expect("a client is made");
        Self {
            simulator,
            http,
            key,
        }
    }

    /// The same simulator through another client.
    pub(crate) fn speaking(&self, http: reqwest::ClientBuilder) -> Self {
        Self {
            http: http.build().expect("a client is made"),
            ..self.clone()
        }
    }

    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self {
            key: key.to_owned(),
            ..self.clone()
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}{path}", self.simulator.url()));
        if self.key.is_empty() {
            request
        } else {
            request.bearer_auth(&self.key)
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        send(self.request(Method::POST, path).json(&body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        send(self.request(Method::DELETE, path)).await
    }

    /// Posts a fault rule.
    pub(crate) async fn fault(&self, rule: Value) {
        self.post("/_simulator/faults", rule).await.json(200);
    }

    /// Creates a Devbox, waits until it runs and gives its id.
    pub(crate) async fn running_devbox(&self, request: Value) -> String {
        let created = self.post("/v1/devboxes", request).await.json(200);
        let id = created["id"].as_str().expect("an id").to_owned();
        let wait = json!({ "statuses": ["running", "failure"], "timeout_seconds": 30 });
        let path = format!("/v1/devboxes/{id}/wait_for_status");
        let view = self.post(&path, wait).await.json(200);
        assert_eq!(view["status"], "running", "{view}");
        id
    }
}

/// A client that trusts the simulator, sends everything once and shows bodies
/// as they were sent.
pub(crate) fn http(simulator: &Simulator) -> reqwest::ClientBuilder {
    let authority = simulator
        .ca_pem()
        .map(|pem| reqwest::Certificate::from_pem(pem.as_bytes()).expect("a certificate"));
    let builder = reqwest::Client::builder()
        .no_proxy()
        .gzip(false)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .timeout(Duration::from_secs(60));
    match authority {
        Some(authority) => builder.tls_certs_only([authority]),
        None => builder,
    }
}

/// Sends a request that must be answered.
pub(crate) async fn send(request: RequestBuilder) -> Reply {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = response.bytes().await.expect("a whole body").to_vec();
    Reply {
        status,
        headers,
        body,
    }
}

impl Client {
    /// Runs a command to its end and gives its view.
    pub(crate) async fn run(&self, devbox: &str, command: &str) -> Value {
        let id = format!("{:?}", std::time::Instant::now());
        let body = json!({ "command": command, "command_id": id });
        self.post(
            &format!("/v1/devboxes/{devbox}/execute?last_n=100000"),
            body,
        )
        .await
        .json(200)
    }

    /// Starts a command and gives the path of its execution.
    pub(crate) async fn spawn(&self, devbox: &str, request: Value) -> String {
        let path = format!("/v1/devboxes/{devbox}/execute_async");
        let started = self.post(&path, request).await.json(200);
        let id = started["execution_id"].as_str().expect("an id");
        format!("/v1/devboxes/{devbox}/executions/{id}")
    }

    /// Waits until the execution at a path has completed and gives its view.
    pub(crate) async fn completed(&self, execution: &str) -> Value {
        let wait = json!({ "statuses": ["completed"] });
        self.post(&format!("{execution}/wait_for_status?last_n=100000"), wait)
            .await
            .json(200)
    }

    /// Waits until a Devbox shows one of these statuses and gives its view.
    pub(crate) async fn wait(&self, devbox: &str, statuses: &[&str]) -> Value {
        let wait = json!({ "statuses": statuses, "timeout_seconds": 30 });
        self.post(&format!("/v1/devboxes/{devbox}/wait_for_status"), wait)
            .await
            .json(200)
    }

    /// The body of an event stream as far as it came, and whether it ended in
    /// the orderly way.
    pub(crate) async fn stream(&self, path: &str) -> (String, bool) {
        let request = self
            .request(Method::GET, path)
            .header("accept", "text/event-stream");
        let mut response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return (String::from_utf8_lossy(&body).into_owned(), true),
                Err(_) => return (String::from_utf8_lossy(&body).into_owned(), false),
            }
        }
    }
}

/// The data of every whole event of a well-formed stream.
pub(crate) fn events(body: &str) -> Vec<Value> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
    lines
        .map(|data| serde_json::from_str(data).expect("an event is JSON"))
        .collect()
}

/// The text that the events of a stream carry.
pub(crate) fn text(body: &str) -> String {
    events(body)
        .iter()
        .filter_map(|event| event["output"].as_str())
        .collect()
}
