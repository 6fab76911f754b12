//! What Runloop, or this adapter, cannot do, and why. The one table of it.
//!
//! The record of capabilities is made from it and every refusal quotes it, so
//! that what is predicted and what happens cannot drift apart. Names are the
//! dotted paths of the client's tree of capabilities.

use crate::error::Error;

/// Feature and reason, in the order of the record.
pub const UNSUPPORTED: &[(&str, &str)] = &[
    (
        "sandboxes.renew",
        "Runloop sets the lifetime of a Devbox at its creation and extends none",
    ),
    ("sandboxes.terminal", "this adapter opens no terminals"),
    (
        "sandboxes.labels",
        "this adapter sets no labels on Devboxes",
    ),
    ("sandboxes.regions", "Runloop offers no choice of region"),
    (
        "sandboxes.fork",
        "Runloop has no fork; capture a snapshot and restore it",
    ),
    (
        "exec.callbacks",
        "a command's output comes with its result; use processes.start to follow it",
    ),
    (
        "processes.bytes",
        "Runloop streams output as UTF-8 text; run the command with exec for bytes",
    ),
    (
        "processes.stdin",
        "Runloop offers no usable standard input; give exec a finite stdin",
    ),
    (
        "files.writeNew",
        "Runloop has no write that fails where the file exists; pass overwrite: true",
    ),
    (
        "files.list",
        "Runloop has no directory operations; run ls with exec",
    ),
    (
        "files.mkdir",
        "Runloop has no directory operations; run mkdir with exec",
    ),
    (
        "files.remove",
        "Runloop has no directory operations; run rm with exec",
    ),
    (
        "files.rename",
        "Runloop has no directory operations; run mv with exec",
    ),
    (
        "images.oci",
        "Runloop starts Devboxes from blueprints, not from OCI images",
    ),
    (
        "images.build",
        "this adapter builds no images; build a blueprint with Runloop's own tools",
    ),
    (
        "network.allow",
        "this adapter has no egress allowlists; use \"blocked\" or \"internet\"",
    ),
    ("volumes.create", "Runloop has no volumes"),
    ("volumes.get", "Runloop has no volumes"),
    ("volumes.list", "Runloop has no volumes"),
    ("volumes.delete", "Runloop has no volumes"),
    ("volumes.mount", "Runloop has no volumes to mount"),
];

/// The refusal of a feature, with the reason of the table.
#[must_use]
pub fn unsupported(feature: &'static str) -> Error {
    let reason = UNSUPPORTED
        .iter()
        .find(|(name, _)| *name == feature)
        .map(|(_, reason)| *reason);
    Error::unsupported(feature, reason.unwrap_or("this adapter does not have it"))
}
