//! What moves a Devbox from one status to the next.
//!
//! ```text
//! create -> (queued) -> provisioning -> initializing -> running
//! running -> suspending -> suspended -> resuming -> running
//! any live status -> shutdown; a boot that fails -> failure
//! ```
//! Every step checks that the box is still where the step starts from, so a
//! shutdown in the middle wins.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::World;
use super::accounts::AccountKey;
use super::choices::{CommandShell, LaunchFailure, LifetimeStart, PolicyEdits};
use super::create::CreateDevbox;
use super::devboxes::Devbox;
use super::logs::{Line, Source};
use super::persist::has_disk;
use super::status::DevboxStatus;
use crate::error::{ApiError, ApiResult};
use crate::guest::{BoxSpec, Guest, GuestShell, Image, Network, Spawn};

/// A boot that went wrong: why, and what the view says.
struct BootFailure {
    message: String,
    reason: &'static str,
}

impl<E: std::error::Error> From<E> for BootFailure {
    fn from(error: E) -> Self {
        Self {
            message: error.to_string(),
            reason: "health_check_failed",
        }
    }
}

/// Makes a box and starts to bring it up.
pub(crate) fn create(
    world: &Arc<World>,
    account_id: &AccountKey,
    request: CreateDevbox,
) -> ApiResult<Arc<Devbox>> {
    let devbox = world.new_devbox(account_id, request)?;
    if world.settings.get().lifetime_start == LifetimeStart::Create {
        start_lifetime(world, &devbox);
    }
    tokio::spawn(bring_to_running(
        Arc::clone(world),
        Arc::clone(&devbox),
        Start::Boot,
    ));
    Ok(devbox)
}

/// Starts to suspend a running box.
pub(crate) fn suspend(world: &Arc<World>, devbox: &Arc<Devbox>) -> ApiResult<()> {
    if !step(
        world,
        devbox,
        DevboxStatus::Running,
        DevboxStatus::Suspending,
    ) {
        return Err(not_in(devbox, "running"));
    }
    let (world, devbox) = (Arc::clone(world), Arc::clone(devbox));
    tokio::spawn(async move {
        tokio::select! {
            () = go_to_sleep(&world, &devbox) => {}
            () = devbox.ended.cancelled() => {}
        }
    });
    Ok(())
}

/// Starts to resume a suspended box.
pub(crate) fn resume(world: &Arc<World>, devbox: &Arc<Devbox>) -> ApiResult<()> {
    if !step(
        world,
        devbox,
        DevboxStatus::Suspended,
        DevboxStatus::Resuming,
    ) {
        return Err(not_in(devbox, "suspended"));
    }
    tokio::spawn(bring_to_running(
        Arc::clone(world),
        Arc::clone(devbox),
        Start::Resume,
    ));
    Ok(())
}

/// Ends a box for good; on one that has ended it changes nothing.
pub(crate) fn shut_down(world: &World, devbox: &Devbox, reason: &'static str) {
    let now_ms = world.clock.now_ms();
    devbox.change(|record| {
        if !record.status.is_final() {
            record.shutdown_reason = Some(reason.to_owned());
            record.enter(DevboxStatus::Shutdown, now_ms);
        }
    });
    release(devbox);
}

/// Lets a box of an earlier simulator go on, suspended.
pub(super) async fn take_over(world: &World, devbox: &Devbox) {
    let status = devbox.status();
    if status.is_final() {
        return;
    }
    let taken = async {
        let guest = world.machine.boot(world.box_spec(devbox), None).await?;
        guest.suspend().await?;
        Ok::<_, crate::guest::GuestError>(guest)
    };
    let guest = if has_disk(status) {
        taken.await.ok()
    } else {
        None
    };
    let Some(guest) = guest else {
        fail(world, devbox, "health_check_failed");
        return;
    };
    devbox.set_guest(guest);
    let now_ms = world.clock.now_ms();
    devbox.change(|record| {
        if record.status != DevboxStatus::Suspended {
            record.enter(DevboxStatus::Suspended, now_ms);
        }
    });
}

fn not_in(devbox: &Devbox, wanted: &str) -> ApiError {
    ApiError::bad_request(format!(
        "devbox {} is not {wanted}: its status is {}",
        devbox.id(),
        devbox.status().as_str()
    ))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    Boot,
    Resume,
}

