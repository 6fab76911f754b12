//! What was asked of a Devbox, and how the service's echo differs from it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::records::Difference;
use crate::config::{Access, Lifecycle, Size};
use crate::wire::devboxes::{AfterIdle, CreateTunnel, Devbox, LaunchParameters};

/// Devboxes whose settings a connection remembers; the oldest is forgotten first.
const MAX_REMEMBERED: usize = 4096;

/// The settings of one create.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) size: Option<Size>,
    pub(super) lifecycle: Lifecycle,
    /// `None` is no policy.
    pub(super) policy_id: Option<String>,
    pub(super) preview: Access,
}

impl Asked {
    pub(super) fn launch_parameters(&self) -> LaunchParameters {
        let mut launch = LaunchParameters {
            network_policy_id: self.policy_id.clone(),
            resource_size_request: self.size.map(|size| size.name.to_owned()),
            ..LaunchParameters::default()
        };
        if let Some(size) = self.size.filter(Size::is_custom) {
            launch.custom_cpu_cores = Some(size.vcpus);
            launch.custom_gb_memory = Some(f64::from(size.memory_mib) / 1024.0);
        }
        // Never both: the service ignores the lifetime beside an idle time, or refuses the pair.
        match self.lifecycle {
            Lifecycle::Lifetime { seconds } => {
                launch.keep_alive_time_seconds = Some(f64::from(seconds));
            }
            Lifecycle::Idle { seconds } => {
                launch.after_idle = Some(AfterIdle {
                    idle_time_seconds: Some(f64::from(seconds)),
                    on_idle: Some("suspend".to_owned()),
                });
            }
        }
        launch
    }

    pub(super) fn tunnel(&self) -> CreateTunnel {
        let auth_mode = match self.preview {
            Access::Protected => "authenticated",
            Access::Public => "open",
        };
        CreateTunnel { auth_mode }
    }

    /// What is reported and different. What is not reported says nothing.
    pub(super) fn differences(&self, view: &Devbox) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |setting, requested: Value, reported: Value| {
            if !reported.is_null() && requested != reported {
                found.push(Difference {
                    setting,
                    requested,
                    reported,
                });
            }
        };
        let asked = self.launch_parameters();
        let launch = view.launch_parameters.clone().unwrap_or_default();
        if asked.resource_size_request.is_some() {
            compare(
                "resources.size",
                json!(asked.resource_size_request),
                json!(launch.resource_size_request),
            );
        }
        if asked.custom_cpu_cores.is_some() {
            compare(
                "resources.vcpus",
                json!(asked.custom_cpu_cores),
                json!(launch.custom_cpu_cores),
            );
            compare(
                "resources.memoryGiB",
                json!(asked.custom_gb_memory),
                json!(launch.custom_gb_memory),
            );
        }
        let idle = launch.idle();
        match self.lifecycle {
            Lifecycle::Lifetime { seconds } => {
                let reported = json!(launch.keep_alive_time_seconds);
                compare(
                    "lifecycle.lifetimeSeconds",
                    json!(f64::from(seconds)),
                    reported,
                );
                let unasked = json!(idle.and_then(|idle| idle.idle_time_seconds));
                compare("lifecycle.idleSeconds", Value::Null, unasked);
            }
            Lifecycle::Idle { seconds } => {
                let reported = json!(idle.and_then(|idle| idle.idle_time_seconds));
                compare("lifecycle.idleSeconds", json!(f64::from(seconds)), reported);
                let on_idle = json!(idle.and_then(|idle| idle.on_idle.as_deref()));
                compare("lifecycle.onIdle", json!("suspend"), on_idle);
            }
        }
        if self.policy_id.is_none() {
            compare(
                "network",
                json!("internet"),
                json!(launch.network_policy_id),
            );
        }
        let auth_mode = view
            .tunnel
            .as_ref()
            .and_then(|tunnel| tunnel.auth_mode.as_deref());
        compare(
            "preview.access",
            json!(self.tunnel().auth_mode),
            json!(auth_mode),
        );
        found
    }
}

/// What this connection asked of the Devboxes that it made.
#[derive(Default)]
pub(super) struct Memory(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    made: HashMap<String, Made>,
    order: VecDeque<String>,
}

struct Made {
    asked: Asked,
    /// So that what the service says of the Devbox later repeats none.
    env_values: Vec<String>,
}

impl Memory {
    pub(super) fn remember(&self, id: &str, asked: Asked, env_values: Vec<String>) {
        let mut memory = self.lock();
        let made = Made { asked, env_values };
        if memory.made.insert(id.to_owned(), made).is_none() {
            memory.order.push_back(id.to_owned());
        }
        if memory.order.len() > MAX_REMEMBERED
            && let Some(oldest) = memory.order.pop_front()
        {
            memory.made.remove(&oldest);
        }
    }

