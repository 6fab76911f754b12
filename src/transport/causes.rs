//! Why there is no connection, and what a person can do about it. Pure.
//!
//! What a certificate lacks is told by type. Name servers and proxies are told
//! by hyper's words, because those errors are not public; where the words
//! change, the advice is left out and the words remain.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// An error as a link of a chain.
pub(super) type Cause = dyn Error + 'static;

/// hyper's word for a proxy that did not carry the connection.
const TUNNEL: &str = "tunnel error";

/// What a proxy's 407 is called.
const PROXY_CREDENTIALS: &str = "proxy authorization required";

/// The causes, outermost first, the error itself included.
fn chain<'a>(error: &'a Cause) -> impl Iterator<Item = &'a Cause> {
    std::iter::successors(Some(error), |cause: &&'a Cause| (*cause).source())
}

/// What TLS failed with, if it did.
fn tls(error: &Cause) -> Option<&rustls::Error> {
    /// An I/O error passes over what it wraps when it is asked for its source.
    fn within(cause: &Cause) -> Option<&rustls::Error> {
        cause.downcast_ref().or_else(|| {
            let wrapped = cause.downcast_ref::<io::Error>()?.get_ref()?;
            within(wrapped)
        })
    }
    chain(error).find_map(within)
}

/// Whether the connection was there and could not be secured.
pub(super) fn is_tls(error: &Cause) -> bool {
    tls(error).is_some()
}

/// Whether a proxy wants a user name and password, or others.
pub(super) fn is_proxy_credentials(error: &Cause) -> bool {
    says(error, TUNNEL) && says(error, PROXY_CREDENTIALS)
}

fn says(error: &Cause, words: &str) -> bool {
    chain(error).any(|cause| cause.to_string().contains(words))
}

/// The causes in words, outermost first, each once. hyper's own outer words
/// say nothing that the sentence around them does not say.
pub(super) fn sentence(error: &Cause) -> String {
    let mut text = String::new();
    for cause in chain(error) {
        let words = cause.to_string();
        let is_empty_talk = words == "error sending request" || words == "client error (Connect)";
        if is_empty_talk && cause.source().is_some() || text.contains(&words) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&words);
    }
    text
}

/// What to do where no connection was made.
pub(super) fn advice(error: &Cause) -> Option<&'static str> {
    if let Some(error) = tls(error) {
        return of_tls(error);
    }
    if says(error, TUNNEL) {
        return Some(of_proxy(error));
    }
    if says(error, "dns error") {
        return Some(
            "the host name was not found; check the base URL and the name servers, and whether \
             this network needs a proxy (HTTPS_PROXY)",
        );
    }
    let is_refused = chain(error).any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    });
    is_refused.then_some("nothing listens there; check host and port of the base URL")
}

fn of_tls(error: &rustls::Error) -> Option<&'static str> {
    match error {
        rustls::Error::InvalidCertificate(problem) => Some(of_certificate(problem)),
        rustls::Error::InvalidMessage(_) => {
            Some("what answers there does not speak TLS; check scheme and port of the base URL")
        }
        _ => None,
    }
}

fn of_certificate(problem: &CertificateError) -> &'static str {
    match problem {
        CertificateError::UnknownIssuer => {
            "nobody who is trusted here signed the certificate; if it is your own service or a \
             proxy of your network, name the PEM file of its authority in NODE_EXTRA_CA_CERTS \
             before the program starts"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate has to be renewed there, unless the clock of this machine is wrong"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is for later; check the clock of this machine"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate belongs to another host; check the host of the base URL"
        }
        _ => "the certificate is not acceptable and has to be replaced there",
    }
}

fn of_proxy(error: &Cause) -> &'static str {
    if says(error, PROXY_CREDENTIALS) {
        "the proxy that HTTPS_PROXY or ALL_PROXY names wants a user name and password, or does not \
         take those in its URL; write http://user:password@host:port"
    } else if says(error, "unsupported scheme") {
        "the proxy that HTTPS_PROXY or ALL_PROXY names must have an http or https URL"
    } else if says(error, "failed to create underlying connection") {
        "the proxy that HTTPS_PROXY or ALL_PROXY names cannot be reached; correct its URL, or \
         list the API's host in NO_PROXY to go without"
    } else {
        "the proxy that HTTPS_PROXY or ALL_PROXY names refused to connect there; let it allow the \
         API's host, or list that host in NO_PROXY to go without"
    }
}
