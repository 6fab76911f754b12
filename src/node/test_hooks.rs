//! Calls that only tests make, to see the boundary work without a network.
//!
//! Built with the feature `test-hooks` into an addon file of its own; the one
//! that is shipped has none of this.
#![expect(clippy::panic, reason = "tests ask for panics")]

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use napi::Env;
use napi::bindgen_prelude::{JsValue, Object, Uint8ArraySlice, Unknown};
use napi_derive::napi;
use tokio::time::sleep;

use super::arguments::{Arguments, copied, program};
use super::bytes::uint8_array;
use super::calls::{now, start, start_as};
use super::cancellation::{Cancellation, call};
use super::dispatcher::Promise;
use crate::adapter::Program;
use crate::error::{Code, Error, Killed, PartialOutput};

static LIVE: AtomicU32 = AtomicU32::new(0);

/// Counts a task from its first poll until it ends or is dropped.
struct Live;

impl Live {
    fn new() -> Self {
        LIVE.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Tasks of this process that have begun and not ended.
#[napi(catch_unwind)]
pub fn test_live_tasks() -> u32 {
    LIVE.load(Ordering::SeqCst)
}

/// Resolves to the number it was given.
#[napi(catch_unwind, ts_return_type = "Promise<number>")]
pub fn test_echo(env: &Env, value: u32) -> napi::Result<Promise<'_>> {
    start(env, || Ok(async move { Ok(value) }))
}

/// Resolves to the number after a time, unless it is cancelled.
#[napi(catch_unwind, ts_return_type = "Promise<number>")]
pub fn test_sleep<'env>(
    env: &'env Env,
    milliseconds: u32,
    value: u32,
    cancellation: Option<&Cancellation>,
) -> napi::Result<Promise<'env>> {
    let call = call(cancellation);
    start(env, || {
        Ok(async move {
            let _live = Live::new();
            tokio::select! {
                biased;
                () = call.cancel.cancelled() => {
                    let error = Error::new(Code::Cancelled, "stopped").during("sleep");
                    Err(error.with_outcome(|outcome| outcome.submitted = Some(false)))
                }
                () = sleep(Duration::from_millis(milliseconds.into())) => Ok(value),
            }
        })
    })
}

/// The time of [`test_finish_at`]'s clock, in milliseconds.
#[napi(catch_unwind)]
pub fn test_now() -> f64 {
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    ORIGIN.elapsed().as_secs_f64() * 1000.0
}

/// Resolves at a time of [`test_now`]'s clock, to the time at which it was done.
#[napi(catch_unwind, ts_return_type = "Promise<number>")]
pub fn test_finish_at(env: &Env, at: f64) -> napi::Result<Promise<'_>> {
    start(env, move || {
        Ok(async move {
            let wait = Duration::try_from_secs_f64((at - test_now()) / 1000.0);
            sleep(wait.unwrap_or_default()).await;
            Ok(test_now())
        })
    })
}

/// Rejects with an error in which every field is set.
#[napi(catch_unwind, ts_return_type = "Promise<never>")]
pub fn test_fail(env: &Env) -> napi::Result<Promise<'_>> {
    start::<(), _>(env, || {
        Ok(async {
            Err(Error::new(Code::OutcomeUnknown, "lost")
                .during("exec")
                .with_resource("sandbox", "dbx_1")
                .with_reason("reply_lost")
                .with_answer(502, Some("req_1".to_owned()), Some(1.5))
                .with_attempts(2)
                .with_outcome(|outcome| {
                    outcome.submitted = Some(true);
                    outcome.sandbox_id = Some("dbx_1".to_owned());
                    outcome.snapshot_id = Some("snp_1".to_owned());
                    outcome.process_id = Some("exe_1".to_owned());
                    outcome.killed = Some(Killed::Unknown);
                    outcome.leftovers = vec!["/tmp/left".to_owned()];
                    outcome.exit_code = Some(0);
                    outcome.output_unavailable = true;
                    outcome.partial = Some(PartialOutput {
                        stdout: Bytes::from_static(b"out"),
                        stderr: Bytes::from_static(b"err"),
                    });
                }))
        })
    })
}

/// Rejects with a missing feature.
#[napi(catch_unwind, ts_return_type = "Promise<never>")]
pub fn test_unsupported(env: &Env) -> napi::Result<Promise<'_>> {
    start::<(), _>(env, || {
        Ok(async { Err(Error::unsupported("volumes", "Runloop has none").during("connect")) })
    })
}

/// Panics with a message that must not be seen anywhere.
#[napi(catch_unwind, ts_return_type = "Promise<never>")]
pub fn test_panic(env: &Env, place: String) -> napi::Result<Promise<'_>> {
    const SECRET: &str = "the panic's secret";
    struct Unlucky;
    impl Drop for Unlucky {
        fn drop(&mut self) {
            panic!("{SECRET}");
        }
    }
    if place == "entry" {
        panic!("{SECRET}");
    }
    let view_panics = place == "view";
    let begin = || {
        if place == "begin" {
            panic!("{SECRET}");
        }
        Ok(async move {
            match place.as_str() {
                "poll" => panic!("{SECRET}"),
                "later" => {
                    sleep(Duration::from_millis(1)).await;
                    panic!("{SECRET}");
                }
                "drop" => {
                    let _unlucky = Unlucky;
                    sleep(Duration::from_millis(1)).await;
                    Ok(())
                }
                _ => Ok(()),
            }
        })
    };
    start_as(env, begin, move |env, ()| {
        if view_panics {
            panic!("{SECRET}");
        }
        Object::new(env).map(|object| object.to_unknown())
    })
}

/// Resolves to so many bytes of value 7.
#[napi(catch_unwind, ts_return_type = "Promise<Uint8Array>")]
pub fn test_bytes_out(env: &Env, length: u32) -> napi::Result<Promise<'_>> {
    let begin = || {
        Ok(async move {
            let length = usize::try_from(length).map_err(|_| Error::internal("length"))?;
            Ok(Bytes::from(vec![7; length]))
        })
    };
    start_as(env, begin, uint8_array)
}

/// Resolves, after a time, to the sum of the bytes as they were at the call.
#[napi(catch_unwind, ts_return_type = "Promise<number>")]
pub fn test_bytes_in<'env>(
    env: &'env Env,
    bytes: Uint8ArraySlice<'_>,
    milliseconds: u32,
) -> napi::Result<Promise<'env>> {
    let bytes = copied(&bytes);
    start(env, || {
        Ok(async move {
            sleep(Duration::from_millis(milliseconds.into())).await;
            Ok(bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>())
        })
    })
}

/// Reads a command and its options as `exec` does and gives back what was read, as JSON text.
#[napi(catch_unwind)]
pub fn test_arguments(
    env: &Env,
    command: Unknown<'_>,
    options: Object<'_>,
) -> napi::Result<String> {
    now(env, || {
        let arguments = Arguments::of(options);
        let command = match program(&command, "command")? {
            Program::ShellText(text) => serde_json::json!(text),
            Program::Arguments(list) => serde_json::json!(list),
        };
        let read = serde_json::json!({
            "command": command,
            "cwd": arguments.optional_text("cwd")?,
            "env": arguments.optional_texts_by_name("env")?,
            "timeoutSeconds": arguments.optional_number("timeoutSeconds")?,
            "maxOutputBytes": arguments.optional_whole::<u64>("maxOutputBytes")?,
        });
        Ok(read.to_string())
    })
}
