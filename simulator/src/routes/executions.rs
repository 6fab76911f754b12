//! `/v1/devboxes/{id}/execute*` and `/v1/devboxes/{id}/executions/*`, but for
//! the streams (`streams.rs`).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::addressed::{OfDevbox, OfExecution};
use super::hold::{self, WaitForStatus};
use super::{Lenient, Query};
use crate::error::{ApiError, ApiResult};
use crate::faults::Faulted;
use crate::guest::KillScope;
use crate::state::World;
use crate::state::choices::{OptimisticExpiry, StdinSupport, ZeroTimeout};
use crate::state::devboxes::Devbox;
use crate::state::executions::{Command, Execution, ExecutionStatus};
use crate::state::logs::Line;
use crate::state::settings::Settings;

pub(super) fn router() -> Router<Arc<World>> {
    let one = "/v1/devboxes/{id}/executions/{execution_id}";
    Router::new()
        .route("/v1/devboxes/{id}/execute", post(execute))
        .route("/v1/devboxes/{id}/execute_async", post(execute_async))
        .route("/v1/devboxes/{id}/execute_sync", post(execute_sync))
        .route(one, get(retrieve))
        .route(&format!("{one}/wait_for_status"), post(wait_for_status))
        .route(&format!("{one}/kill"), post(kill))
        .route(&format!("{one}/send_std_in"), post(send_std_in))
}

/// The body of all three; each reads its part.
#[derive(Debug, Deserialize)]
struct Execute {
    command: String,
    command_id: Option<String>,
    shell_name: Option<String>,
    optimistic_timeout: Option<f64>,
    #[serde(default)]
    attach_stdin: bool,
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

    fn into_command(self) -> Command {
        Command {
            script: self.command,
            command_id: self.command_id,
            shell_name: self.shell_name,
            attach_stdin: self.attach_stdin,
        }
    }
}

#[derive(Debug, Deserialize)]
struct Kill {
    #[serde(default)]
    kill_process_group: bool,
}

