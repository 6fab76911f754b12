//! What the addon keeps for one JavaScript environment.

use std::cell::OnceCell;
use std::rc::Rc;

use napi::Env;

use super::dispatcher::Dispatcher;
use super::errors::ErrorClasses;
use super::tell::Listen;

/// State of one environment (the main thread or a worker), used on its thread only.
pub(super) struct Environment {
    pub(super) dispatcher: Rc<Dispatcher>,
    /// Set once by the loader, before its first call.
    pub(super) errors: OnceCell<ErrorClasses>,
    /// Set once by the loader, where somebody wants to be told something.
    pub(super) listen: OnceCell<Listen>,
}

impl Environment {
    /// Makes the state and ties its end to the environment's.
    pub(super) fn install(env: &Env) -> napi::Result<()> {
        let dispatcher = Dispatcher::open(env)?;
        env.set_instance_data(
            Rc::new(Self {
                dispatcher: Rc::clone(&dispatcher),
                errors: OnceCell::new(),
                listen: OnceCell::new(),
            }),
            (),
            |_| (),
        )?;
        // Runs before the threadsafe function's own hook: the last added is the first run.
        env.add_env_cleanup_hook(dispatcher, |dispatcher| dispatcher.close())?;
        Ok(())
    }

    /// The state of this environment.
    pub(super) fn of(env: &Env) -> napi::Result<Rc<Self>> {
        let state = env.get_instance_data::<Rc<Self>>()?;
        state.map(|state| Rc::clone(state)).ok_or_else(|| {
            napi::Error::from_reason("the addon was not initialized in this environment")
        })
    }
}