async fn bring_to_running(world: Arc<World>, devbox: Arc<Devbox>, start: Start) {
    let brought_up = tokio::select! {
        brought_up = bring_up(&world, &devbox, start) => brought_up,
        () = devbox.ended.cancelled() => Ok(()),
    };
    if let Err(failure) = brought_up {
        tracing::warn!(
            devbox = devbox.id(),
            reason = failure.message,
            "the box failed"
        );
        fail(&world, &devbox, failure.reason);
    }
    if devbox.ended.is_cancelled() {
        // It may have got its machine at the very moment it ended.
        release(&devbox);
    }
}

async fn bring_up(
    world: &Arc<World>,
    devbox: &Arc<Devbox>,
    start: Start,
) -> Result<(), BootFailure> {
    let settings = world.settings.get();
    let guest = match start {
        Start::Boot => {
            tokio::time::sleep(Duration::from_millis(settings.boot_ms)).await;
            step(
                world,
                devbox,
                DevboxStatus::Queued,
                DevboxStatus::Provisioning,
            );
            step(
                world,
                devbox,
                DevboxStatus::Provisioning,
                DevboxStatus::Initializing,
            );
            let spec = world.box_spec(devbox);
            let guest = world
                .machine
                .boot(spec, devbox.origin.layer.as_ref())
                .await?;
            devbox.set_guest(guest.clone());
            mount_files(devbox, &guest).await?;
            guest
        }
        Start::Resume => {
            tokio::time::sleep(Duration::from_millis(settings.resume_ms)).await;
            let guest = devbox.guest().ok_or_else(|| BootFailure {
                message: "the box has no machine to resume".to_owned(),
                reason: "health_check_failed",
            })?;
            match settings.policy_edits {
                PolicyEdits::NextStart => guest.resume_on(world.network(devbox)).await?,
                PolicyEdits::Never => guest.resume().await?,
            }
            guest
        }
    };
    run_launch_commands(world, devbox, &guest, settings.launch_failure).await?;
    let from = match start {
        Start::Boot => DevboxStatus::Initializing,
        Start::Resume => DevboxStatus::Resuming,
    };
    if step(world, devbox, from, DevboxStatus::Running) {
        devbox.touch(world.clock.now_ms());
        match settings.lifetime_start {
            LifetimeStart::Resume => start_lifetime(world, devbox),
            LifetimeStart::Running if start == Start::Boot => start_lifetime(world, devbox),
            LifetimeStart::Running | LifetimeStart::Create => {}
        }
        start_entrypoint(world, devbox, &guest).await?;
    }
    Ok(())
}

async fn mount_files(devbox: &Devbox, guest: &Guest) -> Result<(), BootFailure> {
    for (path, content) in &devbox.origin.file_mounts {
        guest.write_file(path, Bytes::from(content.clone())).await?;
    }
    Ok(())
}

/// Certain: they run before `running`, at each start.
async fn run_launch_commands(
    world: &World,
    devbox: &Devbox,
    guest: &Guest,
    on_failure: LaunchFailure,
) -> Result<(), BootFailure> {
    for command in &devbox.origin.launch.launch_commands {
        let exit_code = guest
            .spawn(Spawn::new(command.as_str()))
            .await?
            .exited()
            .await;
        log_command(world, devbox, Source::SetupCommands, command, exit_code);
        if exit_code != 0 && on_failure == LaunchFailure::Fails {
            return Err(BootFailure {
                message: format!("a launch command ended with {exit_code}"),
                reason: "execution_failed",
            });
        }
    }
    Ok(())
}

/// The box ends with its entrypoint (inferred from `entrypoint_exit`).
async fn start_entrypoint(
    world: &Arc<World>,
    devbox: &Arc<Devbox>,
    guest: &Guest,
) -> Result<(), BootFailure> {
    let Some(command) = devbox.origin.entrypoint.clone() else {
        return Ok(());
    };
    let process = guest.spawn(Spawn::new(command.as_str())).await?;
    let (world, devbox) = (Arc::clone(world), Arc::clone(devbox));
    tokio::spawn(async move {
        let exit_code = process.exited().await;
        // A suspend ends it too, and is not its exit.
        if devbox.status() == DevboxStatus::Running {
            log_command(&world, &devbox, Source::Entrypoint, &command, exit_code);
            shut_down(&world, &devbox, "entrypoint_exit");
        }
    });
    Ok(())
}

