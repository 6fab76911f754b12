//! Devboxes and commands over HTTP, many at once.

use std::time::Duration;

use serde_json::{Value, json};

/// A client that keeps as many connections as there are calls at once.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
}

impl Client {
    pub(crate) fn new(url: &str) -> Self {
        // Refused where another test of this process was quicker.
        rustls::crypto::ring::default_provider()
            .install_default()
            .unwrap_or_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .retry(reqwest::retry::never())
            .timeout(Duration::from_secs(120))
            .build()
            .expect("a client is made");
        Self {
            http,
            url: url.to_owned(),
        }
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let request = self
            .http
            .post(format!("{}{path}", self.url))
            .bearer_auth("ak_stress")
            .json(&body);
        let response = request.send().await.expect("an answer");
        let status = response.status();
        let text = response.text().await.expect("a whole body");
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).expect("an answer in JSON")
    }

    /// Asks for a Devbox; whether there was an answer.
    pub(crate) async fn try_create(&self) -> bool {
        let request = self
            .http
            .post(format!("{}/v1/devboxes/create_and_await_running", self.url))
            .bearer_auth("ak_stress")
            .json(&json!({}));
        request.send().await.is_ok()
    }

    /// Creates a Devbox and gives its id once it runs.
    pub(crate) async fn devbox(&self, request: Value) -> String {
        let created = self.post("/v1/devboxes", request).await;
        let id = created["id"].as_str().expect("an id").to_owned();
        let path = format!("/v1/devboxes/{id}/wait_for_status");
        let wanted = json!({ "statuses": ["running", "failure"], "timeout_seconds": 30 });
        let view = self.post(&path, wanted).await;
        assert_eq!(view["status"], "running", "{view}");
        id
    }

    /// Runs a command to its end.
    pub(crate) async fn execute(&self, devbox: &str, command: &str) -> Value {
        let started = self.start(devbox, command, 25.0).await;
        if started["status"] == "completed" {
            return started;
        }
        let id = started["execution_id"].as_str().expect("an id");
        let path = format!("/v1/devboxes/{devbox}/executions/{id}/wait_for_status");
        let wanted = json!({ "statuses": ["completed"], "timeout_seconds": 25 });
        self.post(&path, wanted).await
    }

    /// Starts a command and waits at most so long for its end.
    pub(crate) async fn start(&self, devbox: &str, command: &str, wait_seconds: f64) -> Value {
        let body = json!({
            "command": command,
            "command_id": uuid::Uuid::now_v7().to_string(),
            "optimistic_timeout": wait_seconds,
        });
        self.post(&format!("/v1/devboxes/{devbox}/execute"), body)
            .await
    }
}