#[derive(Debug, Deserialize)]
struct SendStdin {
    text: Option<String>,
    signal: Option<StdinSignal>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum StdinSignal {
    Eof,
    Interrupt,
}

/// Waits for the end as long as is asked; the command goes on after that.
async fn execute(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    query: Query,
    Lenient(request): Lenient<Execute>,
) -> ApiResult<Json<Value>> {
    let settings = world.settings.get();
    let last_n = last_n(&query, &settings)?;
    let wait = request.optimistic_wait(&settings)?;
    if request.command_id.is_none() && settings.require_command_id {
        return Err(ApiError::bad_request("command_id is required"));
    }
    if request.attach_stdin {
        return Err(ApiError::bad_request("attach_stdin needs execute_async"));
    }
    let execution = start(&world, &devbox, request.into_command(), &settings).await?;
    match hold::until(execution.watch(), wait, || completed(&execution)).await {
        Err(expired) if settings.optimistic_expiry == OptimisticExpiry::RequestTimeout => {
            Err(expired)
        }
        // Completed, or still running: the view says which.
        Ok(()) | Err(_) => execution.view(last_n, &settings).map(Json),
    }
}

/// Has no key of idempotence (certain): a repeat runs again.
async fn execute_async(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    Lenient(mut request): Lenient<Execute>,
) -> ApiResult<Json<Value>> {
    let settings = world.settings.get();
    request.command_id = None;
    let execution = start(&world, &devbox, request.into_command(), &settings).await?;
    execution.view(settings.default_last_n, &settings).map(Json)
}

/// Holds until the end, however long; whole outputs.
async fn execute_sync(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    Lenient(mut request): Lenient<Execute>,
) -> ApiResult<Json<Value>> {
    let settings = world.settings.get();
    request.command_id = None;
    request.attach_stdin = false;
    let execution = start(&world, &devbox, request.into_command(), &settings).await?;
    hold::until(
        execution.watch(),
        Duration::from_secs(u64::from(u32::MAX)),
        || completed(&execution),
    )
    .await?;
    execution.sync_view(&settings).map(Json)
}

async fn start(
    world: &Arc<World>,
    devbox: &Arc<Devbox>,
    command: Command,
    settings: &Arc<Settings>,
) -> ApiResult<Arc<Execution>> {
    let guest = devbox.running_guest(settings.not_running_status)?;
    let (world, devbox, settings) = (Arc::clone(world), Arc::clone(devbox), Arc::clone(settings));
    // A client that leaves must not stop a start half-way: a command would run
    // that nobody knows of.
    let start = async move {
        devbox.touch(world.clock.now_ms());
        let (execution, is_new) = devbox
            .executions
            .start(&guest, devbox.id(), command, &settings)
            .await?;
        if is_new {
            tokio::spawn(note(world, devbox, Arc::clone(&execution)));
        }
        Ok(execution)
    };
    tokio::spawn(start)
        .await
        .unwrap_or_else(|error| Err(ApiError::internal(error.to_string())))
}

/// Logs the begin and the end; the end also begins the box's idle time anew.
async fn note(world: Arc<World>, devbox: Arc<Devbox>, execution: Arc<Execution>) {
    devbox
        .log
        .write(Line::execution(&execution, None, world.clock.now_ms()));
    let mut changes = execution.watch();
    let ended = changes
        .wait_for(|status| status.exit_status().is_some())
        .await;
    let exit_code = ended.ok().and_then(|status| status.exit_status());
    let now_ms = world.clock.now_ms();
    devbox.touch(now_ms);
    devbox
        .log
        .write(Line::execution(&execution, exit_code, now_ms));
}

fn completed(execution: &Execution) -> Option<()> {
    matches!(execution.status(), ExecutionStatus::Completed(_)).then_some(())
}

async fn retrieve(
    State(world): State<Arc<World>>,
    OfExecution { execution, .. }: OfExecution,
    query: Query,
) -> ApiResult<Json<Value>> {
    let settings = world.settings.get();
    let last_n = last_n(&query, &settings)?;
    execution.view(last_n, &settings).map(Json)
}

async fn wait_for_status(
    State(world): State<Arc<World>>,
    OfExecution { execution, .. }: OfExecution,
    query: Query,
    Lenient(request): Lenient<WaitForStatus>,
) -> ApiResult<Json<Value>> {
    request.check(|status| ExecutionStatus::NAMES.contains(&status))?;
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
    execution.view(last_n, &settings).map(Json)
}

/// Killing what has ended is 200 (certain: clients clean up that way).
async fn kill(
    State(world): State<Arc<World>>,
    OfExecution { execution, .. }: OfExecution,
    faulted: Faulted,
    Lenient(request): Lenient<Kill>,
) -> ApiResult<Json<Value>> {
    if !faulted.has_no_effect() {
        let scope = if request.kill_process_group {
            KillScope::Group
        } else {
            KillScope::Leader
        };
        execution.kill(scope).await?;
    }
    let settings = world.settings.get();
    execution.view(settings.default_last_n, &settings).map(Json)
}

async fn send_std_in(
    State(world): State<Arc<World>>,
    OfExecution { devbox, execution }: OfExecution,
    faulted: Faulted,
    Lenient(request): Lenient<SendStdin>,
) -> ApiResult<Json<Value>> {
    devbox.touch(world.clock.now_ms());
    if faulted.has_no_effect() {
        // Nothing is sent.
    } else if world.settings.get().stdin == StdinSupport::Kills {
        execution.kill(KillScope::Group).await?;
    } else {
        if let Some(text) = &request.text {
            execution.send_stdin(text).await?;
        }
        match request.signal {
            Some(StdinSignal::Eof) => execution.close_stdin().await?,
            Some(StdinSignal::Interrupt) => execution.interrupt().await?,
            None => {}
        }
    }
    Ok(Json(json!({
        "devbox_id": execution.devbox_id,
        "execution_id": execution.id,
        "success": true,
    })))
}

fn last_n(query: &Query, settings: &Settings) -> ApiResult<usize> {
    Ok(query.number("last_n")?.unwrap_or(settings.default_last_n))
}
