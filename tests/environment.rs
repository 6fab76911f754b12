//! What the environment decides: proxies and certificates.
//!
//! Each case runs this very program again with its variables set, because a
//! process cannot change its own environment safely. The child is the test
//! [`child`].

#![expect(
    clippy::unwrap_used,
    reason = "a server that cannot start has to fail the test"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use beachside_runloop::message::Request;
use beachside_runloop::transport::{Http, Settings, Transport};
use http::HeaderValue;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;

const ADDRESS: &str = "BEACHSIDE_TEST_ADDRESS";

#[tokio::test]
#[ignore = "the other tests run it, each with an environment of its own"]
async fn child() {
    let base_url = std::env::var(ADDRESS).unwrap();
    let settings = Settings {
        is_loopback: base_url.contains("127.0.0.1") || base_url.contains("localhost"),
        base_url,
        authorization: HeaderValue::from_static("Bearer ak_0123456789abcdef"),
        connect_timeout: Duration::from_secs(5),
        silence_timeout: Duration::from_secs(5),
    };
    match Http::new(settings) {
        Err(error) => println!("outcome: {error}"),
        Ok(http) => match http.send(&Request::get("/v1/x".into())).await {
            Ok(response) => println!("outcome: {}", response.head.status),
            Err(failure) => println!("outcome: {failure:?}"),
        },
    }
}

/// Runs the child against this address and gives its outcome.
fn outcome(base_url: &str, environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["child", "--exact", "--ignored", "--nocapture"])
        .env(ADDRESS, base_url);
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    for name in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
        command.env_remove(name);
    }
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let found = text.lines().find_map(|line| line.split_once("outcome: "));
    let (_, outcome) = found.ok_or(&text).unwrap();
    outcome.to_owned()
}

/// A server that tells the first line of everything that reaches it, and answers `answer`.
fn server(answer: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, heard) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut line = String::new();
            let _ = reader.read_line(&mut line);
            let mut header = String::from("x");
            while !header.trim().is_empty() {
                header.clear();
                let _ = reader.read_line(&mut header);
            }
            let _ = reader.get_mut().write_all(answer.as_bytes());
            if tell.send(line.trim().to_owned()).is_err() {
                break;
            }
        }
    });
    (address, heard)
}

const REFUSED: &str = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

#[test]
fn k4_an_https_request_goes_through_the_configured_proxy() {
    for variable in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        let (proxy, heard) = server(REFUSED);
        let proxy = format!("http://user:pass-word@{proxy}");
        let outcome = outcome("https://api.runloop.invalid", &[(variable, &proxy)]);
        assert_eq!(
            heard.recv().unwrap(),
            "CONNECT api.runloop.invalid:443 HTTP/1.1"
        );
        // A proxy that refuses lets nothing through: a definite failure.
        assert!(outcome.contains("sent: No"), "{outcome}");
        assert!(!outcome.contains("pass-word"), "{outcome}");
    }
}

#[test]
fn k4_no_proxy_is_honoured() {
    let (proxy, heard) = server(REFUSED);
    let proxy = format!("http://{proxy}");
    let variables = [
        ("HTTPS_PROXY", proxy.as_str()),
        ("NO_PROXY", "runloop.invalid"),
    ];
    let outcome = outcome("https://api.runloop.invalid", &variables);
    assert!(outcome.contains("Connect"), "{outcome}");
    assert!(heard.try_recv().is_err());
}

#[test]
fn loopback_never_goes_through_a_proxy() {
    let (proxy, proxied) = server(REFUSED);
    let (address, heard) = server(FINE);
    let proxy = format!("http://{proxy}");
    let variables = [("HTTP_PROXY", proxy.as_str()), ("ALL_PROXY", &proxy)];
    assert_eq!(outcome(&format!("http://{address}"), &variables), "200");
    assert_eq!(heard.recv().unwrap(), "GET /v1/x HTTP/1.1");
    assert!(proxied.try_recv().is_err());
}

/// A TLS server for `localhost`, and the certificate of its authority as PEM.
fn tls_server() -> (String, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream.unwrap());
            // A handshake that fails has no request.
            if stream.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {
                let _ = stream.write_all(FINE.as_bytes());
            }
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (format!("https://localhost:{port}"), authority.pem())
}

#[test]
fn k4_node_extra_ca_certs_adds_an_authority() {
    let (url, pem) = tls_server();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, pem).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(outcome(&url, &[("NODE_EXTRA_CA_CERTS", file)]), "200");
    assert_eq!(outcome(&url, &[("SSL_CERT_FILE", file)]), "200");
    let unknown = outcome(&url, &[]);
    assert!(
        unknown.contains("Tls") && unknown.contains("certificate"),
        "{unknown}"
    );
}

#[test]
fn k4_an_unusable_file_is_named_and_an_irrelevant_folder_leaves_the_public_roots() {
    let (url, _) = tls_server();
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.pem");
    let missing = missing.to_str().unwrap();
    let outcome_of = |name, value| outcome(&url, &[(name, value)]);
    let unusable = outcome_of("NODE_EXTRA_CA_CERTS", missing);
    assert!(
        unusable.contains("NODE_EXTRA_CA_CERTS") && unusable.contains("none.pem"),
        "{unusable}"
    );
    // Still a client, which then rightly does not know this server.
    let irrelevant = outcome_of("SSL_CERT_DIR", folder.path().to_str().unwrap());
    assert!(irrelevant.contains("Tls"), "{irrelevant}");
}
