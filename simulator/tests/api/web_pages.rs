//! What a browser sends for other pages is refused.

use reqwest::Method;
use serde_json::json;

use crate::support::{Client, send};

#[tokio::test]
async fn a_page_of_another_origin_can_neither_control_the_simulator_nor_run_commands() {
    let client = Client::start();
    let own = client.simulator.url().to_owned();
    let host = own.trim_start_matches("http://").to_owned();
    let status = async |path: &str, host: &str, origin: &str| {
        let request = client
            .request(Method::POST, path)
            .header("host", host)
            .header("origin", origin)
            .json(&json!({}));
        send(request).await.status
    };
    for path in ["/_simulator/settings", "/v1/devboxes"] {
        assert_eq!(status(path, &host, "https://example.com").await, 403);
        assert_eq!(status(path, &host, "null").await, 403);
        // A name that its owner made to point at this machine.
        let rebound = "rebound.example:80";
        assert_eq!(
            status(path, rebound, "http://rebound.example:80").await,
            403
        );
        assert_eq!(status(path, &host, &own).await, 200);
    }
}
