//! Which certificates are trusted.
//!
//! The system's store (or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name), plus
//! the file of `NODE_EXTRA_CA_CERTS`, as Node itself does. Where that gives
//! nothing, a minimal image without certificates for one, Mozilla's list that
//! is compiled in.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::{Error, Result};

/// The configuration for every connection of a client; clones share their roots and sessions.
pub(super) fn client_config() -> Result<ClientConfig> {
    let system = rustls_native_certs::load_native_certs().certs;
    trusting(roots(system, std::env::var_os("NODE_EXTRA_CA_CERTS"))?)
}

/// The configuration that trusts these.
pub(super) fn trusting(roots: RootCertStore) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal(format!("TLS could not be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn roots(system: Vec<CertificateDer<'static>>, extra: Option<OsString>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system);
    if roots.is_empty() {
        let bundled = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned();
        roots.add_parsable_certificates(bundled);
    }
    if let Some(path) = extra.filter(|path| !path.is_empty()) {
        let (added, _) = roots.add_parsable_certificates(extra_certificates(Path::new(&path))?);
        if added == 0 {
            return Err(unusable(Path::new(&path), "it holds no certificate"));
        }
    }
    Ok(roots)
}

fn extra_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let unreadable = |error: rustls::pki_types::pem::Error| unusable(path, &error.to_string());
    CertificateDer::pem_file_iter(path)
        .map_err(unreadable)?
        .collect::<std::result::Result<_, _>>()
        .map_err(unreadable)
}

fn unusable(path: &Path, reason: &str) -> Error {
    Error::invalid_argument(format!(
        "NODE_EXTRA_CA_CERTS names {path:?}, which cannot be used: {reason}; \
         name a readable PEM file or unset the variable"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn k4_without_a_system_store_the_bundled_roots_are_used() {
        let store = roots(Vec::new(), None).unwrap();
        assert!(store.len() > 50, "{}", store.len());
    }

    #[test]
    fn k4_an_unreadable_or_empty_extra_file_is_named() {
        let directory = std::env::temp_dir();
        for path in [
            directory.join("beachside-no-such-file.pem"),
            "/dev/null".into(),
        ] {
            let error = roots(Vec::new(), Some(path.clone().into())).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains("NODE_EXTRA_CA_CERTS"), "{error}");
            assert!(error.message().contains(path.to_str().unwrap()), "{error}");
        }
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        assert!(roots(Vec::new(), Some(OsString::new())).is_ok());
    }
}
