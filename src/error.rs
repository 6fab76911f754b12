//! The one error of the adapter.
//!
//! An [`Error`] says what kind of failure it is ([`Code`]), during which
//! operation, about which resource, what the provider answered, and what is
//! known of the outcome of a mutation ([`Outcome`]). It never holds a
//! credential, an environment value or file content in its message; partial
//! command output travels in [`Outcome::partial`], which `Debug` does not show.
//!
//! `code` strings, reasons and field names are public: JavaScript sees them.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

/// Result with the adapter's error.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of a failure, as callers see it in `error.code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The call itself is wrong; nothing was sent.
    InvalidArgument,
    /// The provider or this adapter cannot do it; nothing was sent.
    Unsupported,
    /// 401: the key is missing, malformed or not accepted.
    Unauthenticated,
    /// 403, or an account that is not enabled.
    PermissionDenied,
    /// 404 of the resource named in [`Error::resource`].
    NotFound,
    /// 409.
    Conflict,
    /// 429.
    RateLimited,
    /// Any other 4xx except 408: the provider refused and nothing happened.
    Rejected,
    /// A file operation failed for a reason of the file: [`Error::reason`].
    FileError,
    /// The Devbox is suspended, shut down or failed.
    NotRunning,
    /// The Devbox ended in `failure`.
    SandboxFailed,
    /// A wait for create, restore, capture, suspend or resume ended.
    DeadlineExceeded,
    /// A mutation was sent and its result is not known.
    OutcomeUnknown,
    /// A read failed for good after its retries, or a mutation of which no byte was sent.
    Unavailable,
    /// The caller's signal.
    Cancelled,
    /// The connection was closed.
    Closed,
    /// The provider answered what its own specification rules out.
    Protocol,
    /// A fault of ours, a panic included.
    Internal,
}

impl Code {
    /// The stable string that JavaScript sees.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::Unsupported => "UNSUPPORTED",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::NotFound => "NOT_FOUND",
            Self::Conflict => "CONFLICT",
            Self::RateLimited => "RATE_LIMITED",
            Self::Rejected => "REJECTED",
            Self::FileError => "FILE_ERROR",
            Self::NotRunning => "NOT_RUNNING",
            Self::SandboxFailed => "SANDBOX_FAILED",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::OutcomeUnknown => "OUTCOME_UNKNOWN",
            Self::Unavailable => "UNAVAILABLE",
            Self::Cancelled => "CANCELLED",
            Self::Closed => "CLOSED",
            Self::Protocol => "PROTOCOL",
            Self::Internal => "INTERNAL",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The resource an error is about, in the contract's nouns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// `sandbox`, `snapshot`, `process`, `file`, `working directory`, `image`, `network policy` or `account`.
    pub kind: &'static str,
    /// The provider's id, or the path, or the name that was asked for.
    pub id: String,
}

/// One requirement of the caller that cannot be met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The requirement's name, for example `snapshots.preserve`.
    pub requirement: Cow<'static, str>,
    /// Why it cannot be met, as a sentence.
    pub reason: Cow<'static, str>,
}

/// Whether a kill that the adapter sent took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    /// The provider reports that the execution ended.
    Yes,
    /// The kill was refused or never sent.
    No,
    /// It was sent and no confirmation came in time.
    Unknown,
}

/// Output of a command whose full result is not available.
///
/// Hidden from `Debug` because it is the caller's data.
#[derive(Clone, PartialEq, Eq)]
pub struct PartialOutput {
    /// What could be read of standard output.
    pub stdout: Bytes,
    /// What could be read of standard error.
    pub stderr: Bytes,
}

impl fmt::Debug for PartialOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartialOutput")
            .field("stdout_bytes", &self.stdout.len())
            .field("stderr_bytes", &self.stderr.len())
            .finish()
    }
}

