//! Blueprints: images that boxes start from, built from setup commands.
//!
//! Certain: names are not unique and a name means the newest that was built; a
//! deleted blueprint is still told, with `state: deleted`; one that snapshots
//! depend on cannot be deleted. How a build runs is in `build.rs`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::accounts::AccountKey;
use super::ids;
use super::view::{maybe, with_optional};
use crate::error::{ApiError, ApiResult};
use crate::guest::Layer;

/// What everyone can start from (documented names); nothing is on top of the
/// default image in them.
const PUBLIC_NAMES: [&str; 3] = [
    "runloop/universal-ubuntu-24.04-x86_64",
    "runloop/universal-ubuntu-24.04-x86_64-dnd",
    "runloop/starter-x86_64",
];

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BuildStatus {
    Queued,
    Provisioning,
    Building,
    Failed,
    BuildComplete,
}

/// One blueprint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Blueprint {
    pub(crate) id: String,
    /// `None`: public.
    account_id: Option<AccountKey>,
    pub(crate) name: String,
    pub(crate) status: BuildStatus,
    pub(crate) is_deleted: bool,
    pub(crate) failure_reason: Option<String>,
    pub(crate) create_time_ms: i64,
    pub(crate) build_finish_time_ms: Option<i64>,
    /// The create's body, echoed.
    parameters: Map<String, Value>,
    /// Inherited by boxes that are made from it.
    pub(crate) launch_parameters: Map<String, Value>,
    base_blueprint_id: Option<String>,
    #[serde(skip)]
    pub(crate) layer: Option<Layer>,
    pub(crate) logs: Vec<Value>,
}

impl Blueprint {
    pub(crate) fn new(
        account_id: AccountKey,
        parameters: Map<String, Value>,
        base: Option<&Self>,
        now_ms: i64,
    ) -> ApiResult<Self> {
        let name = parameters
            .get("name")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty());
        let name = name
            .ok_or_else(|| ApiError::bad_request("name is required"))?
            .to_owned();
        let own = parameters
            .get("launch_parameters")
            .and_then(Value::as_object);
        let mut launch_parameters = base
            .map(|base| base.launch_parameters.clone())
            .unwrap_or_default();
        launch_parameters.extend(own.cloned().unwrap_or_default());
        Ok(Self {
            id: ids::fresh("bpt"),
            account_id: Some(account_id),
            name,
            status: BuildStatus::Provisioning,
            is_deleted: false,
            failure_reason: None,
            create_time_ms: now_ms,
            build_finish_time_ms: None,
            parameters,
            launch_parameters,
            base_blueprint_id: base.map(|base| base.id.clone()),
            layer: None,
            logs: Vec::new(),
        })
    }

    fn public(name: &str, now_ms: i64) -> Self {
        Self {
            id: ids::fresh("bpt"),
            account_id: None,
            name: name.to_owned(),
            status: BuildStatus::BuildComplete,
            is_deleted: false,
            failure_reason: None,
            create_time_ms: now_ms,
            build_finish_time_ms: Some(now_ms),
            parameters: Map::from_iter([("name".to_owned(), json!(name))]),
            launch_parameters: Map::new(),
            base_blueprint_id: None,
            layer: None,
            logs: Vec::new(),
        }
    }

    pub(crate) fn is_public(&self) -> bool {
        self.account_id.is_none()
    }

    fn is_visible_to(&self, account_id: &str) -> bool {
        self.account_id
            .as_deref()
            .is_none_or(|owner| owner == account_id)
    }

    /// Adds a line to the build's log.
    pub(crate) fn log(&mut self, level: &str, message: String, now_ms: i64) {
        self.logs
            .push(json!({ "level": level, "timestamp_ms": now_ms, "message": message }));
    }

    /// The BlueprintView.
    pub(crate) fn view(&self) -> Value {
        let required = json!({
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "state": if self.is_deleted { "deleted" } else { "created" },
            "create_time_ms": self.create_time_ms,
            "parameters": self.parameters,
            "is_public": self.is_public(),
        });
        with_optional(
            required,
            [
                ("build_finish_time_ms", maybe(self.build_finish_time_ms)),
                ("failure_reason", maybe(self.failure_reason.as_ref())),
                ("base_blueprint_id", maybe(self.base_blueprint_id.as_ref())),
                ("metadata", self.parameters.get("metadata").cloned()),
            ],
        )
    }
}

/// All blueprints, oldest first, the public ones before all.
#[derive(Debug)]
pub(crate) struct Blueprints(Mutex<Vec<Blueprint>>);

impl Blueprints {
    pub(crate) fn new(now_ms: i64) -> Self {
        Self(Mutex::new(
            PUBLIC_NAMES
                .map(|name| Blueprint::public(name, now_ms))
                .to_vec(),
        ))
    }

    pub(crate) fn add(&self, blueprint: Blueprint) {
        self.lock().push(blueprint);
    }

    pub(crate) fn get(&self, account_id: &str, id: &str) -> ApiResult<Blueprint> {
        self.lock()
            .iter()
            .find(|blueprint| blueprint.id == id && blueprint.is_visible_to(account_id))
            .cloned()
            .ok_or_else(|| ApiError::not_found("blueprint", id))
    }

    /// One that a box can start from.
    pub(crate) fn built_by_id(&self, account_id: &str, id: &str) -> ApiResult<Blueprint> {
        let blueprint = self.get(account_id, id)?;
        if blueprint.is_deleted {
            return Err(ApiError::not_found("blueprint", id));
        }
        if blueprint.status != BuildStatus::BuildComplete {
            return Err(ApiError::bad_request(format!(
                "blueprint {id} is not built"
            )));
        }
        Ok(blueprint)
    }

    /// The newest of this name that was built, of the account or public.
    pub(crate) fn built_by_name(&self, account_id: &str, name: &str) -> ApiResult<Blueprint> {
        self.lock()
            .iter()
            .rev()
            .find(|blueprint| {
                blueprint.name == name
                    && blueprint.is_visible_to(account_id)
                    && !blueprint.is_deleted
                    && blueprint.status == BuildStatus::BuildComplete
            })
            .cloned()
            .ok_or_else(|| {
                let message = format!("no successfully built blueprint is named {name}");
                ApiError::new(http::StatusCode::NOT_FOUND, message)
            })
    }

    /// The account's own that were not deleted, newest first.
    pub(crate) fn list(&self, account_id: &str) -> Vec<Blueprint> {
        let is_mine = |blueprint: &&Blueprint| blueprint.account_id.as_deref() == Some(account_id);
        let blueprints = self.lock();
        let mine = blueprints.iter().rev().filter(is_mine);
        mine.filter(|blueprint| !blueprint.is_deleted)
            .cloned()
            .collect()
    }

    pub(crate) fn list_public(&self) -> Vec<Blueprint> {
        self.lock()
            .iter()
            .rev()
            .filter(|blueprint| blueprint.is_public())
            .cloned()
            .collect()
    }

    pub(crate) fn change<T>(
        &self,
        id: &str,
        change: impl FnOnce(&mut Blueprint) -> T,
    ) -> Option<T> {
        self.lock()
            .iter_mut()
            .find(|blueprint| blueprint.id == id)
            .map(change)
    }

    pub(super) fn saved(&self) -> Vec<Blueprint> {
        self.lock().clone()
    }

    pub(super) fn restore(&self, blueprints: Vec<Blueprint>) {
        *self.lock() = blueprints;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Blueprint>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
