//! What an answer, or the lack of one, means. The one table of statuses.
//!
//! | answer | a read | a mutation |
//! | --- | --- | --- |
//! | 2xx of the right shape | the view | the view |
//! | 401, 403, 404, 409, 429 | its own code | its own code |
//! | another 4xx but 408 | `REJECTED` | `REJECTED` |
//! | 408, 5xx | `UNAVAILABLE` | `OUTCOME_UNKNOWN` |
//! | 1xx, 3xx, 2xx of another shape | `PROTOCOL` | `OUTCOME_UNKNOWN` |
//! | none, no connection | `UNAVAILABLE` | `UNAVAILABLE`, not submitted |
//! | none, may have arrived | `UNAVAILABLE` | `OUTCOME_UNKNOWN` |
//!
//! The provider's own message is kept, because it is the best help there is;
//! secrets are taken out before it is shortened, so that no half of one stays.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Code, Error, Result, redact};
use crate::message::{Failure, Kind, Request, Response, Sent, What};

/// Longest excerpt of a provider's message, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// What is looked at for a message, in bytes.
const MAX_EXAMINED_BYTES: usize = 64 * 1024;

/// What the call was, to say what its answer means.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Name for `error.operation`, for example `sandbox_create`.
    pub operation: &'static str,
    /// Whether it changes something.
    pub is_mutation: bool,
    /// Kind and id of what a 404 says is missing.
    pub resource: Option<(&'static str, &'a str)>,
    /// The API key, which must not stand in a message.
    pub api_key: &'a str,
    /// What else must not: tunnel tokens, this call's environment values.
    pub secrets: &'a [&'a str],
}

impl<'a> Context<'a> {
    /// The call that makes this request with this key.
    #[must_use]
    pub fn new(operation: &'static str, request: &Request, api_key: &'a str) -> Self {
        let is_mutation = request.kind == Kind::Mutation;
        Self {
            operation,
            is_mutation,
            resource: None,
            api_key,
            secrets: &[],
        }
    }

    /// Names what a 404 says is missing.
    #[must_use]
    pub fn about(mut self, kind: &'static str, id: &'a str) -> Self {
        self.resource = Some((kind, id));
        self
    }

    /// What else must not stand in a message.
    #[must_use]
    pub fn hiding(mut self, secrets: &'a [&'a str]) -> Self {
        self.secrets = secrets;
        self
    }

    fn error(&self, code: Code, message: String) -> Error {
        let mut error = Error::new(code, message).during(self.operation);
        if let Some((kind, id)) = self.resource {
            error = error.with_resource(kind, self.redact(id));
        }
        error
    }

    /// Takes every secret out of a text.
    fn redact(&self, text: &str) -> String {
        let mut secrets = Vec::with_capacity(self.secrets.len() + 1);
        secrets.push(self.api_key);
        secrets.extend_from_slice(self.secrets);
        redact(text, &secrets)
    }

    /// The answer means nothing: for a mutation its result is unknown.
    fn meaningless(&self, for_a_read: Code, message: String) -> Error {
        if self.is_mutation {
            self.error(Code::OutcomeUnknown, message)
                .with_outcome(|o| o.submitted = Some(true))
        } else {
            self.error(for_a_read, message)
        }
    }
}

/// Passes a 2xx on and makes an error of anything else.
///
/// # Errors
/// See the table of the [module](self).
pub fn accept(response: Response, context: &Context<'_>) -> Result<Response> {
    if response.head.is_success() {
        Ok(response)
    } else {
        Err(refusal(&response, context))
    }
}

/// Reads the view of a 2xx.
///
/// # Errors
/// `PROTOCOL` for a read, `OUTCOME_UNKNOWN` for a mutation, with the content
/// type and an excerpt, where the body is not such a view.
pub fn parse<T: DeserializeOwned>(response: &Response, context: &Context<'_>) -> Result<T> {
    serde_json::from_slice(&response.body).map_err(|problem| {
        let shown = match response.head.content_type.as_str() {
            "" => "no content type",
            other => other,
        };
        let text = excerpt(&response.body, context);
        let message = format!(
            "Runloop answered {} with a body that could not be read ({shown}; {}): {text}",
            response.head.status,
            position(&problem),
        );
        answered(context.meaningless(Code::Protocol, message), response)
    })
}

