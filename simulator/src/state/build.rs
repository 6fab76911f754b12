//! Building a blueprint: a throw-away box, its setup commands, a snapshot.
//!
//! A Dockerfile is not built by a container engine: its `RUN` lines are setup
//! commands, `FROM` is taken for the default image, and what the simulator
//! cannot do (`COPY`, `ADD` and any other instruction but `LABEL` and
//! comments) fails the build with a line in its log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::World;
use super::accounts::AccountKey;
use super::blueprints::{Blueprint, BuildStatus};
use super::ids;
use super::launch::Launch;
use crate::error::{ApiError, ApiResult};
use crate::guest::{BoxSpec, Layer, Spawn, User};

/// How a fault lets a build end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BuildOutcome {
    /// Least time building, over the setting's.
    pub(crate) milliseconds: u64,
    /// It fails for this reason.
    pub(crate) failure_reason: Option<String>,
}

/// What a build acts on; the rest of a create's body is only echoed.
#[derive(Debug, Default, Deserialize)]
struct Recipe {
    dockerfile: Option<String>,
    base_blueprint_id: Option<String>,
    base_blueprint_name: Option<String>,
    #[serde(default)]
    system_setup_commands: Vec<String>,
    #[serde(default)]
    file_mounts: BTreeMap<String, String>,
    /// Variable to secret's name; not kept in the image.
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    #[serde(default)]
    code_mounts: Vec<Value>,
    build_context: Option<Value>,
    network_policy_id: Option<String>,
}

/// What the build is left with after its request was found good.
struct Job {
    id: String,
    steps: Vec<Step>,
    environment: BTreeMap<String, String>,
    file_mounts: BTreeMap<String, String>,
    base_layer: Option<Layer>,
    user: User,
    outcome: BuildOutcome,
}

enum Step {
    Run(String),
    Unsupported(String),
}

/// Makes a blueprint and begins to build it.
pub(crate) fn create(
    world: &Arc<World>,
    account_id: &AccountKey,
    parameters: Map<String, Value>,
    outcome: BuildOutcome,
) -> ApiResult<Blueprint> {
    let recipe: Recipe = serde_json::from_value(Value::Object(parameters.clone()))
        .map_err(|error| ApiError::bad_request(format!("invalid blueprint: {error}")))?;
    if !recipe.code_mounts.is_empty() || recipe.build_context.is_some() {
        return Err(ApiError::bad_request(
            "the simulator has no code mounts and no build context",
        ));
    }
    let as_bad_request = |error: ApiError| ApiError::bad_request(error.message);
    if let Some(id) = &recipe.network_policy_id {
        world.policies.get(account_id, id).map_err(as_bad_request)?;
    }
    let base = match (&recipe.base_blueprint_id, &recipe.base_blueprint_name) {
        (None, None) => None,
        (Some(id), None) => Some(world.blueprints.built_by_id(account_id, id)),
        (None, Some(name)) => Some(world.blueprints.built_by_name(account_id, name)),
        (Some(_), Some(_)) => {
            return Err(ApiError::bad_request(
                "give only one of base_blueprint_id and base_blueprint_name",
            ));
        }
    };
    let base = base.transpose().map_err(as_bad_request)?;
    let mut environment = BTreeMap::new();
    for (variable, secret) in &recipe.secrets {
        environment.insert(variable.clone(), world.secrets.value(account_id, secret)?);
    }
    world.refuse_over_quota(
        "blueprint",
        world.blueprints.list(account_id).len(),
        |settings| settings.blueprint_quota,
    )?;
    let now_ms = world.clock.now_ms();
    let blueprint = Blueprint::new(account_id.clone(), parameters, base.as_ref(), now_ms)?;
    let launch = Launch::parse(&blueprint.launch_parameters)?;
    let steps = dockerfile_steps(recipe.dockerfile.as_deref().unwrap_or_default())
        .into_iter()
        .chain(recipe.system_setup_commands.into_iter().map(Step::Run))
        .collect();
    world.blueprints.add(blueprint.clone());
    let job = Job {
        id: blueprint.id.clone(),
        steps,
        environment,
        file_mounts: recipe.file_mounts,
        base_layer: base.and_then(|base| base.layer),
        user: launch.user,
        outcome,
    };
    tokio::spawn(run(Arc::clone(world), job));
    Ok(blueprint)
}

