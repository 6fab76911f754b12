//! Creates a Devbox, from the configured image or from a snapshot.
//!
//! Sent once. Before it: the image, on a connection's first create, and the
//! network policy, on every one. After it: what the service echoes is compared
//! with what was asked, and a Devbox that may reach more than it should is
//! shut down at once.

use std::collections::BTreeMap;

use super::asked::Asked;
use super::image::Source;
use super::records::{CreateSandboxRequest, SandboxRecord};
use super::{Call, Connection, sandbox_view};
use crate::api::answer::parse;
use crate::api::devboxes;
use crate::config::{Lifecycle, Network, parse_lifetime, parse_network};
use crate::error::{Code, Error, Result};
use crate::wire::devboxes::{CreateDevbox, Devbox};

/// What a create sends besides markers and environment.
struct Prepared {
    source: From,
    asked: Asked,
}

/// What it starts from.
enum From {
    Image(Source),
    Snapshot(String),
}

impl Connection {
    /// Submits, once, and resolves with the service's first answer; the
    /// sandbox may still be starting.
    ///
    /// # Errors
    /// `NOT_FOUND` with the resource `image` or `snapshot`; `CONFLICT` where
    /// `beachside-blocked` is no longer deny-all; `PROTOCOL` with the sandbox's
    /// id where the service attached another policy; `OUTCOME_UNKNOWN` where
    /// the answer is lost. `outcome.submitted` says whether the create was sent.
    pub async fn create_sandbox(
        &self,
        request: &CreateSandboxRequest,
        call: &Call,
    ) -> Result<SandboxRecord> {
        let operation = if request.snapshot_id.is_some() {
            "snapshot_restore"
        } else {
            "sandbox_create"
        };
        // Its requests are about the image and the policy, so what they say of
        // their own sending is not said of the create.
        let prepared = self
            .prepare(operation, request, call)
            .await
            .map_err(|error| {
                error
                    .during(operation)
                    .with_outcome(|outcome| outcome.submitted = Some(false))
            })?;
        let view = self
            .submit_create(operation, request, &prepared, call)
            .await?;
        self.secure(operation, &view, &prepared.asked).await?;
        let env_values = request.env.iter().flatten().map(|(_, value)| value.clone());
        self.memory()
            .remember(&view.id, prepared.asked, env_values.collect());
        Ok(self.record(view))
    }

    async fn prepare(
        &self,
        operation: &'static str,
        request: &CreateSandboxRequest,
        call: &Call,
    ) -> Result<Prepared> {
        let config = self.config();
        let lifetime = request
            .lifecycle
            .as_ref()
            .map(parse_lifetime)
            .transpose()?
            .flatten();
        let lifecycle = match (config.lifecycle, lifetime) {
            (Lifecycle::Idle { .. }, Some(_)) => {
                return Err(Error::unsupported(
                    "lifecycle.lifetimeSeconds",
                    "lifecycle.idleSeconds is configured, and Runloop ignores a lifetime beside it",
                ));
            }
            (_, Some(seconds)) => Lifecycle::Lifetime { seconds },
            (configured, None) => configured,
        };
        let network = request
            .network
            .as_ref()
            .map_or(Ok(config.network), parse_network)?;
        let source = async {
            match &request.snapshot_id {
                Some(id) => Ok(From::Snapshot(id.clone())),
                None => self.image_source(operation, call).await.map(From::Image),
            }
        };
        let policy = async {
            match network {
                Network::Blocked => self.blocked_policy(operation, call).await.map(Some),
                Network::Internet => Ok(None),
            }
        };
        let (source, policy_id) = futures::future::try_join(source, policy).await?;
        let asked = Asked {
            size: config.size,
            lifecycle,
            policy_id,
            preview: config.preview,
        };
        Ok(Prepared { source, asked })
    }

    async fn submit_create(
        &self,
        operation: &'static str,
        request: &CreateSandboxRequest,
        prepared: &Prepared,
        call: &Call,
    ) -> Result<Devbox> {
        let Prepared { source, asked } = prepared;
        let mut body = CreateDevbox {
            environment_variables: request.env.as_ref().filter(|env| !env.is_empty()),
            metadata: BTreeMap::from([
                (sandbox_view::OPERATION, request.markers.operation.as_str()),
                (
                    sandbox_view::SUBMISSION,
                    request.markers.submission.as_str(),
                ),
            ]),
            launch_parameters: asked.launch_parameters(),
            tunnel: Some(asked.tunnel()),
            ..CreateDevbox::default()
        };
        match source {
            From::Image(Source::Default) => {}
            From::Image(Source::BlueprintId(id)) => body.blueprint_id = Some(id),
            From::Image(Source::BlueprintName(name)) => body.blueprint_name = Some(name),
            From::Snapshot(id) => body.snapshot_id = Some(id),
        }
        let values: Vec<&str> = request
            .env
            .iter()
            .flatten()
            .map(|(_, value)| value.as_str())
            .collect();
        let http = devboxes::create(&body)?;
        let mut context = self.context(operation, &http).hiding(&values);
        if let From::Snapshot(id) = source {
            context = context.about("snapshot", id);
        }
        let answer = match self.submit(http, &context, call).await {
            Ok(answer) => answer,
            Err(refusal) if matches!(refusal.code(), Code::Rejected | Code::NotFound) => {
                return Err(match source {
                    From::Image(image) => self.explain_image(operation, image, refusal, call).await,
                    From::Snapshot(id) => self.explain_snapshot(operation, id, refusal, call).await,
                });
            }
            Err(error) => return Err(error),
        };
        let view: Devbox = parse(&answer, &context)?;
        if view.id.is_empty() {
            let message = "Runloop answered the create without an id of the Devbox";
            let error = Error::new(Code::OutcomeUnknown, message).during(operation);
            return Err(error.with_outcome(|outcome| outcome.submitted = Some(true)));
        }
        Ok(view)
    }

