//! Builds the client's error objects.
//!
//! The classes live in the client, once per environment, and the loader hands
//! them in; so `instanceof` holds wherever an error was made. Nothing here
//! decides what an error says: it copies the fields of [`Error`].

use napi::bindgen_prelude::{Either, FnArgs, Function, FunctionRef, Uint8Array, Unknown};
use napi::{Env, JsError};
use napi_derive::napi;

use super::VERSION;
use super::environment::Environment;
use crate::error::{Code, Error, Killed, Outcome, PartialOutput};

type Class = FunctionRef<FnArgs<(String, ErrorDetails)>, Unknown<'static>>;

/// The constructors, each `(message, details)`.
pub(super) struct ErrorClasses {
    any: Class,
    unsupported: Class,
}

/// `ErrorDetails` and `UnsupportedDetails` of the client. Absent stays absent.
#[napi(object, object_from_js = false)]
pub struct ErrorDetails {
    pub code: &'static str,
    pub provider: &'static str,
    pub operation: Option<&'static str>,
    pub resource: Option<ErrorResource>,
    pub reason: Option<&'static str>,
    pub feature: Option<String>,
    pub unmet_requirements: Option<Vec<UnmetRequirement>>,
    pub status: Option<u32>,
    pub request_id: Option<String>,
    pub retry_after_seconds: Option<f64>,
    pub attempts: Option<u32>,
    pub outcome: Option<AdapterOutcome>,
    /// The class hides these two from inspection.
    pub stdout: Option<Uint8Array>,
    pub stderr: Option<Uint8Array>,
}

#[napi(object, object_from_js = false)]
pub struct ErrorResource {
    pub kind: &'static str,
    pub id: String,
}

#[napi(object, object_from_js = false)]
pub struct UnmetRequirement {
    pub requirement: String,
    pub reason: String,
}

/// `AdapterOutcome` of the client.
#[napi(object, object_from_js = false)]
pub struct AdapterOutcome {
    pub submitted: Option<bool>,
    pub sandbox_id: Option<String>,
    pub snapshot_id: Option<String>,
    pub process_id: Option<String>,
    pub killed: Option<Either<bool, &'static str>>,
    pub leftovers: Option<Vec<String>>,
    pub exit_code: Option<i32>,
    pub output_unavailable: Option<bool>,
}

/// Takes the client's error classes. The loader calls it once for each environment,
/// and says its own version: one of another version may read records wrongly.
///
/// # Errors
/// When the loader is of another version than this binary.
#[napi(catch_unwind)]
pub fn register(
    env: &Env,
    #[napi(ts_arg_type = "new (message: string, details: any) => object")]
    beachside_error: Function<'_, FnArgs<(String, ErrorDetails)>, Unknown<'static>>,
    #[napi(ts_arg_type = "new (message: string, details: any) => object")]
    unsupported_feature_error: Function<'_, FnArgs<(String, ErrorDetails)>, Unknown<'static>>,
    loader_version: String,
) -> napi::Result<()> {
    if loader_version != VERSION {
        return Err(napi::Error::from_reason(format!(
            "This binary is version {VERSION}, and its loader is {loader_version}."
        )));
    }
    let classes = ErrorClasses {
        any: beachside_error.create_ref()?,
        unsupported: unsupported_feature_error.create_ref()?,
    };
    // A second registration, by a second copy of the loader, changes nothing:
    // errors keep one identity for the environment's whole life.
    let _ = Environment::of(env)?.errors.set(classes);
    Ok(())
}

/// The JavaScript object for an error.
///
/// # Errors
/// When JavaScript code failed meanwhile, for example a patched constructor.
pub(super) fn build<'env>(env: &'env Env, error: &Error) -> napi::Result<Unknown<'env>> {
    let environment = Environment::of(env)?;
    let Some(classes) = environment.errors.get() else {
        return plain(env, error);
    };
    let class = if error.code() == Code::Unsupported {
        &classes.unsupported
    } else {
        &classes.any
    };
    class
        .borrow_back(env)?
        .new_instance(FnArgs::from((error.message().to_owned(), details(error))))
}

/// The error as something that a synchronous entry can throw.
pub(super) fn thrown(env: &Env, error: &Error) -> napi::Error {
    build(env, error).map_or_else(
        |failure| failure,
        napi::Error::from_unknown_without_coercion,
    )
}

/// Without classes (the binding was loaded without the loader): message and code.
fn plain<'env>(env: &'env Env, error: &Error) -> napi::Result<Unknown<'env>> {
    let plain = napi::Error::new(error.code().as_str(), error.message().to_owned());
    Ok(JsError::from(plain).into_unknown(*env))
}

fn details(error: &Error) -> ErrorDetails {
    let PartialOutputs { stdout, stderr } = outputs(error.outcome().partial.as_ref());
    let unmet = error.unmet().iter().map(|unmet| UnmetRequirement {
        requirement: unmet.requirement.clone().into_owned(),
        reason: unmet.reason.clone().into_owned(),
    });
    ErrorDetails {
        code: error.code().as_str(),
        provider: "runloop",
        operation: Some(error.operation()).filter(|operation| !operation.is_empty()),
        resource: error.resource().map(|resource| ErrorResource {
            kind: resource.kind,
            id: resource.id.clone(),
        }),
        reason: error.reason(),
        feature: error.feature().map(str::to_owned),
        unmet_requirements: Some(unmet.collect()).filter(|unmet: &Vec<_>| !unmet.is_empty()),
        status: error.status().map(u32::from),
        request_id: error.request_id().map(str::to_owned),
        retry_after_seconds: error.retry_after_seconds(),
        attempts: Some(error.attempts()).filter(|attempts| *attempts > 0),
        outcome: outcome(error.outcome()),
        stdout,
        stderr,
    }
}

fn outcome(outcome: &Outcome) -> Option<AdapterOutcome> {
    if outcome.is_empty() {
        return None;
    }
    Some(AdapterOutcome {
        submitted: outcome.submitted,
        sandbox_id: outcome.sandbox_id.clone(),
        snapshot_id: outcome.snapshot_id.clone(),
        process_id: outcome.process_id.clone(),
        killed: outcome.killed.map(|killed| match killed {
            Killed::Yes => Either::A(true),
            Killed::No => Either::A(false),
            Killed::Unknown => Either::B("unknown"),
        }),
        leftovers: Some(outcome.leftovers.clone()).filter(|paths| !paths.is_empty()),
        exit_code: outcome.exit_code,
        output_unavailable: Some(outcome.output_unavailable).filter(|unavailable| *unavailable),
    })
}

struct PartialOutputs {
    stdout: Option<Uint8Array>,
    stderr: Option<Uint8Array>,
}

fn outputs(partial: Option<&PartialOutput>) -> PartialOutputs {
    PartialOutputs {
        stdout: partial.map(|partial| Uint8Array::new(partial.stdout.to_vec())),
        stderr: partial.map(|partial| Uint8Array::new(partial.stderr.to_vec())),
    }
}
