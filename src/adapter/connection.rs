//! A connection to one account.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::asked::Memory;
use super::network::PolicyChecks;
use super::processes::SeenIds;
use super::{Call, image};
use crate::api::answer::{accept, parse, unanswered};
use crate::api::{self, Context, Secrets};
use crate::config::Config;
use crate::error::{Code, Error, Result};
use crate::observe::{Observer, Trace};
use crate::transport::{Http, Observed, Retrying, Settings, Transport};
use crate::wire::accounts::Account;

/// A connection to one account of Runloop. Clones are the same connection.
#[derive(Clone)]
pub struct Connection(Arc<Core>);

struct Core {
    transport: Arc<dyn Transport>,
    config: Config,
    account: String,
    closed: CancellationToken,
    secrets: Secrets,
    policy_checks: PolicyChecks,
    resolved_image: image::Resolved,
    memory: Memory,
    seen_ids: SeenIds,
    observer: Option<Arc<dyn Observer>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("account", &self.0.account)
            .field("base_url", &self.0.config.credentials.base_url())
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Checks the key with `GET /v1/accounts/me` and takes the account's id as scope.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` or `PERMISSION_DENIED`; the latter also for an account
    /// whose status is anything but `ACCOUNT_STATUS_ENABLED`.
    pub async fn connect(config: Config, call: &Call) -> Result<Self> {
        Self::connect_observed(config, None, call).await
    }

    /// As [`connect`](Self::connect), and tells of every request while the observer is active.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_observed(
        config: Config,
        observer: Option<Arc<dyn Observer>>,
        call: &Call,
    ) -> Result<Self> {
        let credentials = &config.credentials;
        let transport = Http::new(Settings {
            base_url: credentials.base_url().to_owned(),
            is_loopback: credentials.is_loopback(),
            authorization: credentials.authorization().clone(),
            connect_timeout: config.timeouts.connect,
            silence_timeout: config.timeouts.request,
        })
        .map_err(|error| error.during("connect"))?;
        let transport = Arc::new(Retrying(Observed(transport)));
        Self::observed(transport, config, observer, call).await
    }

    /// As [`connect`](Self::connect), over another transport and unobserved.
    #[cfg(test)]
    pub(crate) async fn over(
        transport: Arc<dyn Transport>,
        config: Config,
        call: &Call,
    ) -> Result<Self> {
        Self::observed(transport, config, None, call).await
    }

    async fn observed(
        transport: Arc<dyn Transport>,
        config: Config,
        observer: Option<Arc<dyn Observer>>,
        call: &Call,
    ) -> Result<Self> {
        let mut request = api::accounts::me();
        request.trace = trace(observer.as_ref(), "connect", call);
        let secrets = Secrets::new(config.credentials.api_key());
        let context = Context::new("connect", &request, &secrets);
        let answer = tokio::select! {
            biased;
            () = call.cancel.cancelled() => {
                let error = Error::new(Code::Cancelled, "the caller's signal stopped the call");
                return Err(error.during("connect"));
            }
            answer = transport.send(&request) => answer,
        };
        let answer = answer.map_err(|failure| unanswered(&failure, &context))?;
        let account: Account = parse(&accept(answer, &context)?, &context)?;
        let status = account.account_status.as_deref().unwrap_or("");
        if !status.eq_ignore_ascii_case("ACCOUNT_STATUS_ENABLED") {
            let shown = if status.is_empty() {
                "no status"
            } else {
                status
            };
            return Err(Error::new(
                Code::PermissionDenied,
                format!("the account is not enabled: Runloop reports {shown}"),
            )
            .during("connect")
            .with_resource("account", account.id));
        }
        if account.id.is_empty() {
            return Err(
                Error::protocol("Runloop reports an account without an id").during("connect")
            );
        }
        Ok(Self(Arc::new(Core {
            transport,
            config,
            account: account.id,
            closed: CancellationToken::new(),
            secrets,
            policy_checks: PolicyChecks::default(),
            resolved_image: image::Resolved::default(),
            memory: Memory::default(),
            seen_ids: SeenIds::default(),
            observer,
        })))
    }

    /// The account's id: the scope of everything.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.0.account
    }

    /// Ends the connection: reads fail with `CLOSED`, mutations on their way
    /// with `OUTCOME_UNKNOWN`. Twice is fine. Nothing is cleaned up.
    pub fn close(&self) {
        self.0.closed.cancel();
    }

    pub(super) fn transport(&self) -> &Arc<dyn Transport> {
        &self.0.transport
    }

    /// The trace of a request of this call, where somebody listens.
    pub(super) fn trace(&self, operation: &'static str, call: &Call) -> Option<Arc<Trace>> {
        trace(self.0.observer.as_ref(), operation, call)
    }

    /// Who is told of events, where somebody listens.
    pub(super) fn observer(&self) -> Option<&dyn Observer> {
        let observer = self.0.observer.as_deref()?;
        observer.is_active().then_some(observer)
    }

    pub(super) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(super) fn closed(&self) -> &CancellationToken {
        &self.0.closed
    }

    pub(super) fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }

    pub(super) fn seen_ids(&self) -> &SeenIds {
        &self.0.seen_ids
    }

    pub(super) fn policy_checks(&self) -> &PolicyChecks {
        &self.0.policy_checks
    }

    pub(super) fn resolved_image(&self) -> &image::Resolved {
        &self.0.resolved_image
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.0.memory
    }
}

