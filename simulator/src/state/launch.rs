//! Launch parameters: what a client may ask of a box.
//!
//! The view echoes them as they came. What breaks a documented rule is a 400
//! (the service's status for it is unknown).

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{ApiError, ApiResult};
use crate::guest::User;

/// Certain, from the clients.
const DEFAULT_LIFETIME_SECONDS: i64 = 3600;
const MAX_LIFETIME_SECONDS: i64 = 172_800;
const DEFAULT_SUSPEND_DEADLINE_MS: u64 = 30_000;
const MAX_SUSPEND_DEADLINE_MS: u64 = 60_000;

/// Names of the fields that say how large a box is: what a restored box takes
/// over from its source unless it is given its own (inferred).
pub(crate) const SIZE_FIELDS: [&str; 4] = [
    "resource_size_request",
    "custom_cpu_cores",
    "custom_gb_memory",
    "custom_disk_size",
];

/// vCPUs, GiB of memory and GiB of disk by name; SMALL without a name.
const SIZES: [(&str, f64, f64, f64); 6] = [
    ("X_SMALL", 0.5, 1.0, 4.0),
    ("SMALL", 1.0, 2.0, 4.0),
    ("MEDIUM", 2.0, 4.0, 8.0),
    ("LARGE", 2.0, 8.0, 16.0),
    ("X_LARGE", 4.0, 16.0, 16.0),
    ("XX_LARGE", 8.0, 32.0, 16.0),
];

/// What happens when a box has been idle for long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnIdle {
    Shutdown,
    Suspend,
}

/// The idle rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct AfterIdle {
    pub(crate) idle_time_seconds: i64,
    pub(crate) on_idle: OnIdle,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Lifecycle {
    after_idle: Option<AfterIdle>,
    #[serde(default)]
    resume_triggers: ResumeTriggers,
    #[serde(default)]
    lifecycle_hooks: Hooks,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct ResumeTriggers {
    http: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Hooks {
    #[serde(default)]
    suspend_commands: Vec<String>,
    suspend_deadline_ms: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
struct UserParameters {
    username: String,
    uid: u32,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Fields {
    resource_size_request: Option<String>,
    custom_cpu_cores: Option<f64>,
    custom_gb_memory: Option<f64>,
    custom_disk_size: Option<f64>,
    keep_alive_time_seconds: Option<i64>,
    after_idle: Option<AfterIdle>,
    #[serde(default)]
    lifecycle: Lifecycle,
    #[serde(default)]
    launch_commands: Vec<String>,
    user_parameters: Option<UserParameters>,
    network_policy_id: Option<String>,
    architecture: Option<String>,
    provisioning_tier: Option<String>,
}

/// How large a box is. Only the disk's size is enforced; usage is counted by
/// all three.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Size {
    pub(crate) vcpus: f64,
    pub(crate) memory_gib: f64,
    pub(crate) disk_gib: f64,
}

impl Size {
    pub(crate) fn disk_bytes(self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole numbers from 2 to 64"
        )]
        let gib = self.disk_gib as u64;
        gib << 30
    }
}

/// Launch parameters, understood.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) size: Size,
    /// `None` when an idle rule takes its place.
    pub(crate) lifetime_seconds: Option<i64>,
    pub(crate) after_idle: Option<AfterIdle>,
    pub(crate) launch_commands: Vec<String>,
    pub(crate) suspend_commands: Vec<String>,
    pub(crate) suspend_deadline_ms: u64,
    /// Outranks the tunnel's own `wake_on_http` when given.
    pub(crate) resume_on_http: Option<bool>,
    pub(crate) user: User,
    pub(crate) network_policy_id: Option<String>,
    /// Such a box begins `queued`.
    pub(crate) is_flex: bool,
}

impl Launch {
    /// Reads and checks launch parameters.
    pub(crate) fn parse(parameters: &Map<String, Value>) -> ApiResult<Self> {
        let fields: Fields = serde_json::from_value(Value::Object(parameters.clone()))
            .map_err(|error| ApiError::bad_request(format!("launch_parameters: {error}")))?;
        let size = size(&fields)?;
        let after_idle = match (fields.after_idle, fields.lifecycle.after_idle) {
            (Some(outer), Some(nested)) if outer != nested => {
                return Err(ApiError::bad_request(
                    "after_idle and lifecycle.after_idle must be the same",
                ));
            }
            (outer, nested) => nested.or(outer),
        };
        if after_idle.is_some_and(|rule| rule.idle_time_seconds <= 0) {
            return Err(ApiError::bad_request("idle_time_seconds must be positive"));
        }
        let lifetime = fields
            .keep_alive_time_seconds
            .unwrap_or(DEFAULT_LIFETIME_SECONDS);
        if !(1..=MAX_LIFETIME_SECONDS).contains(&lifetime) {
            return Err(ApiError::bad_request(format!(
                "keep_alive_time_seconds must be from 1 to {MAX_LIFETIME_SECONDS}"
            )));
        }
        one_of(
            "architecture",
            fields.architecture.as_deref(),
            &["x86_64", "arm64"],
        )?;
        one_of(
            "provisioning_tier",
            fields.provisioning_tier.as_deref(),
            &["standard", "flex"],
        )?;
        let hooks = fields.lifecycle.lifecycle_hooks;
        let suspend_deadline_ms = hooks
            .suspend_deadline_ms
            .unwrap_or(DEFAULT_SUSPEND_DEADLINE_MS);
        if suspend_deadline_ms > MAX_SUSPEND_DEADLINE_MS {
            return Err(ApiError::bad_request(format!(
                "suspend_deadline_ms must be at most {MAX_SUSPEND_DEADLINE_MS}"
            )));
        }
        Ok(Self {
            size,
            lifetime_seconds: after_idle.is_none().then_some(lifetime),
            after_idle,
            launch_commands: fields.launch_commands,
            suspend_commands: hooks.suspend_commands,
            suspend_deadline_ms,
            resume_on_http: fields.lifecycle.resume_triggers.http,
            user: fields.user_parameters.map_or_else(User::default, user),
            network_policy_id: fields.network_policy_id.filter(|id| !id.is_empty()),
            is_flex: fields.provisioning_tier.as_deref() == Some("flex"),
        })
    }
}

