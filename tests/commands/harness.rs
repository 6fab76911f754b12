//! A simulator, a connection and one running Devbox for each test.

use std::sync::Arc;
use std::time::Duration;

use beachside_runloop::adapter::records::{
    CreateSandboxRequest, ExecRecord, ExecRequest, Markers, Program, ReadFileRequest, Target,
    WaitForSandboxRequest, WriteFileRequest,
};
use beachside_runloop::adapter::{Call, Connection};
use beachside_runloop::config::Config;
use beachside_runloop::error::{Error, Result};
use bytes::Bytes;
use runloop_simulator::{Options, Settings, Simulator};
use serde_json::{Value, json};

const KEY: &str = "ak_test_0123456789";

/// A Devbox to work in, and what the simulator saw of it.
#[derive(Clone)]
pub(crate) struct Guest {
    simulator: Arc<Simulator>,
    http: reqwest::Client,
    pub(crate) connection: Connection,
    pub(crate) sandbox_id: String,
}

impl Guest {
    pub(crate) async fn start() -> Self {
        Self::start_set(json!({})).await
    }

    /// A guest of a simulator with these switches.
    pub(crate) async fn start_set(settings: Value) -> Self {
        // The first to come sets it for the whole process.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let settings = Settings::default()
            .patched(&settings)
            .expect("known settings");
        let options = Options {
            settings,
            panic_on_unexpected: true,
            ..Options::default()
        };
        let simulator = Simulator::start(options).expect("the simulator starts");
        let credentials = json!({ "apiKey": KEY, "baseUrl": simulator.url() });
        let config = Config::parse(&credentials, &json!({ "network": "internet" })).unwrap();
        let call = Call::default();
        let connection = Connection::connect(config, &call).await.unwrap();
        let create = CreateSandboxRequest {
            markers: Markers {
                operation: "operation".into(),
                submission: "submission".into(),
            },
            env: None,
            lifecycle: None,
            network: None,
            snapshot_id: None,
        };
        let sandbox = connection.create_sandbox(&create, &call).await.unwrap();
        let wait = WaitForSandboxRequest {
            sandbox_id: sandbox.id.clone(),
            state: Target::Running,
        };
        connection.wait_for_sandbox(&wait, &call).await.unwrap();
        let guest = Self {
            simulator: Arc::new(simulator),
            http: reqwest::Client::new(),
            connection,
            sandbox_id: sandbox.id,
        };
        guest.forget().await;
        guest
    }

    pub(crate) fn argv(&self, words: &[&str]) -> ExecRequest {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        ExecRequest::new(&self.sandbox_id, Program::Arguments(words))
    }

    pub(crate) fn text(&self, text: &str) -> ExecRequest {
        ExecRequest::new(&self.sandbox_id, Program::ShellText(text.to_owned()))
    }

    pub(crate) async fn try_exec(&self, request: &ExecRequest) -> Result<ExecRecord> {
        self.connection.exec(request, &Call::default()).await
    }

    pub(crate) async fn exec(&self, request: &ExecRequest) -> ExecRecord {
        self.try_exec(request).await.unwrap()
    }

    pub(crate) async fn fail(&self, request: &ExecRequest) -> Error {
        self.try_exec(request).await.unwrap_err()
    }

    /// What shell text prints.
    pub(crate) async fn shell(&self, text: &str) -> String {
        let record = self.exec(&self.text(text)).await;
        assert_eq!(record.exit_code, 0, "{:?}", record.stderr);
        String::from_utf8_lossy(&record.stdout).into_owned()
    }

    pub(crate) async fn read(&self, path: &str) -> Result<Bytes> {
        let request = ReadFileRequest {
            sandbox_id: self.sandbox_id.clone(),
            path: path.to_owned(),
        };
        self.connection.read_file(&request, &Call::default()).await
    }

    pub(crate) async fn write(&self, path: &str, content: impl Into<Bytes>) -> Result<()> {
        let request = WriteFileRequest {
            sandbox_id: self.sandbox_id.clone(),
            path: path.to_owned(),
            content: content.into(),
            mode: None,
        };
        self.connection.write_file(&request, &Call::default()).await
    }

    pub(crate) async fn control(&self, method: &str, route: &str, body: Value) -> Value {
        let url = format!("{}/_simulator{route}", self.simulator.url());
        let request = match method {
            "GET" => self.http.get(url),
            "DELETE" => self.http.delete(url),
            _ => json_body(self.http.post(url), &body),
        };
        let answer = request.send().await.unwrap().error_for_status().unwrap();
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    pub(crate) async fn fault(&self, rule: Value) {
        self.control("POST", "/faults", rule).await;
    }

    /// The last parts of the paths of the requests so far, in order.
    pub(crate) async fn requests(&self) -> Vec<String> {
        let journal = self.control("GET", "/journal", Value::Null).await;
        let entries = journal["entries"].as_array().unwrap();
        let last = |entry: &Value| {
            let path = entry["path"].as_str().unwrap();
            path.rsplit('/').next().unwrap().to_owned()
        };
        entries.iter().map(last).collect()
    }

    pub(crate) async fn forget(&self) {
        self.control("DELETE", "/journal", Value::Null).await;
    }

    /// Runs `command` past the adapter, through the service's own shell.
    pub(crate) async fn raw(&self, command: &str) -> String {
        let (base, id) = (self.simulator.url(), &self.sandbox_id);
        let url = format!("{base}/v1/devboxes/{id}/execute?last_n=1000");
        let body = json!({ "command": command, "command_id": uuid::Uuid::now_v7().to_string() });
        let request = json_body(self.http.post(url), &body).bearer_auth(KEY);
        let answer = request.send().await.unwrap().bytes().await.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        answer["stdout"].as_str().unwrap_or_default().to_owned()
    }

    /// Everything of ours in the guest: paths in `/tmp`, and processes with `pattern` in their
    /// command line.
    pub(crate) async fn litter(&self, pattern: &str) -> Vec<String> {
        let script = format!(
            "ls -d /tmp/beachside-* 2>/dev/null; for p in /proc/[0-9]*; do \
             c=$(tr '\\0' ' ' <$p/cmdline 2>/dev/null); case $c in *\"for p in /proc\"*) ;; \
             *{pattern}*) echo \"$p $c\" ;; esac; done"
        );
        let own = |line: &&str| !line.is_empty();
        self.raw(&script)
            .await
            .lines()
            .filter(own)
            .map(str::to_owned)
            .collect()
    }

    /// Waits until nothing of ours is left, and fails with what is.
    pub(crate) async fn assert_clean(&self, pattern: &str) {
        for _ in 0..100 {
            if self.litter(pattern).await.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("left in the guest: {:#?}", self.litter(pattern).await);
    }
}

fn json_body(request: reqwest::RequestBuilder, body: &Value) -> reqwest::RequestBuilder {
    request
        .header("content-type", "application/json")
        .body(body.to_string())
}
