//! What a Devbox starts from: a blueprint by id where one has that id, else by name.
//!
//! The service resolves names, public ones included, to the newest successful
//! build. Only a look can tell an id from a name; its answer holds for the
//! life of the connection, because an id is never given twice.

use std::sync::OnceLock;

use super::records::SnapshotState;
use super::{Call, Connection};
use crate::api::answer::parse;
use crate::api::blueprints;
use crate::config::Image;
use crate::error::{Code, Error, Result};
use crate::message::Request;
use crate::wire::blueprints::{Blueprint, BlueprintPage};

/// What a create sends for an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// Nothing: Runloop's own image.
    Default,
    BlueprintId(String),
    BlueprintName(String),
}

/// The resolved image of a connection.
pub(super) type Resolved = OnceLock<Source>;

impl Connection {
    /// The image to send.
    pub(super) async fn image_source(
        &self,
        operation: &'static str,
        call: &Call,
    ) -> Result<Source> {
        let name = match &self.config().image {
            Image::Default => return Ok(Source::Default),
            Image::Blueprint(name) => name,
        };
        if let Some(source) = self.resolved_image().get() {
            return Ok(source.clone());
        }
        let source = match self.blueprint(operation, name, call).await? {
            Some(blueprint) => {
                usable(name, &blueprint).map_err(|error| error.during(operation))?;
                Source::BlueprintId(name.clone())
            }
            None => Source::BlueprintName(name.clone()),
        };
        Ok(self.resolved_image().get_or_init(|| source).clone())
    }

    /// Explains the refusal of a create by its image, where the image is the reason.
    ///
    /// What the service answers for an image that it cannot use is unknown but
    /// for an unknown id, which is a 400; so it is looked at again.
    pub(super) async fn explain_image(
        &self,
        operation: &'static str,
        source: &Source,
        refusal: Error,
        call: &Call,
    ) -> Error {
        let explained = match source {
            Source::Default => return refusal,
            Source::BlueprintId(id) => match self.blueprint(operation, id, call).await {
                Ok(Some(blueprint)) => usable(id, &blueprint).err(),
                Ok(None) => Some(missing(id, "no blueprint has this id any more")),
                Err(_) => None,
            },
            Source::BlueprintName(name) => self.explain_name(operation, name, call).await,
        };
        explained.map_or(refusal.clone(), |error| {
            same_answer(error, &refusal).during(operation)
        })
    }

    /// Explains the refusal of a restore by its snapshot, where that is the reason.
    pub(super) async fn explain_snapshot(
        &self,
        operation: &'static str,
        snapshot_id: &str,
        refusal: Error,
        call: &Call,
    ) -> Error {
        let refused = |code, why: &str| {
            let message = format!("snapshot {snapshot_id:?} cannot be restored: {why}");
            let error = Error::new(code, message).with_resource("snapshot", snapshot_id);
            same_answer(error, &refusal).during(operation)
        };
        match self.snapshot(operation, snapshot_id, None, call).await {
            Ok(record) => match record.state {
                SnapshotState::Deleted => refused(Code::NotFound, "it is deleted"),
                SnapshotState::Creating => {
                    refused(refusal.code(), "it is still being captured").with_reason("not_ready")
                }
                SnapshotState::Failed => {
                    refused(refusal.code(), "its capture failed").with_reason("snapshot_failed")
                }
                SnapshotState::Ready | SnapshotState::Unknown => refusal,
            },
            Err(error) if error.code() == Code::NotFound => {
                refused(Code::NotFound, "it does not exist")
            }
            Err(_) => refusal,
        }
    }

