//! TLS with a certificate authority that is made at the start.
//!
//! Owns the keys, which never leave memory; only the authority's certificate
//! is written to a file, for clients to trust. `Tls::accept` is all that a
//! server needs: a byte stream in, an encrypted one and its protocol out.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What the simulator is reached as; `*.tunnel.localhost` are the tunnels.
const NAMES: [&str; 6] = [
    "localhost",
    "*.localhost",
    "*.tunnel.localhost",
    "127.0.0.1",
    "::1",
    "simulator.test",
];

/// How long a client may take over its part of the handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// Which certificate the simulator shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Certificate {
    /// For `localhost`, `*.localhost`, `*.tunnel.localhost`, `127.0.0.1`, `::1`
    /// and `simulator.test`, which only a proxy can lead anywhere.
    #[default]
    Valid,
    /// For the same names, but its time is over.
    Expired,
    /// For `wrong.invalid`.
    WrongName,
}

/// How the simulator speaks TLS. Its port then takes plain HTTP as well.
#[derive(Debug, Clone, Default)]
pub struct TlsOptions {
    /// Where the authority's certificate is written, as `ca.pem`; a directory
    /// that goes away with the simulator if absent.
    pub dir: Option<PathBuf>,
    /// The certificate to show.
    pub certificate: Certificate,
    /// Offer HTTP/1.1 only.
    pub http1_only: bool,
}

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// A certificate authority and a server that shows its certificate.
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    ca_pem: String,
    ca_path: PathBuf,
    /// Removed with this value.
    _dir: Option<TempDir>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("ca_path", &self.ca_path)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Makes an authority, a certificate and the authority's file.
    pub(crate) fn new(options: &TlsOptions) -> io::Result<Self> {
        let authority = authority().map_err(io::Error::other)?;
        let config = config(&authority, options).map_err(io::Error::other)?;
        let temporary = match &options.dir {
            Some(dir) => {
                std::fs::create_dir_all(dir)?;
                None
            }
            None => Some(
                tempfile::Builder::new()
                    .prefix("runloop-simulator-tls-")
                    .tempdir()?,
            ),
        };
        let dir = temporary
            .as_ref()
            .map(TempDir::path)
            .or(options.dir.as_deref());
        let ca_path = std::path::absolute(dir.unwrap_or(Path::new(".")).join("ca.pem"))?;
        let ca_pem = authority.pem();
        std::fs::write(&ca_path, &ca_pem)?;
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            ca_pem,
            ca_path,
            _dir: temporary,
        })
    }

    /// The authority's certificate.
    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The absolute path of the file that holds it.
    pub(crate) fn ca_path(&self) -> &Path {
        &self.ca_path
    }

    /// Shakes hands as the server.
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<(TlsStream<S>, Protocol)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let stream = tokio::time::timeout(HANDSHAKE_LIMIT, self.acceptor.accept(stream)).await??;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok((stream, protocol))
    }
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let name = "Runloop simulator authority";
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn config(
    authority: &CertifiedIssuer<'static, KeyPair>,
    options: &TlsOptions,
) -> Result<ServerConfig, Box<dyn std::error::Error + Send + Sync>> {
    let names = match options.certificate {
        Certificate::WrongName => vec!["wrong.invalid".to_owned()],
        Certificate::Valid | Certificate::Expired => NAMES.map(str::to_owned).to_vec(),
    };
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, "Runloop simulator");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    if options.certificate == Certificate::Expired {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    }
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if !options.http1_only {
        config.alpn_protocols.insert(0, b"h2".to_vec());
    }
    Ok(config)
}
