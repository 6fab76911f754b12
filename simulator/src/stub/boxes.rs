//! The boxes: the only thing that the stub remembers.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

/// Boxes by id, which are in the order of their creation.
#[derive(Debug, Default)]
pub(super) struct Boxes(Mutex<BTreeMap<String, Value>>);

impl Boxes {
    /// Makes a box that runs at once; `request` is the body of its creation.
    pub(super) fn create(&self, request: &[u8], number: u64) -> Option<Value> {
        let request: Value = if request.is_empty() {
            json!({})
        } else {
            serde_json::from_slice(request).ok()?
        };
        let id = format!("dbx_stub_{number:012}");
        let view = json!({
            "id": id,
            "name": request.get("name"),
            "status": "running",
            "create_time_ms": 1_700_000_000_000_u64 + number,
            "end_time_ms": null,
            "metadata": or_object(request.get("metadata")),
            "launch_parameters": or_object(request.get("launch_parameters")),
            "blueprint_id": request.get("blueprint_id"),
            "snapshot_id": request.get("snapshot_id"),
            "capabilities": [],
            "state_transitions": [],
            "initiator_type": "api",
        });
        self.lock().insert(id, view.clone());
        Some(view)
    }

    pub(super) fn get(&self, id: &str) -> Option<Value> {
        self.lock().get(id).cloned()
    }

    pub(super) fn shut_down(&self, id: &str) -> Option<Value> {
        let mut boxes = self.lock();
        let view = boxes.get_mut(id)?;
        if let Some(status) = view.get_mut("status") {
            *status = "shutdown".into();
        }
        Some(view.clone())
    }

    /// All of them, on one page whatever is asked.
    pub(super) fn list(&self) -> Value {
        let devboxes: Vec<Value> = self.lock().values().cloned().collect();
        json!({ "total_count": devboxes.len(), "devboxes": devboxes, "has_more": false })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn or_object(value: Option<&Value>) -> Value {
    value
        .filter(|value| value.is_object())
        .cloned()
        .unwrap_or_else(|| json!({}))
}
