//! TLS, HTTP/1.1 and HTTP/2 on one port.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use runloop_simulator::{Certificate, Options, Simulator, TlsOptions};
use serde_json::{Value, json};

use crate::support::{Client, http, send};

const ME: &str = "/v1/accounts/me";

fn with_tls(tls: TlsOptions) -> Client {
    Client::start_with(Options {
        tls: Some(tls),
        ..Options::default()
    })
}

/// Version, encryption and number of the connection of every request.
async fn spoken(client: &Client) -> Vec<(String, bool, u64)> {
    let journal = client.get("/_simulator/journal").await.json(200);
    let spoken = |entry: &Value| {
        (
            entry["http_version"].as_str().unwrap().to_owned(),
            entry["tls"].as_bool().unwrap(),
            entry["connection"].as_u64().unwrap(),
        )
    };
    journal["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(spoken)
        .collect()
}

#[tokio::test]
async fn one_port_speaks_http_1_and_2_with_and_without_tls() {
    let client = with_tls(TlsOptions::default());
    let simulator = &client.simulator;
    assert!(simulator.url().starts_with("https://127.0.0.1:"));
    client.get(ME).await.json(200);
    client.get(ME).await.json(200);
    let older = client.speaking(http(simulator).http1_only());
    older.get(ME).await.json(200);
    for plain in [http(simulator), http(simulator).http2_prior_knowledge()] {
        let request = plain
            .build()
            .unwrap()
            .get(format!("{}{ME}", simulator.plain_url()));
        send(request.bearer_auth(crate::support::KEY))
            .await
            .json(200);
    }
    let spoken = spoken(&client).await;
    let kinds: Vec<_> = spoken
        .iter()
        .map(|(version, tls, _)| (version.as_str(), *tls))
        .collect();
    let expected = [
        ("2", true),
        ("2", true),
        ("1.1", true),
        ("1.1", false),
        ("2", false),
    ];
    assert_eq!(kinds, expected);
    let mut connections: Vec<u64> = spoken
        .iter()
        .map(|(_, _, connection)| *connection)
        .collect();
    assert_eq!(connections[0], connections[1]);
    connections.dedup();
    assert_eq!(connections.len(), 4);
}

#[tokio::test]
async fn a_server_of_http_1_only_is_spoken_to_so() {
    let client = with_tls(TlsOptions {
        http1_only: true,
        ..TlsOptions::default()
    });
    client.get(ME).await.json(200);
    assert_eq!(spoken(&client).await[0].0, "1.1");
}

#[tokio::test]
async fn without_tls_a_client_that_speaks_it_is_turned_away() {
    let client = Client::start();
    assert_eq!(
        (client.simulator.ca_pem(), client.simulator.ca_path()),
        (None, None)
    );
    let url = client.simulator.url().replace("http:", "https:");
    let refused = http(&client.simulator)
        .build()
        .unwrap()
        .get(url)
        .send()
        .await;
    assert!(refused.unwrap_err().is_connect());
    client.get(ME).await.json(200);
}

#[tokio::test]
async fn a_certificate_may_be_expired_or_of_another_host() {
    for (certificate, expected) in [
        (Certificate::Expired, "expired"),
        (Certificate::WrongName, "notvalidforname"),
    ] {
        let client = with_tls(TlsOptions {
            certificate,
            ..TlsOptions::default()
        });
        let error = client.request(Method::GET, ME).send().await.unwrap_err();
        let said = format!("{error:?}");
        assert!(said.to_lowercase().contains(expected), "{said}");
    }
}

#[test]
fn the_authority_is_in_a_file_that_goes_with_the_simulator_unless_a_directory_is_given() {
    let start = |dir: Option<&Path>| {
        let tls = Some(TlsOptions {
            dir: dir.map(Path::to_owned),
            ..TlsOptions::default()
        });
        let simulator = Simulator::start(Options {
            tls,
            ..Options::default()
        });
        simulator.unwrap()
    };
    let simulator = start(None);
    let path = simulator.ca_path().unwrap().to_owned();
    let pem = std::fs::read_to_string(&path).unwrap();
    assert_eq!(Some(pem.as_str()), simulator.ca_pem());
    assert!(!pem.contains("KEY"), "{pem}");
    drop(simulator);
    assert!(!path.exists() && !path.parent().unwrap().exists());

    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("made");
    drop(start(Some(&below)));
    assert!(below.join("ca.pem").exists());
}

#[tokio::test]
async fn files_of_many_windows_pass_both_ways_over_http_2() {
    let client = with_tls(TlsOptions::default());
    let devbox = client.running_devbox(json!({})).await;
    let file: Vec<u8> = (0..8_000_000_u32)
        .map(|index| (index % 251) as u8)
        .collect();
    let part = reqwest::multipart::Part::bytes(file.clone()).file_name("file");
    let form = reqwest::multipart::Form::new()
        .text("path", "big")
        .part("file", part);
    let path = format!("/v1/devboxes/{devbox}");
    let upload = client.request(Method::POST, &format!("{path}/upload_file"));
    send(upload.multipart(form)).await.json(200);
    let download = json!({ "path": "big" });
    let got = client
        .post(&format!("{path}/download_file"), download)
        .await;
    assert!(got.body == file, "{} bytes", got.body.len());
}

#[tokio::test]
async fn a_request_that_is_given_up_ends_while_its_connection_goes_on() {
    let client = with_tls(TlsOptions::default());
    let devbox = client.running_devbox(json!({})).await;
    let wait = client
        .request(
            Method::POST,
            &format!("/v1/devboxes/{devbox}/wait_for_status"),
        )
        .json(&json!({ "statuses": ["suspended"], "timeout_seconds": 30 }));
    let waited = wait.timeout(Duration::from_millis(300)).send().await;
    assert!(waited.unwrap_err().is_timeout());
    loop {
        let journal = client
            .get("/_simulator/journal?path=/v1/devboxes")
            .await
            .json(200);
        let entries = journal["entries"].as_array().unwrap();
        match entries.last().unwrap()["outcome"].as_str().unwrap() {
            "cut" => break,
            other => assert_eq!(other, "pending"),
        }
    }
    client.get(ME).await.json(200);
    let connections: Vec<u64> = spoken(&client)
        .await
        .into_iter()
        .map(|(_, _, id)| id)
        .collect();
    assert!(
        connections.iter().all(|id| *id == connections[0]),
        "{connections:?}"
    );
}