    /// Shuts a Devbox down, once, that does not have the policy it must have.
    ///
    /// A view without the field proves nothing, so it counts as missing.
    async fn secure(&self, operation: &'static str, view: &Devbox, asked: &Asked) -> Result<()> {
        let Some(wanted) = &asked.policy_id else {
            return Ok(());
        };
        let reported = view
            .launch_parameters
            .as_ref()
            .and_then(|launch| launch.network_policy_id.as_ref());
        if reported == Some(wanted) {
            return Ok(());
        }
        let request = devboxes::shutdown(&view.id);
        let context = self.context(operation, &request).about("sandbox", &view.id);
        // Not the caller's signal: the box must not be left open by a cancelled call.
        let ended = match self.submit(request, &context, &Call::default()).await {
            Ok(_) => "it was shut down".to_owned(),
            Err(error) => format!("shutting it down failed: {error}"),
        };
        let found = match reported {
            Some(other) => format!("the network policy {other:?} instead of {wanted:?}"),
            None => format!("no network policy instead of {wanted:?}"),
        };
        let message = format!("Runloop made sandbox {:?} with {found}; {ended}", view.id);
        Err(Error::protocol(message)
            .during(operation)
            .with_resource("sandbox", &view.id)
            .with_outcome(|outcome| {
                outcome.submitted = Some(true);
                outcome.sandbox_id = Some(view.id.clone());
            }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::records::{Markers, SandboxState};
    use super::super::testing::{connect_with, policy};
    use super::*;
    use crate::transport::scripted::Step;

    const ENV_VALUE: &str = "a secret value";

    fn request() -> CreateSandboxRequest {
        CreateSandboxRequest {
            markers: Markers {
                operation: "op-1".into(),
                submission: "sub-1".into(),
            },
            env: Some(BTreeMap::from([("TOKEN".into(), ENV_VALUE.into())])),
            lifecycle: None,
            network: None,
            snapshot_id: None,
        }
    }

    fn made(launch: Value) -> Step {
        let view = json!({ "id": "dbx_1", "status": "provisioning", "launch_parameters": launch });
        Step::json(200, &view.to_string())
    }

    async fn create(
        config: Value,
        request: &CreateSandboxRequest,
        steps: Vec<Step>,
    ) -> (
        Result<SandboxRecord>,
        std::sync::Arc<crate::transport::scripted::Scripted>,
    ) {
        let (connection, script) = connect_with(config, steps).await;
        (
            connection.create_sandbox(request, &Call::default()).await,
            script,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn r5_r11_r13_r30_a_create_carries_policy_tunnel_environment_and_markers() {
        let steps = vec![policy(), made(json!({ "network_policy_id": "np_1" }))];
        let (record, script) = create(json!({}), &request(), steps).await;
        let record = record.unwrap();
        assert_eq!(
            (record.state, record.network.policy),
            (SandboxState::Starting, "blocked")
        );
        assert!(record.differences.is_empty());
        assert_eq!(
            script.json(1),
            json!({
                "environment_variables": { "TOKEN": ENV_VALUE },
                "metadata": { "beachside_operation": "op-1", "beachside_submission": "sub-1" },
                "launch_parameters": {
                    "keep_alive_time_seconds": 900,
                    "network_policy_id": "np_1",
                },
                "tunnel": { "auth_mode": "authenticated" },
            })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn r6_internet_attaches_no_policy_and_asks_for_none() {
        let (record, script) = create(
            json!({ "network": "internet" }),
            &request(),
            vec![made(json!({}))],
        )
        .await;
        assert_eq!(record.unwrap().network.policy, "internet");
        assert_eq!(script.lines(), ["Post /v1/devboxes"]);
        assert_eq!(
            script.json(0)["launch_parameters"]["network_policy_id"],
            Value::Null
        );
    }

    #[tokio::test(start_paused = true)]
    async fn r5_a_box_with_another_policy_or_none_is_shut_down_once_and_named() {
        for launch in [
            json!({ "network_policy_id": "np_2" }),
            json!({}),
            Value::Null,
        ] {
            let steps = vec![policy(), made(launch), Step::json(500, "")];
            let (result, script) = create(json!({}), &request(), steps).await;
            let error = result.unwrap_err();
            assert_eq!(error.code(), Code::Protocol);
            assert_eq!(error.outcome().sandbox_id.as_deref(), Some("dbx_1"));
            assert_eq!(script.lines()[2..], ["Post /v1/devboxes/dbx_1/shutdown"]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn r29_r31_a_lost_answer_is_unknown_and_a_refusal_is_itself_and_neither_is_repeated() {
        for (step, code, submitted) in [
            (Step::reset(), Code::OutcomeUnknown, true),
            (Step::refused(), Code::Unavailable, false),
            (Step::json(503, ENV_VALUE), Code::OutcomeUnknown, true),
            (Step::json(408, ""), Code::OutcomeUnknown, true),
            (Step::json(200, r#"{"id":"db"#), Code::OutcomeUnknown, true),
            (Step::json(200, "{}"), Code::OutcomeUnknown, true),
            (Step::json(400, ENV_VALUE), Code::Rejected, true),
            (Step::json(401, ""), Code::Unauthenticated, true),
            (Step::json(429, ""), Code::RateLimited, true),
        ] {
            let (result, script) = create(json!({}), &request(), vec![policy(), step]).await;
            let error = result.unwrap_err();
            assert_eq!(
                (error.code(), error.outcome().submitted),
                (code, Some(submitted))
            );
            assert_eq!(error.operation(), "sandbox_create");
            assert!(!format!("{error} {error:?}").contains(ENV_VALUE), "{error}");
            assert_eq!(script.seen().len(), 2);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_before_the_create_leaves_it_unsubmitted() {
        let (result, _) = create(json!({}), &request(), vec![Step::json(403, "")]).await;
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::PermissionDenied);
        assert_eq!(error.outcome().submitted, Some(false));
    }

    #[tokio::test(start_paused = true)]
    async fn a6_a_signal_that_is_aborted_already_sends_nothing() {
        let (connection, script) = connect_with(json!({}), []).await;
        let call = Call::default();
        call.cancel.cancel();
        let error = connection
            .create_sandbox(&request(), &call)
            .await
            .unwrap_err();
        assert_eq!(
            (error.code(), error.outcome().submitted),
            (Code::Cancelled, Some(false))
        );
        assert!(script.seen().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn v23_a_cancelled_create_that_was_sent_says_so_and_goes_out_whole() {
        let (connection, script) =
            connect_with(json!({ "network": "internet" }), [Step::Hang]).await;
        let call = Call::default();
        let request = request();
        let creating = connection.create_sandbox(&request, &call);
        let cancel = async {
            while script.seen().is_empty() {
                tokio::task::yield_now().await;
            }
            call.cancel.cancel();
        };
        let (result, ()) = tokio::join!(creating, cancel);
        let error = result.unwrap_err();
        assert_eq!(
            (error.code(), error.outcome().submitted),
            (Code::Cancelled, Some(true))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn v27_a_create_on_its_way_when_the_connection_closes_is_unknown() {
        let (connection, script) =
            connect_with(json!({ "network": "internet" }), [Step::Hang]).await;
        let (request, call) = (request(), Call::default());
        let creating = connection.create_sandbox(&request, &call);
        let close = async {
            while script.seen().is_empty() {
                tokio::task::yield_now().await;
            }
            connection.close();
        };
        let (result, ()) = tokio::join!(creating, close);
        let error = result.unwrap_err();
        assert_eq!(
            (error.code(), error.outcome().submitted),
            (Code::OutcomeUnknown, Some(true))
        );
        let error = connection
            .create_sandbox(&request, &call)
            .await
            .unwrap_err();
        assert_eq!(
            (error.code(), error.outcome().submitted),
            (Code::Closed, Some(false))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn r9_a_lifetime_of_one_create_overrides_the_configured_one_within_bounds() {
        let config = || json!({ "network": "internet", "lifecycle": { "lifetimeSeconds": 120 } });
        let with = |seconds: Value| CreateSandboxRequest {
            lifecycle: Some(json!({ "lifetimeSeconds": seconds })),
            ..request()
        };
        let (_, script) = create(config(), &with(json!(60)), vec![made(json!({}))]).await;
        assert_eq!(
            script.json(0)["launch_parameters"]["keep_alive_time_seconds"],
            json!(60)
        );
        for wrong in [json!(59), json!(172_801), json!(60.5), json!("60")] {
            let (result, script) = create(config(), &with(wrong), vec![]).await;
            assert_eq!(result.unwrap_err().code(), Code::InvalidArgument);
            assert!(script.seen().is_empty());
        }
        let idle = json!({ "network": "internet", "lifecycle": { "idleSeconds": 120 } });
        let (result, script) = create(idle, &with(json!(60)), vec![]).await;
        assert_eq!(result.unwrap_err().code(), Code::Unsupported);
        assert!(script.seen().is_empty());
    }
}
