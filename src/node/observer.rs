//! Brings the events of a connection to the loader, in batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::Env;
use napi_derive::napi;

use super::dispatcher::Teller;
use super::environment::Environment;
use super::tell::deliver;
use crate::observe::{self, Event};

/// Text of events that is held while the JavaScript thread is busy; what comes
/// beyond it is counted and dropped.
const MAX_HELD_BYTES: usize = 4 * 1024 * 1024;

/// Is told of the events of one connection, while it is active.
#[napi]
pub struct Observer(Arc<Told>);

struct Told {
    is_active: AtomicBool,
    teller: Teller,
    listener: u32,
    untold: Mutex<Untold>,
}

/// Events as JSON text, separated by commas.
#[derive(Default)]
struct Untold {
    text: String,
    dropped: u32,
    /// Whether the JavaScript thread was asked to fetch them.
    is_asked: bool,
}

#[napi]
impl Observer {
    /// Not active yet. `listener` is told arrays of events as JSON text.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: &Env, listener: u32) -> napi::Result<Self> {
        Ok(Self(Arc::new(Told {
            is_active: AtomicBool::new(false),
            teller: Environment::of(env)?.dispatcher.teller(),
            listener,
            untold: Mutex::default(),
        })))
    }

    /// Whether events are made from now on.
    #[napi(catch_unwind)]
    pub fn activate(&self, is_active: bool) {
        self.0.is_active.store(is_active, Ordering::Relaxed);
    }
}

impl Observer {
    /// For the connection, which may outlive this.
    pub(super) fn shared(&self) -> Arc<dyn observe::Observer> {
        Arc::new(Shared(Arc::clone(&self.0)))
    }
}

struct Shared(Arc<Told>);

impl observe::Observer for Shared {
    fn is_active(&self) -> bool {
        self.0.is_active.load(Ordering::Relaxed)
    }

    fn observe(&self, event: &Event<'_>) {
        let Ok(event) = serde_json::to_string(event) else {
            return;
        };
        let mut untold = self.0.untold();
        if untold.text.len() + event.len() > MAX_HELD_BYTES {
            untold.dropped += 1;
            return;
        }
        let before = if untold.text.is_empty() { '[' } else { ',' };
        untold.text.push(before);
        untold.text.push_str(&event);
        if std::mem::replace(&mut untold.is_asked, true) {
            return;
        }
        drop(untold);
        let told = Arc::clone(&self.0);
        self.0.teller.tell(move |env| told.fetch(env));
    }
}

impl Told {
    fn untold(&self) -> MutexGuard<'_, Untold> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fetch(&self, env: &Env) {
        let Untold {
            mut text, dropped, ..
        } = std::mem::take(&mut *self.untold());
        if dropped > 0 {
            text.push_str(&format!(",{{\"type\":\"dropped\",\"count\":{dropped}}}"));
        }
        text.push(']');
        deliver(env, self.listener, text);
    }
}
