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
//! | none, no URL leads there | `NOT_FOUND` | `NOT_FOUND`, not submitted |
//!
//! The provider's own message is kept, because it is the best help there is;
//! secrets are taken out before it is shortened, so that no half of one stays.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Secrets;
use super::echo::without_echo;
use crate::error::{Code, Error, Result};
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
    /// What must not stand in a message.
    pub secrets: &'a Secrets,
    /// What else must not, in this call: its environment values.
    pub also_hide: &'a [&'a str],
    /// What must not be quoted: files, standard input, commands.
    pub contents: &'a [&'a [u8]],
}

impl<'a> Context<'a> {
    /// The call that makes this request, on a connection with these secrets.
    #[must_use]
    pub fn new(operation: &'static str, request: &Request, secrets: &'a Secrets) -> Self {
        let is_mutation = request.kind == Kind::Mutation;
        Self {
            operation,
            is_mutation,
            resource: None,
            secrets,
            also_hide: &[],
            contents: &[],
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
    pub fn hiding(mut self, values: &'a [&'a str]) -> Self {
        self.also_hide = values;
        self
    }

    /// What the request carries, of which a message may quote nothing.
    #[must_use]
    pub fn carrying(mut self, contents: &'a [&'a [u8]]) -> Self {
        self.contents = contents;
        self
    }

    fn error(&self, code: Code, message: String) -> Error {
        let mut error = Error::new(code, message).during(self.operation);
        if let Some((kind, id)) = self.resource {
            error = error.with_resource(kind, self.redact(id));
        }
        error
    }

    /// What a 404 is about, in words.
    fn missing(&self) -> String {
        self.resource.map_or_else(
            || "what was asked for".to_owned(),
            |(kind, id)| format!("{kind} {:?}", self.redact(id)),
        )
    }

    /// Takes every secret out of a text.
    fn redact(&self, text: &str) -> String {
        self.secrets.redact(text, self.also_hide)
    }

    /// Takes every secret and every quotation out of what the provider says.
    fn quote(&self, text: &str) -> String {
        without_echo(&self.redact(text), self.contents)
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
            "" => "no content type".to_owned(),
            other => context.quote(other),
        };
        let mut message = format!(
            "Runloop answered {} with a body that could not be read ({shown}; {})",
            response.head.status,
            position(&problem),
        );
        // A view may hold a tunnel's token that nobody has learnt yet.
        if !matches!(response.body.trim_ascii_start().first(), Some(b'{' | b'[')) {
            message.push_str(": ");
            message.push_str(&excerpt(&response.body, context));
        }
        let error = context.meaningless(Code::Protocol, message);
        answered(error, response, context)
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
            let missing = context.missing();
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
    answered(error, response, context)
}

