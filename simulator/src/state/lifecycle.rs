//! What moves a Devbox from one status to the next.
//!
//! ```text
//! create -> provisioning -> initializing -> running
//! any live status -> shutdown; a boot that fails -> failure
//! ```
//! Every step checks that the box is still where the step starts from, so a
//! shutdown in the middle wins.

use std::sync::Arc;
use std::time::Duration;

use super::World;
use super::devboxes::{CreateDevbox, Devbox};
use super::ids;
use super::machine::Guest;
use super::status::DevboxStatus;
use crate::error::ApiResult;

/// Makes a box and starts to bring it up.
pub(crate) fn create(
    world: &Arc<World>,
    account_id: Arc<str>,
    request: CreateDevbox,
) -> ApiResult<Arc<Devbox>> {
    if let Some(policy) = request.launch_parameters.get("network_policy_id") {
        let id = policy.as_str().unwrap_or_default();
        // 400, not 404 (inferred): the policy is a parameter here.
        world
            .policies
            .get(&account_id, id)
            .map_err(|error| crate::error::ApiError::bad_request(error.message))?;
    }
    let devbox = Devbox::new(ids::fresh("dbx"), account_id, request, world.clock.now_ms());
    world.devboxes.add(Arc::clone(&devbox));
    tokio::spawn(boot(Arc::clone(world), Arc::clone(&devbox)));
    Ok(devbox)
}

async fn boot(world: Arc<World>, devbox: Arc<Devbox>) {
    let brought_up = tokio::select! {
        brought_up = bring_up(&world, &devbox) => brought_up,
        () = devbox.ended.cancelled() => return,
    };
    if let Err(error) = brought_up {
        tracing::warn!(devbox = devbox.id, %error, "boot failed");
        fail(&world, &devbox, "execution_failed");
    }
}

async fn bring_up(world: &Arc<World>, devbox: &Arc<Devbox>) -> std::io::Result<()> {
    tokio::time::sleep(Duration::from_millis(world.settings.get().boot_ms)).await;
    step(
        world,
        devbox,
        DevboxStatus::Provisioning,
        DevboxStatus::Initializing,
    );
    let environment = devbox.read().environment.clone();
    let guest = Arc::new(Guest::boot(&devbox.id, environment).await?);
    devbox.set_guest(Some(guest));
    step(
        world,
        devbox,
        DevboxStatus::Initializing,
        DevboxStatus::Running,
    );
    Ok(())
}

/// Goes from one status to the next, if the box still is in the first.
fn step(world: &World, devbox: &Devbox, from: DevboxStatus, to: DevboxStatus) -> bool {
    let now_ms = world.clock.now_ms();
    devbox.change(|record| {
        let here = record.status == from;
        if here {
            record.enter(to, now_ms);
        }
        here
    })
}

fn fail(world: &World, devbox: &Devbox, reason: &'static str) {
    let now_ms = world.clock.now_ms();
    devbox.change(|record| {
        if !record.status.is_final() {
            record.failure_reason = Some(reason);
            record.enter(DevboxStatus::Failure, now_ms);
        }
    });
    release(devbox);
}

/// Ends a box for good; on one that has ended it changes nothing.
pub(crate) fn shut_down(world: &World, devbox: &Devbox, reason: &'static str) {
    let now_ms = world.clock.now_ms();
    devbox.change(|record| {
        if !record.status.is_final() {
            record.shutdown_reason = Some(reason);
            record.enter(DevboxStatus::Shutdown, now_ms);
        }
    });
    release(devbox);
}

/// Gives the machine back.
fn release(devbox: &Devbox) {
    devbox.ended.cancel();
    if let Some(guest) = devbox.set_guest(None) {
        tokio::spawn(async move { guest.destroy().await });
    }
}