/// What is known of a mutation that did not end with an ordinary result.
///
/// `None` means "nothing is known", never "no".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether a byte of the mutation was sent.
    pub submitted: Option<bool>,
    /// The Devbox that exists because of it, as far as known.
    pub sandbox_id: Option<String>,
    /// The snapshot that exists because of it, as far as known.
    pub snapshot_id: Option<String>,
    /// The execution that was started.
    pub process_id: Option<String>,
    /// What became of the kill, where one was attempted.
    pub killed: Option<Killed>,
    /// Paths in the guest that may still hold something of this call.
    pub leftovers: Vec<String>,
    /// The exit code, where only the output could not be fetched.
    pub exit_code: Option<i32>,
    /// Output read before the failure; `None` when it is unavailable.
    pub partial: Option<PartialOutput>,
    /// Set where output was expected and could not be read.
    pub output_unavailable: bool,
}

impl Outcome {
    /// Whether anything at all is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A failure of the adapter. Cheap to move; see the [module](self) for what it may hold.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    code: Code,
    message: String,
    operation: &'static str,
    resource: Option<Resource>,
    reason: Option<&'static str>,
    feature: Option<Cow<'static, str>>,
    unmet: Vec<Unmet>,
    status: Option<u16>,
    request_id: Option<String>,
    retry_after_seconds: Option<f64>,
    attempts: u32,
    outcome: Outcome,
}

macro_rules! shorthand {
    ($($(#[$doc:meta])* $name:ident => $code:ident;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(message: impl Into<String>) -> Self {
            Self::new(Code::$code, message)
        }
    )*};
}

impl Error {
    /// An error of this kind with a sentence that says what is wrong and what to do.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code,
            message: message.into(),
            operation: "",
            resource: None,
            reason: None,
            feature: None,
            unmet: Vec::new(),
            status: None,
            request_id: None,
            retry_after_seconds: None,
            attempts: 0,
            outcome: Outcome::default(),
        }))
    }

    shorthand! {
        /// The call is wrong and nothing was sent.
        invalid_argument => InvalidArgument;
        /// The provider broke its own specification.
        protocol => Protocol;
        /// A fault of this adapter.
        internal => Internal;
    }

    /// A feature that is missing, with the requirement that cannot be met.
    #[must_use]
    pub fn unsupported(
        feature: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        let feature = feature.into();
        let reason = reason.into();
        let mut error = Self::new(
            Code::Unsupported,
            format!("{feature} is not supported: {reason}"),
        );
        error.0.unmet.push(Unmet {
            requirement: feature.clone(),
            reason,
        });
        error.0.feature = Some(feature);
        error
    }

    /// A resource that does not exist.
    #[must_use]
    pub fn not_found(kind: &'static str, id: impl Into<String>) -> Self {
        let id = id.into();
        Self::new(Code::NotFound, format!("{kind} {id:?} does not exist")).with_resource(kind, id)
    }

    /// The call during which it happened, for example `sandbox_create`. The innermost name wins.
    #[must_use]
    pub fn during(mut self, operation: &'static str) -> Self {
        if self.0.operation.is_empty() {
            self.0.operation = operation;
        }
        self
    }

    /// Names the resource.
    #[must_use]
    pub fn with_resource(mut self, kind: &'static str, id: impl Into<String>) -> Self {
        self.0.resource = Some(Resource {
            kind,
            id: id.into(),
        });
        self
    }

    /// A stable machine-readable reason, for example `is_directory`.
    #[must_use]
    pub fn with_reason(mut self, reason: &'static str) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// The HTTP status, request id and `Retry-After` of the provider's answer.
    #[must_use]
    pub fn with_answer(
        mut self,
        status: u16,
        request_id: Option<String>,
        retry_after_seconds: Option<f64>,
    ) -> Self {
        self.0.status = Some(status);
        self.0.request_id = request_id;
        self.0.retry_after_seconds = retry_after_seconds;
        self
    }

    /// How many requests were made for the failed call.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.0.attempts = attempts;
        self
    }

    /// Adds to what is known of the outcome.
    #[must_use]
    pub fn with_outcome(mut self, add: impl FnOnce(&mut Outcome)) -> Self {
        add(&mut self.0.outcome);
        self
    }

    /// Another unmet requirement.
    #[must_use]
    pub fn with_unmet(
        mut self,
        requirement: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.0.unmet.push(Unmet {
            requirement: requirement.into(),
            reason: reason.into(),
        });
        self
    }

    /// Applies [`redact`] to the message.
    #[must_use]
    pub fn redacted(mut self, secrets: &[&str]) -> Self {
        self.0.message = redact(&self.0.message, secrets);
        self
    }

    /// The kind.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The sentence, without code or operation.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The call during which it happened; empty when unknown.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The resource it is about.
    #[must_use]
    pub fn resource(&self) -> Option<&Resource> {
        self.0.resource.as_ref()
    }

    /// A machine-readable reason within the code.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        self.0.reason
    }

    /// The missing feature of an `UNSUPPORTED` error.
    #[must_use]
    pub fn feature(&self) -> Option<&str> {
        self.0.feature.as_deref()
    }

    /// Every requirement that cannot be met.
    #[must_use]
    pub fn unmet(&self) -> &[Unmet] {
        &self.0.unmet
    }

    /// HTTP status of the provider's answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// Request id of the provider's answer, for its support.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Seconds the provider asks to wait.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<f64> {
        self.0.retry_after_seconds
    }

    /// Requests made for the failed call; 0 when none was.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// What is known of the mutation.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.0.outcome
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Error");
        out.field("code", &self.0.code)
            .field("operation", &self.0.operation)
            .field("message", &self.0.message);
        if let Some(resource) = &self.0.resource {
            out.field("resource", resource);
        }
        if let Some(status) = self.0.status {
            out.field("status", &status);
        }
        if !self.0.outcome.is_empty() {
            out.field("outcome", &self.0.outcome);
        }
        out.finish_non_exhaustive()
    }
}

