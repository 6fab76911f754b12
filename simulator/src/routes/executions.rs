//! `/v1/devboxes/{id}/execute*` and `/v1/devboxes/{id}/executions/*`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::Value;

use super::hold::{self, WaitForStatus};
use super::{Lenient, Query};
use crate::error::{ApiError, ApiResult};
use crate::layers::Caller;
use crate::state::World;
use crate::state::executions::{Execution, ExecutionStatus};
use crate::state::settings::{OptimisticExpiry, Settings, ZeroTimeout};

pub(super) fn router() -> Router<Arc<World>> {
    Router::new()
        .route("/v1/devboxes/{id}/execute", post(execute))
        .route("/v1/devboxes/{id}/executions/{execution_id}", get(retrieve))
        .route(
            "/v1/devboxes/{id}/executions/{execution_id}/wait_for_status",
            post(wait_for_status),
        )
        .route(
            "/v1/devboxes/{id}/executions/{execution_id}/kill",
            post(kill),
        )
}

#[derive(Debug, Deserialize)]
struct Execute {
    command: String,
    command_id: Option<String>,
    optimistic_timeout: Option<f64>,
    attach_stdin: Option<bool>,
}

impl Execute {
    fn optimistic_wait(&self, settings: &Settings) -> ApiResult<Duration> {
        let max_seconds = settings.optimistic_max_seconds;
        let seconds = match self.optimistic_timeout {
            Some(0.0) if settings.optimistic_zero == ZeroTimeout::Immediate => 0.0,
            None | Some(0.0) => max_seconds,
            Some(asked) => asked.min(max_seconds),
        };
        Duration::try_from_secs_f64(seconds)
            .map_err(|_error| ApiError::bad_request("optimistic_timeout must not be negative"))
    }
}

#[derive(Debug, Deserialize)]
struct Kill {
    #[serde(default)]
    kill_process_group: bool,
}

async fn execute(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
    Lenient(request): Lenient<Execute>,
) -> ApiResult<Json<Value>> {
    let devbox = world.devboxes.get(&caller.account_id, &id)?;
    let settings = world.settings.get();
    let last_n = last_n(&query, &settings)?;
    let wait = request.optimistic_wait(&settings)?;
    if request.command_id.is_none() && settings.require_command_id {
        return Err(ApiError::bad_request("command_id is required"));
    }
    if request.attach_stdin == Some(true) {
        return Err(ApiError::bad_request("attach_stdin needs execute_async"));
    }
    let guest = devbox.running_guest()?;
    let execution = devbox.executions.start(
        &guest,
        &devbox.id,
        &request.command,
        request.command_id.as_deref(),
        &settings,
    )?;
    match hold::until(execution.watch(), wait, || completed(&execution)).await {
        Err(expired) if settings.optimistic_expiry == OptimisticExpiry::RequestTimeout => {
            Err(expired)
        }
        // Completed, or still running: the view says which.
        Ok(()) | Err(_) => Ok(Json(execution.view(last_n))),
    }
}

fn completed(execution: &Execution) -> Option<()> {
    matches!(execution.status(), ExecutionStatus::Completed(_)).then_some(())
}

async fn retrieve(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path((id, execution_id)): Path<(String, String)>,
    query: Query,
) -> ApiResult<Json<Value>> {
    let devbox = world.devboxes.get(&caller.account_id, &id)?;
    let last_n = last_n(&query, &world.settings.get())?;
    Ok(Json(devbox.executions.get(&execution_id)?.view(last_n)))
}

async fn wait_for_status(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path((id, execution_id)): Path<(String, String)>,
    query: Query,
    Lenient(request): Lenient<WaitForStatus>,
) -> ApiResult<Json<Value>> {
    let devbox = world.devboxes.get(&caller.account_id, &id)?;
    let execution = devbox.executions.get(&execution_id)?;
    request.check(|status| matches!(status, "queued" | "running" | "completed"))?;
    let settings = world.settings.get();
    let last_n = last_n(&query, &settings)?;
    let max_seconds = settings.execution_hold_max_seconds;
    let hold = request.hold(max_seconds, max_seconds)?;
    hold::until(execution.watch(), hold, || {
        let status = execution.status().as_str();
        request
            .statuses
            .iter()
            .any(|wanted| wanted == status)
            .then_some(())
    })
    .await?;
    Ok(Json(execution.view(last_n)))
}

/// Killing what has ended is 200 (certain: clients clean up that way).
async fn kill(
    State(world): State<Arc<World>>,
    caller: Caller,
    Path((id, execution_id)): Path<(String, String)>,
    Lenient(request): Lenient<Kill>,
) -> ApiResult<Json<Value>> {
    let devbox = world.devboxes.get(&caller.account_id, &id)?;
    let execution = devbox.executions.get(&execution_id)?;
    execution.kill(request.kill_process_group);
    Ok(Json(execution.view(world.settings.get().default_last_n)))
}

fn last_n(query: &Query, settings: &Settings) -> ApiResult<usize> {
    Ok(query.number("last_n")?.unwrap_or(settings.default_last_n))
}
