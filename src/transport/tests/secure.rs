//! TLS: who is trusted.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::settings;
use crate::message::{Body, Request, Sent, What};
use crate::transport::{Http, Transport, tls};

/// A certificate authority of one test.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A client that trusts it and nobody else.
    pub(super) fn client_config(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        tls::trusting(roots).unwrap()
    }
}

/// A server with a certificate for these names.
pub(super) fn server_config(authority: &Authority, names: &[&str]) -> ServerConfig {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(names).unwrap();
    let certificate = params.signed_by(&key, &authority.0).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

/// A server whose certificate is for `localhost`, and that speaks HTTP/1.1.
async fn server(authority: &Authority) -> String {
    let mut config = server_config(authority, &["localhost"]);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                    .await;
                let _ = stream.shutdown().await;
            });
        }
    });
    format!("https://localhost:{port}")
}

#[tokio::test]
async fn k4_a_private_authority_is_trusted_when_it_is_given() {
    let authority = Authority::new();
    let url = server(&authority).await;
    let http = Http::over(settings(url), authority.client_config()).unwrap();
    let response = http.send(&Request::get("/v1/x".into())).await.unwrap();
    assert_eq!(response.body, "{}");
}

#[tokio::test]
async fn k4_an_unknown_authority_is_a_definite_failure_that_names_the_certificate() {
    let url = server(&Authority::new()).await;
    for http in [
        Http::new(settings(url.clone())).unwrap(),
        Http::over(settings(url.clone()), Authority::new().client_config()).unwrap(),
    ] {
        let request = Request::mutation("/v1/x".into(), Body::Empty);
        let failure = http.send(&request).await.unwrap_err();
        assert_eq!((failure.sent, failure.what), (Sent::No, What::Tls));
        assert!(failure.detail.contains("certificate"), "{}", failure.detail);
    }
}

#[tokio::test]
async fn k4_a_certificate_of_another_host_is_refused() {
    let authority = Authority::new();
    let url = server(&authority).await.replace("localhost", "127.0.0.1");
    let http = Http::over(settings(url), authority.client_config()).unwrap();
    let failure = http.send(&Request::get("/v1/x".into())).await.unwrap_err();
    assert_eq!(failure.what, What::Tls);
}
