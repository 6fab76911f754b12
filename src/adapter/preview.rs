//! The address of a port in a Devbox, through the tunnel made with it.

use std::collections::BTreeMap;

use super::records::{PreviewRecord, SandboxState};
use super::suspend::not_running;
use super::{Call, Connection, sandbox_view};
use crate::config::{Access, TunnelForm};
use crate::error::{Code, Error, Result};

/// What a request to a protected preview must carry (certain: the official TypeScript client).
const HEADER: &str = "X-Runloop-Tunnel-Authorization";

const OPERATION: &str = "preview_open";

impl Connection {
    /// How to open this port. Reads the Devbox, because a tunnel's key may
    /// change: whether it survives a suspend is not certain.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a port outside 1 to 65535; `NOT_RUNNING`;
    /// `NOT_FOUND` with the resource `preview` where the Devbox has no tunnel;
    /// `PROTOCOL` where its tunnel is open although previews are protected.
    pub async fn preview(&self, sandbox_id: &str, port: u32, call: &Call) -> Result<PreviewRecord> {
        let port = u16::try_from(port)
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| {
                Error::invalid_argument(format!("port must be from 1 to 65535, not {port}"))
                    .during(OPERATION)
            })?;
        let view = self.view(OPERATION, sandbox_id, call).await?;
        let status = view.status.as_deref().unwrap_or_default();
        match sandbox_view::state(status) {
            SandboxState::Running | SandboxState::Starting | SandboxState::Unknown => {}
            _ => return Err(not_running(sandbox_id, status).during(OPERATION)),
        }
        let tunnel = view.tunnel.unwrap_or_default();
        let Some(key) = tunnel.tunnel_key.filter(|key| is_label(key)) else {
            let message =
                format!("sandbox {sandbox_id:?} has no tunnel; one is made with a sandbox only");
            return Err(Error::new(Code::NotFound, message)
                .during(OPERATION)
                .with_resource("preview", sandbox_id));
        };
        let url = url(self.config().credentials.tunnel(), port, &key);
        if let Some(token) = tunnel.auth_token {
            self.secrets().learn(&token);
            let headers = BTreeMap::from([(HEADER, format!("Bearer {token}"))]);
            return Ok(PreviewRecord {
                url,
                access: "protected",
                headers,
            });
        }
        // Nothing to send: the tunnel is open, or its token was withheld.
        if self.config().preview == Access::Public
            && tunnel.auth_mode.as_deref() != Some("authenticated")
        {
            return Ok(PreviewRecord {
                url,
                access: "public",
                headers: BTreeMap::new(),
            });
        }
        let message = format!(
            "the tunnel of sandbox {sandbox_id:?} is {} and comes without a token; \
             its previews cannot be called protected",
            tunnel.auth_mode.as_deref().unwrap_or("of an unknown kind"),
        );
        Err(Error::protocol(message)
            .during(OPERATION)
            .with_resource("sandbox", sandbox_id))
    }
}

fn url(form: &TunnelForm, port: u16, key: &str) -> String {
    let TunnelForm { scheme, domain } = form;
    format!("{scheme}://{port}-{key}.{domain}")
}

/// Whether it can stand in a host name: a key with a slash would lead to another host.
fn is_label(key: &str) -> bool {
    !key.is_empty()
        && key.len() <= 63
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{connect, connect_with, devbox};
    use super::*;
    use crate::transport::scripted::Step;

    fn with_tunnel(tunnel: Value) -> Step {
        let view = json!({ "id": "dbx_1", "status": "running", "tunnel": tunnel });
        Step::json(200, &view.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn r11_a_protected_preview_carries_the_header_and_no_token_elsewhere() {
        let tunnel = json!({
            "tunnel_key": "abc", "auth_mode": "authenticated", "auth_token": "tok_0123456789"
        });
        let refusal = Step::json(400, r#"{"message":"bad tok_0123456789"}"#);
        let (connection, _) = connect([with_tunnel(tunnel), refusal]).await;
        let preview = connection
            .preview("dbx_1", 3000, &Call::default())
            .await
            .unwrap();
        assert_eq!(preview.url, "http://3000-abc.tunnel.localhost:1");
        assert_eq!(preview.access, "protected");
        assert_eq!(preview.headers[HEADER], "Bearer tok_0123456789");
        assert!(!format!("{preview:?}").contains("tok_"));
        let error = connection
            .inspect_sandbox("dbx_1", &Call::default())
            .await
            .unwrap_err();
        assert!(error.message().ends_with("bad [redacted]"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn r11_a_public_preview_needs_no_header() {
        let tunnel = json!({ "tunnel_key": "abc", "auth_mode": "open" });
        let config = json!({ "preview": { "access": "public" } });
        let (connection, _) = connect_with(config, [with_tunnel(tunnel)]).await;
        let preview = connection
            .preview("dbx_1", 1, &Call::default())
            .await
            .unwrap();
        assert_eq!((preview.access, preview.headers.len()), ("public", 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_that_is_missing_open_or_oddly_named_is_an_error() {
        for (tunnel, code) in [
            (Value::Null, Code::NotFound),
            (
                json!({ "tunnel_key": "evil.example/" , "auth_token": "t" }),
                Code::NotFound,
            ),
            (
                json!({ "tunnel_key": "abc", "auth_mode": "open" }),
                Code::Protocol,
            ),
            (
                json!({ "tunnel_key": "abc", "auth_mode": "authenticated" }),
                Code::Protocol,
            ),
            (json!({ "tunnel_key": "abc" }), Code::Protocol),
        ] {
            let (connection, _) = connect([with_tunnel(tunnel.clone())]).await;
            let error = connection
                .preview("dbx_1", 3000, &Call::default())
                .await
                .unwrap_err();
            assert_eq!(error.code(), code, "{tunnel}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wrong_port_sends_nothing_and_a_suspended_box_says_so() {
        let (connection, script) = connect([devbox("suspended")]).await;
        for port in [0, 65_536, u32::MAX] {
            let error = connection
                .preview("dbx_1", port, &Call::default())
                .await
                .unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
        }
        assert!(script.seen().is_empty());
        let error = connection
            .preview("dbx_1", 80, &Call::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::NotRunning);
    }

    #[test]
    fn r11_the_service_is_addressed_by_port_and_key() {
        let form = TunnelForm {
            scheme: "https",
            domain: "tunnel.runloop.ai".into(),
        };
        assert_eq!(
            url(&form, 8080, "abc"),
            "https://8080-abc.tunnel.runloop.ai"
        );
    }
}
