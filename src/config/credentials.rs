//! The API key and where it may go.

use std::fmt;

use http::HeaderValue;
use serde_json::Value;

use super::base_url::{self, BaseUrl};
use super::fields::{CREDENTIALS, Fields};
use crate::error::{Error, Result};

/// `credentials`. `Debug` shows no key.
#[derive(Clone)]
pub struct Credentials {
    api_key: String,
    authorization: HeaderValue,
    base: BaseUrl,
    tunnel: TunnelForm,
}

/// How the address of a preview is made: `{scheme}://{port}-{key}.{domain}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunnelForm {
    /// `https`, and `http` for a simulator on this machine.
    pub scheme: &'static str,
    /// What follows `{port}-{key}.`, with a port where it has one.
    pub domain: String,
}

impl Credentials {
    /// Checks `credentials`; `environment` looks a variable up.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the field's name, never with its value.
    pub(super) fn parse(
        value: Option<&Value>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let fields = Fields::of("credentials", value, &CREDENTIALS)?;
        let api_key = fields.text("apiKey")?.ok_or_else(|| {
            Error::invalid_argument(
                "credentials.apiKey is missing; pass a key of the Runloop dashboard, \
                 usually process.env.RUNLOOP_API_KEY",
            )
        })?;
        let authorization = authorization(api_key)?;
        let base = match fields.text("baseUrl")? {
            Some(text) => base_url::parse(text, "credentials.baseUrl")?,
            None => match environment("RUNLOOP_BASE_URL").filter(|text| !text.is_empty()) {
                Some(text) => base_url::parse(&text, "the environment variable RUNLOOP_BASE_URL")?,
                None => base_url::parse(base_url::PUBLIC, "the public API")?,
            },
        };
        let tunnel = match fields.text("tunnelDomain")? {
            Some(domain) => TunnelForm {
                scheme: "https",
                domain: tunnel_domain(domain)?,
            },
            None => tunnel_of(&base),
        };
        Ok(Self {
            api_key: api_key.to_owned(),
            authorization,
            base,
            tunnel,
        })
    }

    /// The key, to keep it out of messages. Never shown.
    #[must_use]
    pub fn api_key(&self) -> &str {
        &self.api_key
    }

    /// The `Authorization` value, marked sensitive.
    #[must_use]
    pub fn authorization(&self) -> &HeaderValue {
        &self.authorization
    }

    /// The API's address without a trailing slash.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base.text
    }

    /// Whether the API is on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.base.is_loopback
    }

    /// How previews are addressed.
    #[must_use]
    pub fn tunnel(&self) -> &TunnelForm {
        &self.tunnel
    }
}

/// The official SDK derives it from the API's host alike (certain). A
/// simulator on this machine takes tunnels at its own port, under a name that
/// browsers resolve by themselves and Node does not: there a client connects
/// to the address of the API and sends the name as `Host`.
fn tunnel_of(base: &BaseUrl) -> TunnelForm {
    if base.is_loopback {
        let (scheme, default) = if base.text.starts_with("https:") {
            ("https", 443)
        } else {
            ("http", 80)
        };
        let port = base.port.unwrap_or(default);
        let domain = format!("tunnel.localhost:{port}");
        return TunnelForm { scheme, domain };
    }
    let domain = base.host.strip_prefix("api.").unwrap_or(&base.host);
    TunnelForm {
        scheme: "https",
        domain: format!("tunnel.{domain}"),
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("base_url", &self.base.text)
            .finish_non_exhaustive()
    }
}

