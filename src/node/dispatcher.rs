//! Promises for futures, many for the price of one wake-up.
//!
//! N-API's own way makes a threadsafe function and a clean-up hook for every
//! promise. Here an environment has one of each, a table of pending promises,
//! and a queue of results that the JavaScript thread empties in one go. While
//! a promise is pending the environment's event loop is kept alive; when none
//! is, nothing of ours keeps the process. When the environment ends, every
//! task is aborted and late results are dropped.
//!
//! This is the one file of the adapter with `unsafe` code: N-API is a C
//! interface, and napi's safe types cover neither deferred promises without a
//! threadsafe function each nor the reference count of the event loop. What
//! must hold is small: handles are used on their own thread only, and the
//! threadsafe function is called under the lock that its end takes too.
#![expect(unsafe_code, reason = "raw N-API; each block says why it is sound")]

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::future::Future;
use std::ptr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::bindgen_prelude::{JsValue, PromiseRaw, Unknown};
use napi::{Env, check_status, sys};
use slab::Slab;
use tokio::task::AbortHandle;

use super::{errors, panics, runtime};
use crate::error::{Error, Result};

/// A promise as a method returns it; what it resolves to stands in `binding.d.ts`.
pub(super) type Promise<'env> = PromiseRaw<'env, ()>;

/// Makes the JavaScript value of a result, on the JavaScript thread. The handle
/// lives as long as the handle scope in which this is called.
type Convert = Box<dyn FnOnce(sys::napi_env) -> Result<sys::napi_value> + Send>;

/// The pending promises of one environment. Lives on its JavaScript thread.
pub(super) struct Dispatcher {
    env: sys::napi_env,
    wake: Cell<sys::napi_threadsafe_function>,
    pending: RefCell<Slab<Pending>>,
    queue: Arc<Queue>,
}

struct Pending {
    deferred: sys::napi_deferred,
    task: AbortHandle,
}

/// Results on their way to the JavaScript thread; shared with the tasks.
struct Queue(Mutex<Inbox>);

struct Inbox {
    /// `None` once the environment is ending.
    wake: Option<Wake>,
    /// Whether a wake-up is on its way, so that no second one is needed.
    scheduled: bool,
    ready: Vec<Delivery>,
}

/// What the JavaScript thread does with one entry of the queue.
enum Delivery {
    Settle(Settled),
    Tell(Tell),
}

/// Something to do on the JavaScript thread that settles no promise.
type Tell = Box<dyn FnOnce(&Env) + Send>;

struct Settled {
    id: usize,
    convert: Convert,
}

struct Wake(sys::napi_threadsafe_function);

// SAFETY: a threadsafe function exists to be called from any thread. It is
// valid while it stands in an `Inbox`: `close` takes it out, under the lock,
// before N-API frees it.
unsafe impl Send for Wake {}

impl Dispatcher {
    /// Makes the dispatcher of an environment, on its thread.
    pub(super) fn open(env: &Env) -> napi::Result<Rc<Self>> {
        let dispatcher = Rc::new(Self {
            env: env.raw(),
            wake: Cell::new(ptr::null_mut()),
            pending: RefCell::new(Slab::new()),
            queue: Arc::new(Queue(Mutex::new(Inbox {
                wake: None,
                scheduled: false,
                ready: Vec::new(),
            }))),
        });
        let name = env.create_string("beachside-runloop")?;
        let context = Rc::into_raw(Rc::clone(&dispatcher))
            .cast_mut()
            .cast::<c_void>();
        let mut wake = ptr::null_mut();
        // SAFETY: `env` is the environment of this thread and `name` a string of it.
        // No function is given, so `settle_ready` is called instead. `context` is a
        // reference of its own on the dispatcher, given back in `end`.
        let status = unsafe {
            sys::napi_create_threadsafe_function(
                env.raw(),
                ptr::null_mut(),
                ptr::null_mut(),
                name.raw(),
                0,
                1,
                context,
                Some(end),
                context,
                Some(settle_ready),
                &raw mut wake,
            )
        };
        if status != sys::Status::napi_ok {
            // SAFETY: N-API did not take the reference made above; nobody else has it.
            drop(unsafe { Rc::from_raw(context.cast::<Self>()) });
        }
        check_status!(status)?;
        dispatcher.wake.set(wake);
        dispatcher.queue.lock().wake = Some(Wake(wake));
        dispatcher.release_loop();
        Ok(dispatcher)
    }

