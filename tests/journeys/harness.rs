//! A simulator, connections to it, its faults and its journal.

use std::sync::atomic::{AtomicU64, Ordering};

use beachside_runloop::adapter::records::{
    CreateSandboxRequest, Markers, SandboxRecord, Target, WaitForSandboxRequest,
};
use beachside_runloop::adapter::{Call, Connection};
use beachside_runloop::config::Config;
use beachside_runloop::error::Result;
use beachside_runloop::message::{Body, Request};
use beachside_runloop::transport::{Http, Settings as HttpSettings, Transport};
use http::HeaderValue;
use runloop_simulator::{Options, Settings, Simulator};
use serde_json::{Value, json};

/// A simulated service for one journey. Fails it where a request met no route.
pub(crate) struct Service {
    simulator: Simulator,
    control: Http,
}

impl Service {
    pub(crate) fn start() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let options = Options {
            settings,
            panic_on_unexpected: true,
            ..Options::default()
        };
        let simulator = Simulator::start(options).unwrap();
        let timeout = std::time::Duration::from_secs(10);
        let control = Http::new(HttpSettings {
            base_url: simulator.url().to_owned(),
            is_loopback: true,
            authorization: HeaderValue::from_static("Bearer none"),
            connect_timeout: timeout,
            silence_timeout: timeout,
        });
        Self {
            simulator,
            control: control.unwrap(),
        }
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.connect_with(json!({})).await
    }

    pub(crate) async fn connect_with(&self, config: Value) -> Connection {
        let credentials =
            json!({ "apiKey": "ak_journey_0123456789", "baseUrl": self.simulator.url() });
        let config = Config::parse(&credentials, &config).unwrap();
        Connection::connect(config, &Call::default()).await.unwrap()
    }

    async fn ask(&self, request: Request) -> Value {
        let response = self.control.send(&request).await.unwrap();
        assert!(
            response.head.is_success(),
            "{}",
            String::from_utf8_lossy(&response.body)
        );
        serde_json::from_slice(&response.body).unwrap()
    }

    async fn tell(&self, path: &str, body: Value) {
        let body = Body::Json(body.to_string().into());
        self.ask(Request::mutation(path.to_owned(), body)).await;
    }

    /// Lets this happen to requests of this method and path, `count` times.
    pub(crate) async fn fault(&self, method: &str, path: &str, count: u64, action: Value) {
        let matcher = json!({ "method": method, "path": path, "count": count });
        self.tell(
            "/_simulator/faults",
            json!({ "match": matcher, "action": action }),
        )
        .await;
    }

    /// Lets a box play this script of states.
    pub(crate) async fn script(&self, sandbox_id: &str, script: Value) {
        self.tell(&format!("/_simulator/devboxes/{sandbox_id}/script"), script)
            .await;
    }

    /// Every request of a connection so far, without the one that connects.
    pub(crate) async fn journal(&self) -> Vec<Value> {
        let journal = self
            .ask(Request::get("/_simulator/journal".to_owned()))
            .await;
        let entries = journal["entries"].as_array().unwrap().iter();
        entries
            .filter(|entry| entry["path"] != "/v1/accounts/me")
            .cloned()
            .collect()
    }

    /// `METHOD path` of the journal.
    pub(crate) async fn lines(&self) -> Vec<String> {
        let line = |entry: &Value| {
            let text = |key: &str| entry[key].as_str().unwrap().to_owned();
            format!("{} {}", text("method"), text("path"))
        };
        self.journal().await.iter().map(line).collect()
    }

    /// How often this was requested.
    pub(crate) async fn count(&self, line: &str) -> usize {
        self.lines()
            .await
            .iter()
            .filter(|sent| *sent == line)
            .count()
    }

    /// The statuses of all boxes that exist.
    pub(crate) async fn boxes(&self) -> Vec<Value> {
        let found = self
            .ask(Request::get("/_simulator/devboxes".to_owned()))
            .await;
        found["devboxes"]
            .as_array()
            .expect("the simulator lists its boxes")
            .clone()
    }
}

/// Fresh markers.
pub(crate) fn markers() -> Markers {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Markers {
        operation: format!("operation-{number}"),
        submission: format!("submission-{number}"),
    }
}

/// A create without options.
pub(crate) fn create() -> CreateSandboxRequest {
    CreateSandboxRequest {
        markers: markers(),
        env: None,
        lifecycle: None,
        network: None,
        snapshot_id: None,
    }
}

/// Waits for a state of a box.
pub(crate) async fn wait(
    connection: &Connection,
    id: &str,
    state: Target,
) -> Result<SandboxRecord> {
    let request = WaitForSandboxRequest {
        sandbox_id: id.to_owned(),
        state,
    };
    connection
        .wait_for_sandbox(&request, &Call::default())
        .await
}

/// Makes a box that runs.
pub(crate) async fn running(connection: &Connection) -> SandboxRecord {
    let made = connection
        .create_sandbox(&create(), &Call::default())
        .await
        .unwrap();
    wait(connection, &made.id, Target::Running).await.unwrap()
}