fn log_command(world: &World, devbox: &Devbox, source: Source, command: &str, exit_code: i32) {
    devbox.log.write(Line {
        command: Some(command.to_owned()),
        exit_code: Some(exit_code),
        message: None,
        ..Line::message(source, "", world.clock.now_ms())
    });
}

async fn go_to_sleep(world: &World, devbox: &Devbox) {
    let settings = world.settings.get();
    let launch = &devbox.origin.launch;
    tokio::time::sleep(Duration::from_millis(settings.suspend_ms)).await;
    let Some(guest) = devbox.guest() else { return };
    let hooks = async {
        for command in &launch.suspend_commands {
            let Ok(process) = guest.spawn(Spawn::new(command.as_str())).await else {
                return;
            };
            let exit_code = process.exited().await;
            log_command(world, devbox, Source::SetupCommands, command, exit_code);
        }
    };
    let deadline = Duration::from_millis(launch.suspend_deadline_ms);
    if tokio::time::timeout(deadline, hooks).await.is_err() {
        tracing::info!(devbox = devbox.id(), "suspend commands ran out of time");
    }
    if let Err(error) = guest.suspend().await {
        tracing::warn!(devbox = devbox.id(), %error, "the box could not be suspended");
        fail(world, devbox, "health_check_failed");
        return;
    }
    if !settings.executions_survive_suspend {
        devbox.executions.clear();
    }
    step(
        world,
        devbox,
        DevboxStatus::Suspending,
        DevboxStatus::Suspended,
    );
}

/// Goes from one status to the next, if the box still is in the first.
fn step(world: &World, devbox: &Devbox, from: DevboxStatus, to: DevboxStatus) -> bool {
    let now_ms = world.clock.now_ms();
    devbox.change(|record| {
        let is_there = record.status == from;
        if is_there {
            record.enter(to, now_ms);
        }
        is_there
    })
}

fn start_lifetime(world: &World, devbox: &Devbox) {
    let lifetime_ms = devbox
        .origin
        .launch
        .lifetime_seconds
        .map(|seconds| seconds * 1000);
    devbox.read().lifetime_end_ms = lifetime_ms.map(|length| world.clock.now_ms() + length);
    world.deadline_changed.notify_one();
}

fn fail(world: &World, devbox: &Devbox, reason: &'static str) {
    let now_ms = world.clock.now_ms();
    devbox.change(|record| {
        if !record.status.is_final() {
            record.failure_reason = Some(reason.to_owned());
            record.enter(DevboxStatus::Failure, now_ms);
        }
    });
    release(devbox);
}

/// Gives the machine back.
fn release(devbox: &Devbox) {
    devbox.ended.cancel();
    if let Some(guest) = devbox.take_guest() {
        let id = devbox.id().to_owned();
        tokio::spawn(async move {
            if let Err(error) = guest.destroy().await {
                tracing::debug!(devbox = id, %error, "the machine was already gone");
            }
        });
    }
}

impl World {
    /// What the box's policy lets it reach now.
    fn network(&self, devbox: &Devbox) -> Network {
        let origin = &devbox.origin;
        let id = origin.launch.network_policy_id.as_ref();
        match id.and_then(|id| self.policies.get(&origin.account_id, id).ok()) {
            // Host names and CIDRs are not told apart: what is not open is closed.
            Some(policy) if !policy.allow_all => Network::LoopbackOnly,
            _ => Network::Open,
        }
    }

    fn box_spec(&self, devbox: &Devbox) -> BoxSpec {
        let settings = self.settings.get();
        let launch = &devbox.origin.launch;
        let shell = match settings.shell {
            CommandShell::Bash => GuestShell::Bash,
            CommandShell::Dash => GuestShell::Dash,
            CommandShell::Busybox => GuestShell::BusyBox,
        };
        BoxSpec {
            env: devbox.origin.environment.clone(),
            network: self.network(devbox),
            image: Image {
                shell,
                tools: settings.tools.clone(),
            },
            user: launch.user.clone(),
            max_disk_bytes: Some(
                settings
                    .disk_quota_bytes
                    .unwrap_or(launch.size.disk_bytes()),
            ),
            ..BoxSpec::new(devbox.id())
        }
    }
}