    /// Runs the future and returns the promise that it settles.
    ///
    /// `view` makes the JavaScript value of the result, on the JavaScript
    /// thread. A panic, in the future or in `view`, rejects with `INTERNAL`.
    pub(super) fn run<'env, T, F, V>(&self, future: F, view: V) -> napi::Result<Promise<'env>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
        V: for<'a> FnOnce(&'a Env, T) -> napi::Result<Unknown<'a>> + Send + 'static,
    {
        let (mut deferred, mut promise) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: a dispatcher is used on its environment's thread only: it is
        // not `Send`, and is reached through the environment's instance data.
        check_status!(unsafe {
            sys::napi_create_promise(self.env, &raw mut deferred, &raw mut promise)
        })?;
        let promise = PromiseRaw::new(self.env, promise);
        let runtime = match runtime::handle() {
            Ok(runtime) => runtime,
            Err(error) => {
                self.settle(deferred, |_| Err(error));
                return Ok(promise);
            }
        };
        let mut pending = self.pending.borrow_mut();
        if pending.is_empty() {
            self.hold_loop();
        }
        let entry = pending.vacant_entry();
        let completion = Completion {
            id: entry.key(),
            queue: Some(Arc::clone(&self.queue)),
        };
        let task = runtime.spawn(async move {
            let result = panics::caught_async(future).await;
            completion.settle(move |env| {
                let env = Env::from_raw(env);
                let value = view(&env, result?);
                value
                    .map(|value| value.raw())
                    .map_err(|error| unconvertible(&error))
            });
        });
        entry.insert(Pending {
            deferred,
            task: task.abort_handle(),
        });
        Ok(promise)
    }

    /// Aborts every task and drops every result. Nothing settles afterwards.
    pub(super) fn close(&self) {
        let dropped = {
            let mut inbox = self.queue.lock();
            inbox.wake = None;
            std::mem::take(&mut inbox.ready)
        };
        // Outside the lock: dropping a result may run any destructor.
        drop(dropped);
        for pending in self.pending.take() {
            pending.1.task.abort();
        }
    }

    /// Settles what is ready.
    fn drain(&self) {
        let ready = {
            let mut inbox = self.queue.lock();
            inbox.scheduled = false;
            std::mem::take(&mut inbox.ready)
        };
        for delivery in ready {
            let Settled { id, convert } = match delivery {
                Delivery::Settle(settled) => settled,
                Delivery::Tell(tell) => {
                    self.tell(tell);
                    continue;
                }
            };
            // Not inside the `if`, which would hold the table while JavaScript runs.
            let found = self.pending.borrow_mut().try_remove(id);
            if let Some(pending) = found {
                self.settle(pending.deferred, convert);
            }
        }
        if self.pending.borrow().is_empty() {
            self.release_loop();
        }
    }

    /// A way to the JavaScript thread for what settles no promise. It keeps
    /// neither the event loop nor the environment alive.
    pub(super) fn teller(&self) -> Teller {
        Teller(Arc::clone(&self.queue))
    }

    fn tell(&self, tell: Tell) {
        let mut scope = ptr::null_mut();
        // SAFETY: as in `settle`: on the environment's thread, called from the event loop.
        let scoped = unsafe { sys::napi_open_handle_scope(self.env, &raw mut scope) };
        let env = Env::from_raw(self.env);
        // What JavaScript code threw there must not fail what is settled next.
        let _ = panics::caught(|| {
            tell(&env);
            Ok(())
        });
        self.clear_exception();
        if scoped == sys::Status::napi_ok {
            // SAFETY: as in `settle`.
            unsafe { sys::napi_close_handle_scope(self.env, scope) };
        }
    }

    /// Resolves or rejects one promise.
    fn settle(
        &self,
        deferred: sys::napi_deferred,
        convert: impl FnOnce(sys::napi_env) -> Result<sys::napi_value>,
    ) {
        let mut scope = ptr::null_mut();
        // SAFETY: this and every block below run on the environment's thread, inside
        // a call from JavaScript or from the event loop, so `self.env` is live. The
        // scope bounds the handles of one result; if it cannot be opened they live
        // until the call ends, which is sound.
        let scoped = unsafe { sys::napi_open_handle_scope(self.env, &raw mut scope) };
        let env = Env::from_raw(self.env);
        match panics::caught(|| convert(self.env)) {
            // SAFETY: as above; the promise was taken out of the table, so this settles it once.
            Ok(value) => unsafe { sys::napi_resolve_deferred(self.env, deferred, value) },
            Err(error) => {
                // A conversion may fail because JavaScript code threw; a pending
                // exception would make every call below fail.
                self.clear_exception();
                let reason = panics::caught(|| Ok(errors::build(&env, &error).map(|it| it.raw())));
                self.clear_exception();
                let reason = reason
                    .ok()
                    .and_then(napi::Result::ok)
                    .unwrap_or(ptr::null_mut());
                // SAFETY: as above. A null reason, when not even the error could be
                // built, is refused by N-API, so it is replaced first.
                unsafe { sys::napi_reject_deferred(self.env, deferred, self.or_undefined(reason)) }
            }
        };
        if scoped == sys::Status::napi_ok {
            // SAFETY: opened above, on this thread, and nothing opened in between is still open.
            unsafe { sys::napi_close_handle_scope(self.env, scope) };
        }
    }

    fn or_undefined(&self, value: sys::napi_value) -> sys::napi_value {
        let mut undefined = value;
        if value.is_null() {
            // SAFETY: on the environment's thread, with room for one handle.
            unsafe { sys::napi_get_undefined(self.env, &raw mut undefined) };
        }
        undefined
    }

    fn clear_exception(&self) {
        let mut exception = ptr::null_mut();
        // SAFETY: on the environment's thread, with room for one handle.
        unsafe { sys::napi_get_and_clear_last_exception(self.env, &raw mut exception) };
    }

    /// A pending promise keeps the event loop alive.
    fn hold_loop(&self) {
        // SAFETY: on the environment's thread; `wake` is freed only after `close`,
        // after which no promise is made or settled. Failing is harmless: the
        // process may then end before the promise does.
        unsafe { sys::napi_ref_threadsafe_function(self.env, self.wake.get()) };
    }

    /// Nothing pending, nothing to wait for.
    fn release_loop(&self) {
        // SAFETY: as in `hold_loop`.
        unsafe { sys::napi_unref_threadsafe_function(self.env, self.wake.get()) };
    }
}

