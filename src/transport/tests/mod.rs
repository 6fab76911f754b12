//! HTTP against small servers on loopback: what is sent, and what each fault becomes.

mod connections;
mod faults;
mod hostile;
mod raw;
mod requests;
mod secure;

use std::time::Duration;

use http::HeaderValue;

use super::{Http, Settings};

/// The key of every request here.
const KEY: &str = "ak_0123456789abcdef";

fn settings(base_url: String) -> Settings {
    let mut authorization = HeaderValue::from_str(&format!("Bearer {KEY}")).unwrap();
    authorization.set_sensitive(true);
    Settings {
        base_url,
        is_loopback: true,
        authorization,
        connect_timeout: Duration::from_secs(5),
        silence_timeout: Duration::from_secs(5),
    }
}

fn http(base_url: String) -> Http {
    Http::new(settings(base_url)).unwrap()
}