fn authorization(api_key: &str) -> Result<HeaderValue> {
    let wrong = |why: &str| {
        Error::invalid_argument(format!(
            "credentials.apiKey {why}; pass the key as it was issued"
        ))
    };
    if api_key.is_empty() {
        return Err(wrong("is empty"));
    }
    if api_key.chars().any(char::is_whitespace) {
        return Err(wrong("holds white space"));
    }
    if !api_key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong("holds a character that no key has"));
    }
    if api_key.len() > 4096 {
        return Err(wrong("is longer than 4096 characters"));
    }
    let mut value = HeaderValue::try_from(format!("Bearer {api_key}"))
        .map_err(|_| wrong("cannot be sent in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn tunnel_domain(text: &str) -> Result<String> {
    let (host, port) = text
        .split_once(':')
        .map_or((text, None), |(host, port)| (host, Some(port)));
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let is_port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
    if host.split('.').all(label) && port.is_none_or(is_port) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Error::invalid_argument(
        "credentials.tunnelDomain must be a host name, with a port where needed, \
         for example tunnel.runloop.ai",
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::Code;

    const KEY: &str = "ak_0123456789abcdef";

    fn parse(value: &Value, base_url: Option<&str>) -> Result<Credentials> {
        Credentials::parse(Some(value), |name| {
            base_url
                .filter(|_| name == "RUNLOOP_BASE_URL")
                .map(str::to_owned)
        })
    }

    #[test]
    fn the_base_url_is_the_given_one_else_the_environment_else_the_public_api() {
        let base = |value, environment| parse(&value, environment).unwrap().base_url().to_owned();
        let given = json!({ "apiKey": KEY, "baseUrl": "http://127.0.0.1:4000/" });
        let plain = || json!({ "apiKey": KEY });
        assert_eq!(
            base(given, Some("https://x.example")),
            "http://127.0.0.1:4000"
        );
        assert_eq!(
            base(plain(), Some("https://x.example")),
            "https://x.example"
        );
        assert_eq!(base(plain(), Some("")), "https://api.runloop.ai");
        assert_eq!(base(plain(), None), "https://api.runloop.ai");
        let error = parse(&plain(), Some("http://x.example")).unwrap_err();
        assert!(error.message().contains("RUNLOOP_BASE_URL"), "{error}");
    }

    #[test]
    fn k6_a_missing_or_malformed_key_is_refused_without_being_shown() {
        for value in [json!({}), json!({ "apiKey": 7 }), json!({ "apiKey": null })] {
            let error = parse(&value, None).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains("credentials.apiKey"), "{error}");
        }
        let long = "k".repeat(5000);
        for key in [
            "",
            " ak_s3cr3t",
            "ak_s3cr3t\n",
            "ak s3cr3t",
            "ak_s3cr3t\u{0}",
            "ak_s3cr3té",
            &long,
        ] {
            let error = parse(&json!({ "apiKey": key }), None).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{key:?}");
            let shown = format!("{error} {error:?}");
            assert!(
                !shown.contains("s3cr3t") && !shown.contains("kkk"),
                "{shown}"
            );
        }
    }

    #[test]
    fn v17_debug_of_credentials_and_of_their_header_shows_no_key() {
        let credentials = parse(&json!({ "apiKey": KEY }), None).unwrap();
        let shown = format!("{credentials:?} {:?}", credentials.authorization());
        assert!(!shown.contains("0123"), "{shown}");
    }

    #[test]
    fn a_preview_is_addressed_below_the_api_host_less_its_api_label() {
        let form = |value| parse(&value, None).unwrap().tunnel().clone();
        let domain = |domain: &str| TunnelForm {
            scheme: "https",
            domain: domain.to_owned(),
        };
        let at = |base: &str| json!({ "apiKey": KEY, "baseUrl": base });
        assert_eq!(form(json!({ "apiKey": KEY })), domain("tunnel.runloop.ai"));
        assert_eq!(
            form(at("https://api.runloop.pro:8443/x")),
            domain("tunnel.runloop.pro")
        );
        assert_eq!(
            form(at("https://gate.example")),
            domain("tunnel.gate.example")
        );
        assert_eq!(
            form(at("http://127.0.0.1:4000/")),
            TunnelForm {
                scheme: "http",
                ..domain("tunnel.localhost:4000")
            }
        );
        assert_eq!(
            form(at("https://localhost")),
            domain("tunnel.localhost:443")
        );
        let given = json!({ "apiKey": KEY, "tunnelDomain": "Tunnel.X.example:8443" });
        assert_eq!(form(given), domain("tunnel.x.example:8443"));
    }

    #[test]
    fn a_tunnel_domain_that_is_no_host_is_refused() {
        for wrong in [
            "",
            "https://x.example",
            "x.example/",
            "x..y",
            "x:0",
            "x:99999",
            "x y",
            "x:",
        ] {
            let error = parse(&json!({ "apiKey": KEY, "tunnelDomain": wrong }), None).unwrap_err();
            assert!(
                error.message().contains("credentials.tunnelDomain"),
                "{wrong}: {error}"
            );
        }
    }
}
