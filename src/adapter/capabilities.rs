//! What a connection can do. Computed from settings and two tables, without a request.
//!
//! What is missing comes from [`config::features`](crate::config::features),
//! whose reasons the refusals quote too. A leaf that is in neither table does
//! not exist, which the client treats as unsupported.

use serde_json::{Map, Value, json};

use super::Connection;
use crate::config::features::UNSUPPORTED;
use crate::config::{Access, Config, Lifecycle};

/// Longest command, in seconds.
pub(super) const MAX_EXEC_SECONDS: u32 = 3600;

/// Most bytes of each stream that a command's result holds.
pub(super) const MAX_OUTPUT_BYTES: u32 = 1024 * 1024;

/// Largest file, in bytes.
pub(super) const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;

impl Connection {
    /// The nested record; a leaf is `{ status, value?, options? }` or `{ status, reason }`.
    #[must_use]
    pub fn capabilities(&self) -> Value {
        record(self.config())
    }
}

fn record(config: &Config) -> Value {
    let mut tree = Map::new();
    for (feature, leaf) in supported(config) {
        insert(&mut tree, feature, leaf);
    }
    for (feature, reason) in UNSUPPORTED {
        insert(
            &mut tree,
            feature,
            json!({ "status": "unsupported", "reason": reason }),
        );
    }
    Value::Object(tree)
}

fn insert(tree: &mut Map<String, Value>, feature: &str, leaf: Value) {
    let (area, name) = feature.split_once('.').unwrap_or((feature, "use"));
    let area = tree.entry(area).or_insert_with(|| json!({}));
    if let Value::Object(area) = area {
        area.insert(name.to_owned(), leaf);
    }
}

fn supported(config: &Config) -> Vec<(&'static str, Value)> {
    let plain = || json!({ "status": "supported" });
    let with = |value: Value| json!({ "status": "supported", "value": value });
    let files = || with(json!({ "maxBytes": MAX_FILE_BYTES }));
    let access = match config.preview {
        Access::Protected => "protected",
        Access::Public => "public",
    };
    // A lifetime beside an idle time would be ignored by the service.
    let (create_options, restore_options) = match config.lifecycle {
        Lifecycle::Lifetime { .. } => (
            json!(["env", "lifecycle", "network"]),
            json!(["env", "lifecycle"]),
        ),
        Lifecycle::Idle { .. } => (json!(["env", "network"]), json!(["env"])),
    };
    vec![
        (
            "sandboxes.create",
            json!({ "status": "supported", "options": create_options }),
        ),
        ("sandboxes.list", plain()),
        ("sandboxes.suspend", plain()),
        ("sandboxes.resume", plain()),
        (
            "exec.run",
            with(json!({
                "maxTimeoutSeconds": MAX_EXEC_SECONDS,
                "maxOutputBytes": MAX_OUTPUT_BYTES,
            })),
        ),
        ("processes.stream", plain()),
        ("processes.reopen", plain()),
        ("processes.kill", plain()),
        ("files.read", files()),
        ("files.write", files()),
        ("images.prepared", plain()),
        ("network.blocked", plain()),
        ("network.internet", plain()),
        ("previews.open", with(json!({ "access": access }))),
        (
            "snapshots.capture",
            with(json!({
                "preserve": "filesystem",
                "interruption": "pause",
                "sourceAfter": "running",
                "retentionSeconds": null,
                "labels": true,
            })),
        ),
        (
            "snapshots.restore",
            json!({
                "status": "supported",
                "value": { "execution": "fresh", "lifecycle": "independent" },
                "options": restore_options,
            }),
        ),
        ("snapshots.list", plain()),
        ("snapshots.delete", plain()),
        ("recovery.sandboxes", plain()),
        ("recovery.snapshots", plain()),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn config(config: Value) -> Config {
        Config::parse(&json!({ "apiKey": "ak_1" }), &config).unwrap()
    }

    #[test]
    fn r34_everything_that_is_missing_is_predicted_with_its_reason() {
        let record = record(&config(json!({})));
        for (area, leaf) in [
            ("images", "oci"),
            ("images", "build"),
            ("volumes", "create"),
            ("volumes", "get"),
            ("volumes", "list"),
            ("volumes", "delete"),
            ("volumes", "mount"),
            ("network", "allow"),
            ("sandboxes", "renew"),
            ("processes", "stdin"),
            ("processes", "bytes"),
            ("sandboxes", "terminal"),
            ("files", "list"),
            ("files", "mkdir"),
            ("files", "remove"),
            ("files", "rename"),
            ("files", "writeNew"),
            ("exec", "callbacks"),
            ("sandboxes", "regions"),
            ("sandboxes", "labels"),
        ] {
            assert_eq!(record[area][leaf]["status"], "unsupported", "{area}.{leaf}");
            assert!(
                record[area][leaf]["reason"].as_str().unwrap().len() > 10,
                "{area}.{leaf}"
            );
        }
    }

    #[test]
    fn no_feature_is_in_both_tables_or_twice_in_one() {
        let config = config(json!({}));
        let supported = supported(&config);
        let names: Vec<&str> = supported
            .iter()
            .map(|(name, _)| *name)
            .chain(UNSUPPORTED.iter().map(|(name, _)| *name))
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(names.iter().all(|name| name.split('.').count() == 2));
    }

    #[test]
    fn v2_restore_accepts_a_lifetime_unless_an_idle_time_is_configured() {
        let options = |given| record(&config(given))["snapshots"]["restore"]["options"].clone();
        assert_eq!(options(json!({})), json!(["env", "lifecycle"]));
        assert_eq!(
            options(json!({ "lifecycle": { "idleSeconds": 60 } })),
            json!(["env"])
        );
    }
}