    /// The values of the environment that this connection gave a Devbox.
    pub(super) fn env_values(&self, id: &str) -> Vec<String> {
        let memory = self.lock();
        let made = memory.made.get(id);
        made.map(|made| made.env_values.clone()).unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Differences of a Devbox that this connection made; none for another's.
    pub(super) fn differences(&self, view: &Devbox) -> Vec<Difference> {
        let memory = self.lock();
        memory
            .made
            .get(&view.id)
            .map(|made| made.asked.differences(view))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(lifecycle: Lifecycle) -> Asked {
        Asked {
            size: None,
            lifecycle,
            policy_id: Some("np_1".into()),
            preview: Access::Protected,
        }
    }

    fn custom() -> Asked {
        let config = crate::config::Config::parse(
            &json!({ "apiKey": "ak_1" }),
            &json!({ "resources": { "vcpus": 9 } }),
        );
        Asked {
            size: config.unwrap().size,
            ..asked(Lifecycle::Lifetime { seconds: 900 })
        }
    }

    fn view(value: Value) -> Devbox {
        serde_json::from_value(value).unwrap()
    }

    fn settings(asked: &Asked, value: Value) -> Vec<&'static str> {
        asked
            .differences(&view(value))
            .iter()
            .map(|difference| difference.setting)
            .collect()
    }

    #[test]
    fn r8_r9_r10_settings_are_sent_as_the_service_knows_them() {
        let sent = |asked: Asked| serde_json::to_value(asked.launch_parameters()).unwrap();
        assert_eq!(
            sent(asked(Lifecycle::Lifetime { seconds: 900 })),
            json!({ "keep_alive_time_seconds": 900, "network_policy_id": "np_1" })
        );
        assert_eq!(
            sent(asked(Lifecycle::Idle { seconds: 60 })),
            json!({
                "after_idle": { "idle_time_seconds": 60, "on_idle": "suspend" },
                "network_policy_id": "np_1",
            })
        );
        assert_eq!(
            sent(custom()),
            json!({
                "resource_size_request": "CUSTOM_SIZE",
                "custom_cpu_cores": 16,
                "custom_gb_memory": 32,
                "keep_alive_time_seconds": 900,
                "network_policy_id": "np_1",
            })
        );
    }

    #[test]
    fn an_echo_of_what_was_asked_and_no_echo_are_no_differences() {
        let asked = custom();
        let launch = serde_json::to_value(asked.launch_parameters()).unwrap();
        let tunnel = json!({ "auth_mode": "authenticated" });
        assert!(
            settings(
                &asked,
                json!({ "launch_parameters": launch, "tunnel": tunnel })
            )
            .is_empty()
        );
        assert!(settings(&asked, json!({})).is_empty());
        assert!(settings(&asked, json!({ "launch_parameters": {}, "tunnel": null })).is_empty());
    }

    #[test]
    fn what_is_reported_and_different_is_named_with_both_values() {
        let asked = custom();
        let launch = json!({
            "resource_size_request": "SMALL",
            "custom_cpu_cores": 1,
            "keep_alive_time_seconds": 3600,
            "after_idle": { "idle_time_seconds": 5 },
        });
        assert_eq!(
            settings(
                &asked,
                json!({ "launch_parameters": launch, "tunnel": { "auth_mode": "open" } })
            ),
            [
                "resources.size",
                "resources.vcpus",
                "lifecycle.lifetimeSeconds",
                "lifecycle.idleSeconds",
                "preview.access",
            ]
        );
        let found = asked.differences(&view(json!({ "launch_parameters": launch })));
        assert_eq!(
            (&found[2].requested, &found[2].reported),
            (&json!(900.0), &json!(3600.0))
        );
    }

    #[test]
    fn a_policy_where_none_was_asked_is_a_difference() {
        let asked = Asked {
            policy_id: None,
            ..asked(Lifecycle::Idle { seconds: 60 })
        };
        let launch = json!({ "network_policy_id": "np_2", "lifecycle": { "after_idle": {
            "idle_time_seconds": 60, "on_idle": "shutdown" } } });
        assert_eq!(
            settings(&asked, json!({ "launch_parameters": launch })),
            ["lifecycle.onIdle", "network"]
        );
    }

    #[test]
    fn a_connection_remembers_a_bounded_number_of_devboxes() {
        let memory = Memory::default();
        let odd = |id: &str| {
            view(json!({ "id": id, "launch_parameters": { "keep_alive_time_seconds": 1 } }))
        };
        for number in 0..=MAX_REMEMBERED {
            memory.remember(
                &format!("dbx_{number}"),
                asked(Lifecycle::Lifetime { seconds: 900 }),
                vec![],
            );
        }
        assert!(memory.differences(&odd("dbx_0")).is_empty());
        assert_eq!(memory.differences(&odd("dbx_1")).len(), 1);
    }
}
