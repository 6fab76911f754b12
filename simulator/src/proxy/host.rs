//! The host name of a tunnel.

/// What `{port}-{key}.tunnel.{domain}` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TunnelHost {
    pub(super) port: u16,
    pub(super) key: String,
}

impl TunnelHost {
    /// Reads a `Host` header; `None` for any other host. Host names do not
    /// tell upper case from lower case.
    pub(super) fn parse(host: &str) -> Option<Self> {
        let (label, domain) = host.split_once('.')?;
        let (first, _) = domain.split_once('.')?;
        let (port, key) = label.split_once('-')?;
        let is_tunnel = first.eq_ignore_ascii_case("tunnel") && !key.is_empty();
        let port = port.parse().ok().filter(|port| *port != 0)?;
        is_tunnel.then(|| Self {
            port,
            key: key.to_ascii_lowercase(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::TunnelHost;

    #[test]
    fn a_tunnel_host_is_a_port_a_key_and_the_word_tunnel() {
        let parsed = |host: &str| TunnelHost::parse(host).map(|host| (host.port, host.key));
        assert_eq!(
            parsed("3000-Abc.tunnel.localhost:8080"),
            Some((3000, "abc".into()))
        );
        assert_eq!(parsed("13-a-b.TUNNEL.runloop.ai"), Some((13, "a-b".into())));
        for other in [
            "127.0.0.1:3000",
            "localhost",
            "tunnel.localhost",
            "0-abc.tunnel.localhost",
            "99999-abc.tunnel.localhost",
            "3000-.tunnel.localhost",
            "3000-abc.funnel.localhost",
            "3000-abc.tunnel",
            "x-abc.tunnel.localhost",
        ] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }
}