impl std::error::Error for Error {}

/// Replaces every secret of eight bytes or more in `text` by `[redacted]`.
///
/// Shorter values are left: they are words that stand in any message, and
/// hiding them would hide the message. Longer secrets are replaced first, so
/// that one which contains another leaves nothing of itself.
#[must_use]
pub fn redact(text: &str, secrets: &[&str]) -> String {
    let mut secrets: Vec<&str> = secrets.iter().copied().filter(|s| s.len() >= 8).collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut out = text.to_owned();
    for secret in secrets {
        if out.contains(secret) {
            out = out.replace(secret, "[redacted]");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_displays_its_sentence_and_debugs_its_kind_operation_and_resource() {
        let error = Error::not_found("sandbox", "dbx_1")
            .during("sandbox_inspect")
            .with_answer(404, Some("req-1".into()), None);
        assert_eq!(error.to_string(), r#"sandbox "dbx_1" does not exist"#);
        assert_eq!(
            format!("{error:?}"),
            "Error { code: NotFound, operation: \"sandbox_inspect\", \
             message: \"sandbox \\\"dbx_1\\\" does not exist\", \
             resource: Resource { kind: \"sandbox\", id: \"dbx_1\" }, status: 404, .. }"
        );
    }

    #[test]
    fn the_innermost_operation_name_wins() {
        let error = Error::internal("x").during("exec").during("outer");
        assert_eq!(error.operation(), "exec");
    }

    #[test]
    fn debug_hides_partial_output() {
        let error = Error::new(Code::OutcomeUnknown, "deadline").with_outcome(|outcome| {
            outcome.partial = Some(PartialOutput {
                stdout: Bytes::from_static(b"secret words"),
                stderr: Bytes::new(),
            });
        });
        let shown = format!("{error:?}");
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("stdout_bytes: 12"), "{shown}");
    }

    #[test]
    fn redact_replaces_long_secrets_everywhere_and_leaves_short_words() {
        let text = "key ak_12345678 and ak_12345678-more, user me";
        assert_eq!(
            redact(text, &["ak_12345678", "ak_12345678-more", "me", ""]),
            "key [redacted] and [redacted], user me"
        );
    }

    #[test]
    fn an_unsupported_error_names_feature_and_requirement() {
        let error = Error::unsupported("volumes", "Runloop has none");
        assert_eq!(error.code(), Code::Unsupported);
        assert_eq!(error.feature(), Some("volumes"));
        assert_eq!(error.unmet().len(), 1);
    }
}