    async fn explain_name(
        &self,
        operation: &'static str,
        name: &str,
        call: &Call,
    ) -> Option<Error> {
        let own = self
            .builds(operation, blueprints::find(name), name, call)
            .await
            .ok()?;
        let public = self
            .builds(operation, blueprints::find_public(name), name, call)
            .await
            .ok()?;
        let builds: Vec<Blueprint> = own.into_iter().chain(public).collect();
        match builds
            .iter()
            .map(|build| usable(name, build))
            .find_map(Result::err)
        {
            None if builds.is_empty() => Some(missing(name, "no blueprint has this id or name")),
            // One that can be used was not the reason.
            _ if builds.iter().any(|build| usable(name, build).is_ok()) => None,
            problem => problem,
        }
    }

    async fn blueprint(
        &self,
        operation: &'static str,
        id: &str,
        call: &Call,
    ) -> Result<Option<Blueprint>> {
        let request = blueprints::get(id);
        let context = self.context(operation, &request).about("image", id);
        match self.read(&request, &context, call).await {
            Ok(answer) => parse(&answer, &context).map(Some),
            // A name may be refused as an id instead of not being found.
            Err(error) if matches!(error.code(), Code::NotFound | Code::Rejected) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The builds with exactly this name on the first page.
    async fn builds(
        &self,
        operation: &'static str,
        request: Request,
        name: &str,
        call: &Call,
    ) -> Result<Vec<Blueprint>> {
        let context = self.context(operation, &request);
        let page: BlueprintPage = parse(&self.read(&request, &context, call).await?, &context)?;
        let is_it = |blueprint: &Blueprint| blueprint.name.as_deref() == Some(name);
        Ok(page.blueprints.into_iter().filter(is_it).collect())
    }
}

/// Refuses a blueprint that no Devbox can start from, now or ever.
fn usable(name: &str, blueprint: &Blueprint) -> Result<()> {
    if blueprint.state.as_deref() == Some("deleted") {
        return Err(missing(name, "the blueprint is deleted"));
    }
    match blueprint.status.as_deref() {
        Some("failed") => Err(missing(name, "the build of the blueprint failed")),
        // Not reported, or a word that is not known: the service decides.
        _ => Ok(()),
    }
}

fn missing(name: &str, why: &str) -> Error {
    Error::new(
        Code::NotFound,
        format!("image {name:?} cannot be used: {why}"),
    )
    .with_resource("image", name)
}

/// The error with the answer and the outcome of another.
fn same_answer(error: Error, refusal: &Error) -> Error {
    let outcome = refusal.outcome().clone();
    let error = error.with_outcome(|known| *known = outcome);
    match refusal.status() {
        Some(status) => error.with_answer(
            status,
            refusal.request_id().map(str::to_owned),
            refusal.retry_after_seconds(),
        ),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::records::{CreateSandboxRequest, Markers, SandboxRecord};
    use super::super::testing::connect_with;
    use super::*;
    use crate::transport::scripted::Step;

    const GET: &str = "Get /v1/blueprints/x";
    const MAKE: &str = "Post /v1/devboxes";

    fn request(snapshot_id: Option<&str>) -> CreateSandboxRequest {
        CreateSandboxRequest {
            markers: Markers {
                operation: "op-1".into(),
                submission: "sub-1".into(),
            },
            env: None,
            lifecycle: None,
            network: None,
            snapshot_id: snapshot_id.map(str::to_owned),
        }
    }

    fn blueprint(status: &str, state: &str) -> Step {
        let view = json!({ "id": "x", "name": "n", "status": status, "state": state });
        Step::json(200, &view.to_string())
    }

    fn builds(builds: &[(&str, &str)]) -> Step {
        let views: Vec<_> = builds
            .iter()
            .map(|(name, status)| json!({ "id": "bp", "name": name, "status": status }))
            .collect();
        Step::json(200, &json!({ "blueprints": views }).to_string())
    }

    fn missing() -> Step {
        Step::json(404, "")
    }

    fn made() -> Step {
        Step::json(200, r#"{"id":"dbx_1","status":"provisioning"}"#)
    }

    fn refused() -> Step {
        Step::json(400, r#"{"message":"no such blueprint"}"#)
    }

    type Script = std::sync::Arc<crate::transport::scripted::Scripted>;

    async fn create(steps: Vec<Step>, snapshot: Option<&str>) -> (Result<SandboxRecord>, Script) {
        let config = json!({ "network": "internet", "image": "x" });
        let (connection, script) = connect_with(config, steps).await;
        (
            connection
                .create_sandbox(&request(snapshot), &Call::default())
                .await,
            script,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn r7_an_id_that_exists_wins_and_anything_else_goes_as_a_name() {
        let (result, script) =
            create(vec![blueprint("build_complete", "created"), made()], None).await;
        result.unwrap();
        assert_eq!(script.json(1)["blueprint_id"], "x");
        for not_an_id in [missing(), Step::json(400, "")] {
            let (result, script) = create(vec![not_an_id, made()], None).await;
            result.unwrap();
            assert_eq!(script.lines(), [GET, MAKE]);
            let body = script.json(1);
            assert_eq!(
                (&body["blueprint_name"], &body["blueprint_id"]),
                (&json!("x"), &json!(null))
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn r7_the_image_is_looked_up_once_a_connection() {
        let config = json!({ "network": "internet", "image": "x" });
        let (connection, script) = connect_with(config, [missing(), made(), made()]).await;
        for _ in 0..2 {
            connection
                .create_sandbox(&request(None), &Call::default())
                .await
                .unwrap();
        }
        assert_eq!(script.lines(), [GET, MAKE, MAKE]);
    }

    #[tokio::test(start_paused = true)]
    async fn r7_a_failed_or_deleted_blueprint_is_named_before_the_create() {
        for unusable in [
            blueprint("failed", "created"),
            blueprint("build_complete", "deleted"),
        ] {
            let (result, script) = create(vec![unusable], None).await;
            let error = result.unwrap_err();
            assert_eq!(error.code(), Code::NotFound);
            assert_eq!(
                error.resource().map(|it| (it.kind, it.id.as_str())),
                Some(("image", "x"))
            );
            assert_eq!(error.outcome().submitted, Some(false));
            assert_eq!(script.lines(), [GET]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn r7_an_unknown_or_failed_name_is_named_after_the_refusal() {
        for (own, public) in [
            (builds(&[]), builds(&[])),
            (builds(&[("x-2", "build_complete")]), builds(&[])),
            (builds(&[("x", "failed")]), builds(&[])),
        ] {
            let (result, _) = create(vec![missing(), refused(), own, public], None).await;
            let error = result.unwrap_err();
            assert_eq!((error.code(), error.status()), (Code::NotFound, Some(400)));
            assert!(error.message().contains("\"x\""), "{error}");
            assert_eq!(error.outcome().submitted, Some(true));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_is_not_the_images_stays_itself() {
        for (own, public) in [
            (
                builds(&[("x", "failed"), ("x", "build_complete")]),
                builds(&[]),
            ),
            (builds(&[]), builds(&[("x", "build_complete")])),
            (Step::json(500, ""), builds(&[])),
        ] {
            let (result, _) = create(vec![missing(), refused(), own, public], None).await;
            assert_eq!(result.unwrap_err().code(), Code::Rejected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn i6_a_refused_restore_says_what_is_wrong_with_its_snapshot() {
        let status = |word: &str| Step::json(200, &json!({ "status": word }).to_string());
        for (look, code, reason) in [
            (status("deleted"), Code::NotFound, None),
            (missing(), Code::NotFound, None),
            (status("in_progress"), Code::Rejected, Some("not_ready")),
            (status("error"), Code::Rejected, Some("snapshot_failed")),
            (status("complete"), Code::Rejected, None),
        ] {
            let (result, script) = create(vec![refused(), look], Some("snp_1")).await;
            let error = result.unwrap_err();
            assert_eq!((error.code(), error.reason()), (code, reason));
            assert_eq!(error.operation(), "snapshot_restore");
            assert_eq!(script.json(0)["snapshot_id"], "snp_1");
        }
    }
}
