//! Where the API is.

use url::{Host, Url};

use crate::error::{Error, Result};

/// The public API.
pub(super) const PUBLIC: &str = "https://api.runloop.ai";

/// A checked base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BaseUrl {
    /// Without a trailing slash.
    pub(super) text: String,
    pub(super) is_loopback: bool,
    /// Host without port, in lower case; an IPv6 address has its brackets.
    pub(super) host: String,
    pub(super) port: Option<u16>,
}

/// Checks a base URL: https, or http on this machine, without user, query or fragment.
pub(super) fn parse(text: &str, origin: &str) -> Result<BaseUrl> {
    let wrong = |why: &str| Error::invalid_argument(format!("{origin} {why}"));
    let url = Url::parse(text).map_err(|_| wrong("is not an absolute URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("must not hold a user name or password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("must not have a query or a fragment"));
    }
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return Err(wrong("has no host")),
    };
    match url.scheme() {
        "https" => {}
        "http" if is_loopback => {}
        "http" => {
            return Err(wrong(
                "must be https, because the API key would cross the network in the clear; \
                 http is allowed on loopback only",
            ));
        }
        _ => return Err(wrong("must be an https URL")),
    }
    Ok(BaseUrl {
        text: url.as_str().trim_end_matches('/').to_owned(),
        is_loopback,
        host: url.host_str().unwrap_or_default().to_owned(),
        port: url.port(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_anywhere_and_http_on_loopback_are_taken() {
        for (text, expected, is_loopback) in [
            (PUBLIC, "https://api.runloop.ai", false),
            ("https://api.runloop.pro/", "https://api.runloop.pro", false),
            (
                "https://gate.example:8443/runloop/",
                "https://gate.example:8443/runloop",
                false,
            ),
            ("http://127.0.0.1:4000", "http://127.0.0.1:4000", true),
            ("http://127.9.9.9", "http://127.9.9.9", true),
            ("http://[::1]:4000", "http://[::1]:4000", true),
            ("http://localhost:4000/", "http://localhost:4000", true),
        ] {
            let url = parse(text, "credentials.baseUrl").unwrap();
            assert_eq!(
                (url.text.as_str(), url.is_loopback),
                (expected, is_loopback),
                "{text}"
            );
        }
    }

    #[test]
    fn anything_else_is_refused_with_the_name_of_its_origin() {
        for text in [
            "",
            "api.runloop.ai",
            "http://api.runloop.ai",
            "http://127.0.0.1.evil.example",
            "http://10.0.0.1",
            "ftp://127.0.0.1",
            "https://user:s3cr3t@api.runloop.ai",
            "https://api.runloop.ai/?key=1",
            "https://api.runloop.ai/#x",
        ] {
            let error = parse(text, "RUNLOOP_BASE_URL").unwrap_err();
            assert!(
                error.message().starts_with("RUNLOOP_BASE_URL "),
                "{text}: {error}"
            );
            assert!(!error.message().contains("s3cr3t"), "{error}");
        }
    }
}
