//! Making a Devbox out of a request: what it inherits and what is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::World;
use super::accounts::AccountKey;
use super::devboxes::{Devbox, Origin, Record};
use super::ids;
use super::launch::{Launch, SIZE_FIELDS};
use super::status::DevboxStatus;
use super::tunnels::{Tunnel, TunnelConfig};
use crate::error::{ApiError, ApiResult};
use crate::guest::Layer;

/// The body of `POST /v1/devboxes`; what is not listed is ignored.
#[derive(Debug, Default, Clone, Deserialize)]
pub(crate) struct CreateDevbox {
    name: Option<String>,
    blueprint_id: Option<String>,
    blueprint_name: Option<String>,
    snapshot_id: Option<String>,
    #[serde(default)]
    environment_variables: BTreeMap<String, String>,
    /// Variable to secret's name.
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    #[serde(default)]
    launch_parameters: Map<String, Value>,
    entrypoint: Option<String>,
    #[serde(default)]
    file_mounts: BTreeMap<String, String>,
    #[serde(default)]
    code_mounts: Vec<Value>,
    #[serde(default)]
    mounts: Vec<Mount>,
    tunnel: Option<TunnelConfig>,
}

/// Only file mounts are simulated; any other kind is a 400 that says so.
#[derive(Debug, Clone, Deserialize)]
struct Mount {
    #[serde(rename = "type")]
    kind: String,
    target: Option<String>,
    content: Option<String>,
}

/// What a box starts from.
#[derive(Default)]
struct Image {
    blueprint_id: Option<String>,
    snapshot_id: Option<String>,
    layer: Option<Layer>,
    /// Launch parameters that the box has unless it is given its own.
    inherited: Map<String, Value>,
}

impl World {
    /// Makes a box, `provisioning` (or `queued` for the flex tier), and keeps it.
    pub(crate) fn new_devbox(
        &self,
        account_id: &AccountKey,
        request: CreateDevbox,
    ) -> ApiResult<Arc<Devbox>> {
        let now_ms = self.clock.now_ms();
        let image = self.image(account_id, &request)?;
        let mut launch_parameters = image.inherited;
        launch_parameters.extend(request.launch_parameters);
        let launch = Launch::parse(&launch_parameters)?;
        if let Some(policy_id) = &launch.network_policy_id {
            self.policies
                .get(account_id, policy_id)
                .map_err(|error| self.unknown_reference(error))?;
        }
        let mut environment = request.environment_variables;
        for (variable, secret) in request.secrets {
            environment.insert(variable, self.secrets.value(account_id, &secret)?);
        }
        refuse_bad_environment(&environment)?;
        self.refuse_large_metadata(&request.metadata)?;
        let file_mounts = file_mounts(request.file_mounts, request.mounts)?;
        if !request.code_mounts.is_empty() {
            return Err(ApiError::bad_request("the simulator has no code mounts"));
        }
        self.refuse_over_quota("devbox", self.live_devboxes(account_id), |settings| {
            settings.devbox_quota
        })?;
        let first = if launch.is_flex {
            DevboxStatus::Queued
        } else {
            DevboxStatus::Provisioning
        };
        let tunnel = request.tunnel.map(|config| Tunnel::new(config, now_ms));
        let mut record = Record::new(request.name, request.metadata, tunnel, now_ms);
        record.enter(first, now_ms);
        let origin = Origin {
            id: ids::fresh("dbx"),
            account_id: account_id.clone(),
            environment,
            file_mounts,
            entrypoint: request.entrypoint,
            launch,
            launch_parameters,
            blueprint_id: image.blueprint_id,
            snapshot_id: image.snapshot_id,
            layer: image.layer,
        };
        let devbox = Devbox::new(origin, record);
        self.devboxes.add(Arc::clone(&devbox));
        Ok(devbox)
    }

    /// More than one of the three selectors is 400 (unknown).
    fn image(&self, account_id: &str, request: &CreateDevbox) -> ApiResult<Image> {
        let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        let selectors = (
            given(&request.blueprint_id),
            given(&request.blueprint_name),
            given(&request.snapshot_id),
        );
        let blueprint = match selectors {
            (None, None, None) => return Ok(Image::default()),
            (None, None, Some(id)) => {
                let snapshot = self
                    .snapshots
                    .restorable(account_id, &id)
                    .map_err(|error| self.unknown_reference(error))?;
                return Ok(Image {
                    snapshot_id: Some(id),
                    layer: snapshot.layer,
                    inherited: sizes_of(&snapshot.source_launch_parameters),
                    ..Image::default()
                });
            }
            // 400 is certain here.
            (Some(id), None, None) => self
                .blueprints
                .built_by_id(account_id, &id)
                .map_err(|error| ApiError::bad_request(error.message)),
            (None, Some(name), None) => self
                .blueprints
                .built_by_name(account_id, &name)
                .map_err(|error| self.unknown_reference(error)),
            _ => Err(ApiError::bad_request(
                "give only one of blueprint_id, blueprint_name and snapshot_id",
            )),
        };
        let blueprint = blueprint?;
        Ok(Image {
            blueprint_id: Some(blueprint.id),
            layer: blueprint.layer,
            inherited: blueprint.launch_parameters,
            ..Image::default()
        })
    }

    /// The refusal of a create that names what is not there: a switch. What is
    /// there and cannot be used is 400.
    fn unknown_reference(&self, error: ApiError) -> ApiError {
        if error.status != StatusCode::NOT_FOUND {
            return ApiError::bad_request(error.message);
        }
        let status = self.settings.get().unknown_reference_status;
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        ApiError::new(status, error.message)
    }

    fn live_devboxes(&self, account_id: &str) -> usize {
        let boxes = self.devboxes.list(account_id);
        boxes
            .iter()
            .filter(|devbox| !devbox.status().is_final())
            .count()
    }
}

fn sizes_of(launch_parameters: &Map<String, Value>) -> Map<String, Value> {
    launch_parameters
        .iter()
        .filter(|(name, _)| SIZE_FIELDS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn refuse_bad_environment(environment: &BTreeMap<String, String>) -> ApiResult<()> {
    let is_bad = |name: &str, value: &str| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    };
    match environment.iter().find(|(name, value)| is_bad(name, value)) {
        Some((name, _)) => Err(ApiError::bad_request(format!(
            "environment variable {name:?} is not one that a process can have"
        ))),
        None => Ok(()),
    }
}

fn file_mounts(
    mut by_path: BTreeMap<String, String>,
    mounts: Vec<Mount>,
) -> ApiResult<BTreeMap<String, String>> {
    for mount in mounts {
        match (mount.kind.as_str(), mount.target, mount.content) {
            ("file_mount", Some(target), Some(content)) => {
                by_path.insert(target, content);
            }
            ("file_mount", ..) => {
                return Err(ApiError::bad_request(
                    "a file_mount needs target and content",
                ));
            }
            (kind, ..) => {
                return Err(ApiError::bad_request(format!(
                    "the simulator has no {kind}"
                )));
            }
        }
    }
    Ok(by_path)
}