/// The error of an answer that is not 2xx.
#[must_use]
pub fn refusal(response: &Response, context: &Context<'_>) -> Error {
    let status = response.head.status;
    let text = provider_message(response, context);
    let error = match status {
        401 => context.error(
            Code::Unauthenticated,
            format!("Runloop does not accept the API key (401): {text}"),
        ),
        403 => context.error(
            Code::PermissionDenied,
            format!("Runloop denies it (403): {text}"),
        ),
        404 => {
            let missing = context.resource.map_or_else(
                || "what was asked for".to_owned(),
                |(kind, id)| format!("{kind} {:?}", context.redact(id)),
            );
            context.error(
                Code::NotFound,
                format!("{missing} does not exist (404): {text}"),
            )
        }
        409 => context.error(
            Code::Conflict,
            format!("Runloop reports a conflict (409): {text}"),
        ),
        429 => context.error(
            Code::RateLimited,
            format!("Runloop limits the rate (429): {text}"),
        ),
        408 | 500.. => context.meaningless(
            Code::Unavailable,
            format!("Runloop answered {status}, which says nothing of the result: {text}"),
        ),
        400..500 => context.error(
            Code::Rejected,
            format!("Runloop refused it ({status}): {text}"),
        ),
        300..400 => context.meaningless(
            Code::Protocol,
            format!("Runloop answered with a redirect ({status}), which is not followed"),
        ),
        _ => context.meaningless(
            Code::Protocol,
            format!("Runloop answered with the unexpected status {status}: {text}"),
        ),
    };
    let error = if context.is_mutation {
        error.with_outcome(|outcome| outcome.submitted = Some(true))
    } else {
        error
    };
    answered(error, response)
}

/// The error of a call that got no answer.
#[must_use]
pub fn unanswered(failure: &Failure, context: &Context<'_>) -> Error {
    let detail = context.redact(&failure.detail);
    let error = match (failure.what, failure.sent) {
        (What::Build, _) => context.error(
            Code::Internal,
            format!("the request could not be built: {detail}"),
        ),
        (what, Sent::No) => {
            let message = match what {
                What::Tls => format!("no secure connection to Runloop: {detail}"),
                _ => format!("no connection to Runloop: {detail}"),
            };
            let error = context.error(Code::Unavailable, message);
            if context.is_mutation {
                error.with_outcome(|outcome| outcome.submitted = Some(false))
            } else {
                error
            }
        }
        (What::TooLarge, Sent::Maybe) => context.meaningless(
            Code::Protocol,
            format!("Runloop's answer was refused: {detail}"),
        ),
        (_, Sent::Maybe) => context.meaningless(
            Code::Unavailable,
            format!("no answer from Runloop: {detail}"),
        ),
    };
    error.with_attempts(failure.attempts)
}

fn answered(error: Error, response: &Response) -> Error {
    let head = &response.head;
    error
        .with_answer(
            head.status,
            head.request_id.clone(),
            head.retry_after_seconds,
        )
        .with_attempts(head.attempts)
}

/// The provider's sentence: the API has no schema for errors, so every known place is looked at.
fn provider_message(response: &Response, context: &Context<'_>) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(&response.body) else {
        return excerpt(&response.body, context);
    };
    let text = ["message", "error", "detail"]
        .iter()
        .find_map(|key| match value.get(key)? {
            Value::String(text) => Some(text.as_str()),
            Value::Object(inner) => inner.get("message")?.as_str(),
            _ => None,
        });
    match text {
        Some(text) => shorten(&context.redact(text)),
        // Value by value, because an escaped secret would not be recognised in the text.
        None => shorten(&hide(value, context).to_string()),
    }
}

fn hide(value: Value, context: &Context<'_>) -> Value {
    match value {
        Value::String(text) => Value::String(context.redact(&text)),
        Value::Array(items) => items.into_iter().map(|item| hide(item, context)).collect(),
        Value::Object(pairs) => pairs
            .into_iter()
            .map(|(key, item)| (context.redact(&key), hide(item, context)))
            .collect(),
        other => other,
    }
}

fn excerpt(body: &[u8], context: &Context<'_>) -> String {
    let examined = body.get(..MAX_EXAMINED_BYTES).unwrap_or(body);
    let text = String::from_utf8_lossy(examined);
    match text.trim() {
        "" => "no message".to_owned(),
        text => shorten(&context.redact(text)),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// Where the JSON is wrong. serde's own sentence may quote the value it met.
fn position(problem: &serde_json::Error) -> String {
    use serde_json::error::Category;
    match problem.classify() {
        Category::Eof => "it ends too early".to_owned(),
        Category::Data => format!("unexpected type at byte column {}", problem.column()),
        Category::Syntax | Category::Io => "it is not JSON".to_owned(),
    }
}
