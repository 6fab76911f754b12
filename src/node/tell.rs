//! Tells the loader what happens while calls run, apart from their results.
//!
//! The loader gives one function for each environment, and numbers its
//! listeners. A transfer may tell of itself a thousand times a second; the
//! JavaScript thread is told at most once a turn, of where the transfer is by then.

use std::sync::{Arc, Mutex, PoisonError};

use napi::Env;
use napi::bindgen_prelude::{FnArgs, Function, FunctionRef};
use napi_derive::napi;

use super::environment::Environment;
use super::json;
use crate::observe::{Progress, Transfer};

/// The loader's function: the number of a listener, and what it is told as JSON text.
pub(super) type Listen = FunctionRef<FnArgs<(u32, String)>, ()>;

/// Takes the function that is told. The loader calls it once for each environment.
#[napi(catch_unwind)]
pub fn listen(
    env: &Env,
    #[napi(ts_arg_type = "(listener: number, text: string) => void")] told: Function<
        '_,
        FnArgs<(u32, String)>,
        (),
    >,
) -> napi::Result<()> {
    // As with the error classes, a second copy of the loader changes nothing.
    let _ = Environment::of(env)?.listen.set(told.create_ref()?);
    Ok(())
}

/// The progress of a call, for this listener; without one, nobody is told.
pub(super) fn progress(env: &Env, listener: Option<u32>) -> napi::Result<Progress> {
    let Some(listener) = listener else {
        return Ok(Progress::default());
    };
    let teller = Environment::of(env)?.dispatcher.teller();
    let untold = Arc::new(Mutex::new(Vec::<Transfer>::new()));
    Ok(Progress::to(move |transfer| {
        let mut steps = untold.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = steps.is_empty();
        match steps.last_mut() {
            Some(last) if last.phase == transfer.phase => *last = transfer,
            _ => steps.push(transfer),
        }
        drop(steps);
        if is_first {
            let untold = Arc::clone(&untold);
            teller.tell(move |env| {
                let steps =
                    std::mem::take(&mut *untold.lock().unwrap_or_else(PoisonError::into_inner));
                for step in steps {
                    if let Ok(text) = json::write(&step) {
                        deliver(env, listener, text);
                    }
                }
            });
        }
    }))
}

/// Tells one listener. What its function throws is dropped: it has no caller.
pub(super) fn deliver(env: &Env, listener: u32, text: String) {
    let Ok(environment) = Environment::of(env) else {
        return;
    };
    let Some(listen) = environment.listen.get() else {
        return;
    };
    let _ = listen
        .borrow_back(env)
        .and_then(|listen| listen.call(FnArgs::from((listener, text))));
}