/// Homes are documented: `/root`, `/home/user`, `/home/<username>`.
fn user(parameters: UserParameters) -> User {
    if parameters.username == "root" {
        return User::root();
    }
    let home = format!("/home/{}", parameters.username);
    User {
        name: parameters.username,
        uid: parameters.uid,
        home,
    }
}

fn one_of(name: &str, value: Option<&str>, known: &[&str]) -> ApiResult<()> {
    match value {
        Some(value) if !known.contains(&value) => Err(ApiError::bad_request(format!(
            "{name} must be one of {}, not {value}",
            known.join(", ")
        ))),
        _ => Ok(()),
    }
}

fn size(fields: &Fields) -> ApiResult<Size> {
    let name = fields.resource_size_request.as_deref().unwrap_or("SMALL");
    if name != "CUSTOM_SIZE" {
        return SIZES
            .iter()
            .find(|(known, ..)| *known == name)
            .map(|&(_, vcpus, memory_gib, disk_gib)| Size {
                vcpus,
                memory_gib,
                disk_gib,
            })
            .ok_or_else(|| ApiError::bad_request(format!("unknown resource_size_request {name}")));
    }
    let (Some(vcpus), Some(memory_gib)) = (fields.custom_cpu_cores, fields.custom_gb_memory) else {
        return Err(ApiError::bad_request(
            "CUSTOM_SIZE needs custom_cpu_cores and custom_gb_memory",
        ));
    };
    let disk_gib = fields.custom_disk_size.unwrap_or(16.0);
    let is_even = |number: f64| number > 0.0 && number % 2.0 == 0.0;
    let rules = [
        (
            vcpus <= 16.0 && (is_even(vcpus) || [0.5, 1.0].contains(&vcpus)),
            "custom_cpu_cores must be 0.5, 1 or even, at most 16",
        ),
        (
            memory_gib <= 64.0 && (is_even(memory_gib) || [1.0].contains(&memory_gib)),
            "custom_gb_memory must be 1 or even, at most 64",
        ),
        (
            (2.0..=64.0).contains(&disk_gib) && is_even(disk_gib),
            "custom_disk_size must be even, from 2 to 64",
        ),
        (
            (2.0 * vcpus..=8.0 * vcpus).contains(&memory_gib),
            "custom_gb_memory must be from 2 to 8 times custom_cpu_cores",
        ),
    ];
    match rules.iter().find(|(holds, _)| !holds) {
        Some((_, broken)) => Err(ApiError::bad_request(*broken)),
        None => Ok(Size {
            vcpus,
            memory_gib,
            disk_gib,
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(parameters: Value) -> ApiResult<Launch> {
        Launch::parse(parameters.as_object().unwrap())
    }

    #[test]
    fn sizes_are_checked_by_the_documented_rules() {
        assert_eq!(parse(json!({})).unwrap().size.disk_gib, 4.0);
        let custom = |cpu: f64, memory: f64| {
            parse(json!({
                "resource_size_request": "CUSTOM_SIZE",
                "custom_cpu_cores": cpu,
                "custom_gb_memory": memory,
            }))
        };
        assert!(custom(0.5, 4.0).is_ok());
        assert!(custom(16.0, 64.0).is_ok());
        for (cpu, memory) in [
            (3.0, 8.0),
            (18.0, 64.0),
            (2.0, 3.0),
            (1.0, 64.0),
            (4.0, 4.0),
        ] {
            assert_eq!(
                custom(cpu, memory).unwrap_err().status,
                400,
                "{cpu} {memory}"
            );
        }
        assert!(parse(json!({ "resource_size_request": "HUGE" })).is_err());
    }

    #[test]
    fn an_idle_rule_takes_the_place_of_the_lifetime() {
        let rule = json!({ "idle_time_seconds": 60, "on_idle": "suspend" });
        let other = json!({ "idle_time_seconds": 61, "on_idle": "suspend" });
        assert_eq!(parse(json!({})).unwrap().lifetime_seconds, Some(3600));
        let launch = parse(json!({ "after_idle": rule, "keep_alive_time_seconds": 60 })).unwrap();
        assert_eq!(launch.lifetime_seconds, None);
        assert!(parse(json!({ "after_idle": rule, "lifecycle": { "after_idle": rule } })).is_ok());
        assert!(
            parse(json!({ "after_idle": rule, "lifecycle": { "after_idle": other } })).is_err()
        );
        assert!(parse(json!({ "keep_alive_time_seconds": 172_801 })).is_err());
    }
}