/// One step an instruction; a line that ends in `\` goes on in the next.
fn dockerfile_steps(dockerfile: &str) -> Vec<Step> {
    let joined = dockerfile.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut steps = Vec::new();
    for line in joined.lines().map(str::trim) {
        let (instruction, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match instruction.to_ascii_uppercase().as_str() {
            "" | "FROM" | "LABEL" => {}
            comment if comment.starts_with('#') => {}
            "RUN" => steps.push(Step::Run(rest.trim().to_owned())),
            _ => steps.push(Step::Unsupported(line.to_owned())),
        }
    }
    steps
}

async fn run(world: Arc<World>, job: Job) {
    world.blueprints.change(&job.id, |blueprint| {
        blueprint.status = BuildStatus::Building
    });
    let build_ms = world.settings.get().build_ms.max(job.outcome.milliseconds);
    tokio::time::sleep(Duration::from_millis(build_ms)).await;
    let built = tokio::select! {
        built = build(&world, &job) => built,
        () = world.stopping.cancelled() => return,
    };
    let now_ms = world.clock.now_ms();
    world.blueprints.change(&job.id, |blueprint| {
        blueprint.build_finish_time_ms = Some(now_ms);
        match built {
            Ok(layer) => {
                blueprint.log("info", "build complete".to_owned(), now_ms);
                blueprint.layer = layer;
                blueprint.status = BuildStatus::BuildComplete;
            }
            Err(message) => {
                blueprint.log("error", message, now_ms);
                let asked = job.outcome.failure_reason.clone();
                blueprint.failure_reason = Some(asked.unwrap_or_else(|| "build_failed".to_owned()));
                blueprint.status = BuildStatus::Failed;
            }
        }
    });
}

async fn build(world: &World, job: &Job) -> Result<Option<Layer>, String> {
    if job.steps.is_empty() && job.file_mounts.is_empty() {
        return finish(job, job.base_layer.clone());
    }
    let spec = BoxSpec {
        env: job.environment.clone(),
        user: job.user.clone(),
        ..BoxSpec::new(ids::fresh("build"))
    };
    let told = |error: crate::guest::GuestError| error.to_string();
    let guest = world
        .machine
        .boot(spec, job.base_layer.as_ref())
        .await
        .map_err(told)?;
    let prepared = async {
        for (path, content) in &job.file_mounts {
            let content = Bytes::from(content.clone());
            guest
                .write_file(path, content)
                .await
                .map_err(|error| format!("{path}: {error}"))?;
        }
        for step in &job.steps {
            run_step(world, job, &guest, step).await?;
        }
        guest.snapshot().await.map_err(told)
    }
    .await;
    guest.destroy().await.map_err(told)?;
    finish(job, Some(prepared?))
}

fn finish(job: &Job, layer: Option<Layer>) -> Result<Option<Layer>, String> {
    match &job.outcome.failure_reason {
        Some(reason) => Err(format!("the build failed: {reason}")),
        None => Ok(layer),
    }
}

async fn run_step(
    world: &World,
    job: &Job,
    guest: &crate::guest::Guest,
    step: &Step,
) -> Result<(), String> {
    let command = match step {
        Step::Run(command) => command,
        Step::Unsupported(line) => return Err(format!("the simulator cannot do: {line}")),
    };
    let process = guest
        .spawn(Spawn::new(command.as_str()))
        .await
        .map_err(|error| error.to_string())?;
    let exit_code = process.exited().await;
    let now_ms = world.clock.now_ms();
    world.blueprints.change(&job.id, |blueprint| {
        blueprint.log("info", command.clone(), now_ms)
    });
    if exit_code == 0 {
        Ok(())
    } else {
        Err(format!("{command}: exit code {exit_code}"))
    }
}