/// The error of a call that got no answer.
#[must_use]
pub fn unanswered(failure: &Failure, context: &Context<'_>) -> Error {
    let detail = context.redact(&failure.detail);
    let error = match (failure.what, failure.sent) {
        (What::Unaddressable, _) => {
            let message = format!("{} does not exist: {detail}", context.missing());
            unsubmitted(context.error(Code::NotFound, message), context)
        }
        (What::Build, _) => context.error(
            Code::Internal,
            format!("the request could not be built: {detail}"),
        ),
        (what, Sent::No) => {
            let message = match what {
                What::Tls => format!("no secure connection to Runloop at {detail}"),
                _ => format!("no connection to Runloop at {detail}"),
            };
            unsubmitted(context.error(Code::Unavailable, message), context)
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

fn unsubmitted(error: Error, context: &Context<'_>) -> Error {
    if context.is_mutation {
        error.with_outcome(|outcome| outcome.submitted = Some(false))
    } else {
        error
    }
}

fn answered(error: Error, response: &Response, context: &Context<'_>) -> Error {
    let head = &response.head;
    error
        .with_answer(
            head.status,
            head.request_id.as_deref().map(|id| context.redact(id)),
            head.retry_after_seconds,
        )
        .with_attempts(head.attempts)
}

/// The provider's sentence: the API has no schema for errors, so every known place is looked at.
fn provider_message(response: &Response, context: &Context<'_>) -> String {
    // As a tree, a large body would take many times its size.
    let read = (response.body.len() <= MAX_EXAMINED_BYTES)
        .then(|| serde_json::from_slice::<Value>(&response.body).ok());
    let Some(value) = read.flatten() else {
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
        Some(text) => shorten(&context.quote(beginning(text))),
        // Value by value, because an escaped secret would not be recognised in the text.
        None => shorten(&hide(value, context).to_string()),
    }
}

fn hide(value: Value, context: &Context<'_>) -> Value {
    match value {
        Value::String(text) => Value::String(context.quote(beginning(&text))),
        Value::Array(items) => items.into_iter().map(|item| hide(item, context)).collect(),
        Value::Object(pairs) => pairs
            .into_iter()
            .map(|(key, item)| (context.quote(&key), hide(item, context)))
            .collect(),
        other => other,
    }
}

fn excerpt(body: &[u8], context: &Context<'_>) -> String {
    let examined = body.get(..MAX_EXAMINED_BYTES).unwrap_or(body);
    let text = String::from_utf8_lossy(examined);
    match text.trim() {
        "" => "no message".to_owned(),
        text => shorten(&context.quote(text)),
    }
}

/// As much of a text as is looked at.
fn beginning(text: &str) -> &str {
    let end = text.floor_char_boundary(MAX_EXAMINED_BYTES);
    text.get(..end).unwrap_or(text)
}

/// At most 500 characters of what a provider says.
#[must_use]
pub fn shorten(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::{Body, Head};

    const KEY: &str = "ak_0123456789abcdef";

    fn answer(status: u16, content_type: &str, body: &str) -> Response {
        let head = Head {
            status,
            content_type: content_type.into(),
            request_id: Some("req-1".into()),
            attempts: 1,
            ..Head::default()
        };
        Response {
            head,
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    fn json(status: u16, body: &str) -> Response {
        answer(status, "application/json", body)
    }

    fn read() -> Request {
        Request::get("/v1/x".into())
    }

    fn mutation() -> Request {
        Request::mutation("/v1/x".into(), Body::Empty)
    }

    fn code(request: &Request, response: &Response) -> Code {
        let secrets = Secrets::new(KEY);
        refusal(response, &Context::new("test", request, &secrets)).code()
    }

    #[test]
    fn r31_every_status_has_its_code_for_reads_and_for_mutations() {
        use Code::*;
        for (status, for_a_read, for_a_mutation) in [
            (100, Protocol, OutcomeUnknown),
            (301, Protocol, OutcomeUnknown),
            (307, Protocol, OutcomeUnknown),
            (400, Rejected, Rejected),
            (401, Unauthenticated, Unauthenticated),
            (403, PermissionDenied, PermissionDenied),
            (404, NotFound, NotFound),
            (408, Unavailable, OutcomeUnknown),
            (409, Conflict, Conflict),
            (410, Rejected, Rejected),
            (422, Rejected, Rejected),
            (429, RateLimited, RateLimited),
            (500, Unavailable, OutcomeUnknown),
            (502, Unavailable, OutcomeUnknown),
            (599, Unavailable, OutcomeUnknown),
            (999, Unavailable, OutcomeUnknown),
        ] {
            let response = json(status, r#"{"message":"no"}"#);
            assert_eq!(code(&read(), &response), for_a_read, "{status}");
            assert_eq!(code(&mutation(), &response), for_a_mutation, "{status}");
        }
    }

    #[test]
    fn an_answered_mutation_was_submitted_and_keeps_status_and_request_id() {
        let secrets = Secrets::new(KEY);
        let request = mutation();
        let context = Context::new("sandbox_create", &request, &secrets);
        let error = refusal(&json(400, r#"{"message":"too many"}"#), &context);
        assert_eq!(error.outcome().submitted, Some(true));
        assert_eq!(
            (error.status(), error.request_id()),
            (Some(400), Some("req-1"))
        );
        assert_eq!(error.operation(), "sandbox_create");
        assert_eq!(error.message(), "Runloop refused it (400): too many");
    }

    #[test]
    fn k2_whatever_the_body_is_the_message_says_something() {
        let secrets = Secrets::new(KEY);
        let request = read();
        let context = Context::new("test", &request, &secrets);
        for (content_type, body, expected) in [
            ("application/json", r#"{"message":"plain"}"#, "plain"),
            ("application/json", r#"{"error":"short"}"#, "short"),
            (
                "application/json",
                r#"{"error":{"message":"deep"}}"#,
                "deep",
            ),
            (
                "application/json",
                r#"{"message":{"x":1}}"#,
                r#"{"message":{"x":1}}"#,
            ),
            (
                "application/json",
                r#"{"message":"half"#,
                r#"{"message":"half"#,
            ),
            (
                "text/html",
                "<html>Bad Gateway</html>",
                "<html>Bad Gateway</html>",
            ),
            ("", "", "no message"),
            ("text/plain", "  \n ", "no message"),
        ] {
            let error = refusal(&answer(400, content_type, body), &context);
            assert_eq!(
                error.message(),
                format!("Runloop refused it (400): {expected}")
            );
        }
    }

    #[test]
    fn k6_no_secret_stands_in_a_message_not_even_half_of_one() {
        let secrets = Secrets::new(KEY);
        secrets.learn("tok_0123456789");
        let request = read();
        let context = Context::new("test", &request, &secrets)
            .hiding(&["two\nlines"])
            .about("sandbox", KEY);
        let padding = "x".repeat(MAX_MESSAGE_CHARS - 5);
        for body in [
            format!(r#"{{"message":"{KEY} tok_0123456789"}}"#),
            format!(r#"{{"odd":["{KEY}"],"{KEY}":1,"more":"two\nlines"}}"#),
            format!("{padding}{KEY}"),
            format!(r#"{{"message":"{padding}{KEY}"}}"#),
        ] {
            for status in [200, 400, 401, 404, 500, 302] {
                let error = if status == 200 {
                    parse::<u8>(&json(status, &body), &context).unwrap_err()
                } else {
                    refusal(&json(status, &body), &context)
                };
                let shown = format!("{error} {error:?}");
                for secret in ["ak_01", "tok_01", "lines"] {
                    assert!(!shown.contains(secret), "{status} {body}: {shown}");
                }
            }
        }
    }

    #[test]
    fn k2_a_success_that_cannot_be_read_is_never_a_success() {
        #[derive(Debug, serde::Deserialize)]
        struct View {
            #[expect(dead_code, reason = "only its type matters")]
            id: String,
        }
        let secrets = Secrets::new(KEY);
        for (content_type, body) in [
            ("text/html", "<html>"),
            ("application/json", r#"{"id":"dbx"#),
            ("application/json", r#"{"id":7}"#),
            ("application/json", "null"),
            ("", ""),
        ] {
            for (request, expected) in
                [(read(), Code::Protocol), (mutation(), Code::OutcomeUnknown)]
            {
                let context = Context::new("test", &request, &secrets);
                let error = parse::<View>(&answer(200, content_type, body), &context).unwrap_err();
                assert_eq!(error.code(), expected, "{body}");
                assert_eq!(error.status(), Some(200));
            }
        }
    }

    #[test]
    fn r31_without_an_answer_only_what_cannot_have_arrived_is_definite() {
        let secrets = Secrets::new(KEY);
        for (what, sent, for_a_read, for_a_mutation, submitted) in [
            (
                What::Connect,
                Sent::No,
                Code::Unavailable,
                Code::Unavailable,
                Some(false),
            ),
            (
                What::Tls,
                Sent::No,
                Code::Unavailable,
                Code::Unavailable,
                Some(false),
            ),
            (
                What::Proxy,
                Sent::No,
                Code::Unavailable,
                Code::Unavailable,
                Some(false),
            ),
            (
                What::Timeout,
                Sent::Maybe,
                Code::Unavailable,
                Code::OutcomeUnknown,
                Some(true),
            ),
            (
                What::Reset,
                Sent::Maybe,
                Code::Unavailable,
                Code::OutcomeUnknown,
                Some(true),
            ),
            (
                What::TooLarge,
                Sent::Maybe,
                Code::Protocol,
                Code::OutcomeUnknown,
                Some(true),
            ),
            (
                What::Unaddressable,
                Sent::No,
                Code::NotFound,
                Code::NotFound,
                Some(false),
            ),
            (What::Build, Sent::No, Code::Internal, Code::Internal, None),
        ] {
            let failure = Failure::new(sent, what, "broken");
            let request = read();
            let error = unanswered(&failure, &Context::new("test", &request, &secrets));
            assert_eq!(
                (error.code(), error.outcome().submitted),
                (for_a_read, None),
                "{what:?}"
            );
            let request = mutation();
            let error = unanswered(&failure, &Context::new("test", &request, &secrets));
            assert_eq!(error.code(), for_a_mutation, "{what:?}");
            assert_eq!(error.outcome().submitted, submitted, "{what:?}");
        }
    }
}