fn trace(
    observer: Option<&Arc<dyn Observer>>,
    operation: &'static str,
    call: &Call,
) -> Option<Arc<Trace>> {
    let observer = observer.filter(|observer| observer.is_active())?;
    Some(Trace::new(
        Arc::clone(observer),
        operation,
        call.operation_id.clone(),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::records::{ListSandboxesRequest, Target, WaitForSandboxRequest};
    use super::super::testing::{KEY, connect};
    use super::*;
    use crate::transport::scripted::{Scripted, Step};

    async fn connect_to(step: Step) -> Result<Connection> {
        let config = Config::parse(&json!({ "apiKey": KEY }), &Value::Null).unwrap();
        Connection::over(Arc::new(Scripted::new([step])), config, &Call::default()).await
    }

    fn account(status: Value) -> Step {
        Step::json(
            200,
            &json!({ "id": "acct_1", "account_status": status }).to_string(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn r3_only_an_enabled_account_passes_and_another_status_is_named() {
        for status in ["ACCOUNT_STATUS_ENABLED", "account_status_enabled"] {
            assert_eq!(
                connect_to(account(json!(status))).await.unwrap().account(),
                "acct_1"
            );
        }
        for status in [
            json!("ACCOUNT_STATUS_DISABLED_BY_ADMIN"),
            json!("ACCOUNT_STATUS_ONBOARDING"),
            json!("SOMETHING_NEW"),
        ] {
            let error = connect_to(account(status.clone())).await.unwrap_err();
            assert_eq!(error.code(), Code::PermissionDenied);
            assert!(
                error.message().contains(status.as_str().unwrap()),
                "{error}"
            );
        }
        let error = connect_to(account(Value::Null)).await.unwrap_err();
        assert!(error.message().contains("no status"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn r3_a_refused_key_and_an_odd_answer_are_typed_errors() {
        for (step, code) in [
            (
                Step::json(401, r#"{"message":"invalid ak_0123456789abcdef"}"#),
                Code::Unauthenticated,
            ),
            (Step::json(403, ""), Code::PermissionDenied),
            (Step::json(404, ""), Code::NotFound),
            (Step::json(200, "<html>"), Code::Protocol),
            (
                Step::json(200, r#"{"account_status":"ACCOUNT_STATUS_ENABLED"}"#),
                Code::Protocol,
            ),
            (Step::refused(), Code::Unavailable),
        ] {
            let error = connect_to(step).await.unwrap_err();
            assert_eq!((error.code(), error.operation()), (code, "connect"));
            assert!(!format!("{error} {error:?}").contains(KEY), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn v27_a_read_after_or_during_close_is_closed() {
        let (connection, _) = connect([Step::Hang]).await;
        let call = Call::default();
        let reading = connection.inspect_sandbox("dbx_1", &call);
        let (result, ()) = tokio::join!(reading, async { connection.close() });
        assert_eq!(result.unwrap_err().code(), Code::Closed);
        let error = connection
            .inspect_sandbox("dbx_1", &call)
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::Closed);
        assert!(!format!("{connection:?}").contains(KEY));
    }

    #[tokio::test(start_paused = true)]
    async fn every_verb_can_be_spawned() {
        fn spawnable(_: impl Future + Send) {}
        let (connection, _) = connect([]).await;
        let call = Call::default();
        let list = ListSandboxesRequest {
            limit: 1,
            cursor: None,
            state: None,
        };
        spawnable(connection.list_sandboxes(&list, &call));
        let wait = WaitForSandboxRequest {
            sandbox_id: String::new(),
            state: Target::Running,
        };
        spawnable(connection.wait_for_sandbox(&wait, &call));
        spawnable(connection.preview("", 1, &call));
    }
}