impl Queue {
    /// A panic under the lock leaves nothing half-done, so poison is no reason to stop.
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, delivery: Delivery) {
        let mut inbox = self.lock();
        let Some(wake) = &inbox.wake else {
            // The environment is ending: its promises will never be seen.
            drop(inbox);
            return drop(delivery);
        };
        if !inbox.scheduled {
            let wake = wake.0;
            // SAFETY: `wake` stands in the inbox, so it is not freed, and it cannot be
            // while this thread holds the lock. The call does not block: no lock is
            // held by N-API while it calls back.
            let status = unsafe {
                sys::napi_call_threadsafe_function(
                    wake,
                    ptr::null_mut(),
                    sys::ThreadsafeFunctionCallMode::nonblocking,
                )
            };
            inbox.scheduled = status == sys::Status::napi_ok;
        }
        inbox.ready.push(delivery);
    }
}

/// Reaches the JavaScript thread from any other, in order with the promises.
#[derive(Clone)]
pub(super) struct Teller(Arc<Queue>);

impl Teller {
    /// Has this done on the JavaScript thread, unless the environment is ending.
    pub(super) fn tell(&self, what: impl FnOnce(&Env) + Send + 'static) {
        self.0.push(Delivery::Tell(Box::new(what)));
    }
}

/// Sees to it that a task settles its promise exactly once, even if it panics
/// where nothing catches it or is dropped unfinished.
struct Completion {
    id: usize,
    queue: Option<Arc<Queue>>,
}

impl Completion {
    fn settle(
        mut self,
        convert: impl FnOnce(sys::napi_env) -> Result<sys::napi_value> + Send + 'static,
    ) {
        if let Some(queue) = self.queue.take() {
            queue.push(Delivery::Settle(Settled {
                id: self.id,
                convert: Box::new(convert),
            }));
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            let unfinished = |_| Err(Error::internal("the call was dropped before it finished"));
            queue.push(Delivery::Settle(Settled {
                id: self.id,
                convert: Box::new(unfinished),
            }));
        }
    }
}

fn unconvertible(error: &napi::Error) -> Error {
    // The status is N-API's own word; the reason could hold what was converted.
    Error::internal(format!(
        "the result could not be handed to JavaScript ({})",
        error.status
    ))
}

/// Called by N-API on the JavaScript thread after a wake-up.
unsafe extern "C" fn settle_ready(
    env: sys::napi_env,
    _function: sys::napi_value,
    context: *mut c_void,
    _data: *mut c_void,
) {
    // Null while the environment ends and N-API empties its own queue.
    if env.is_null() {
        return;
    }
    // SAFETY: `context` is the reference that `open` made, valid until `end`, which
    // N-API calls last and on this same thread.
    let dispatcher = unsafe { &*context.cast::<Dispatcher>() };
    // Unwinding into C would abort the process.
    let _ = panics::caught(|| {
        dispatcher.drain();
        Ok(())
    });
}

/// Called by N-API on the JavaScript thread when the threadsafe function ends.
unsafe extern "C" fn end(_env: sys::napi_env, context: *mut c_void, _hint: *mut c_void) {
    // SAFETY: the reference that `open` made, given back exactly once.
    let dispatcher = unsafe { Rc::from_raw(context.cast::<Dispatcher>()) };
    let _ = panics::caught(|| {
        dispatcher.close();
        Ok(())
    });
}
