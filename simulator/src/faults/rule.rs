//! The vocabulary of faults, as `POST /_simulator/faults` takes it.

use std::collections::BTreeMap;

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::list::ListFault;
use super::reply::Reply;
use super::sse::SseFault;
use crate::state::build::BuildOutcome;
use crate::state::script::Script;
use crate::state::snapshots::SnapshotOutcome;

/// One rule. With no `count` it acts until it is removed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Names the rule in the journal; given out if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(default, rename = "match")]
    pub(crate) matcher: Matcher,
    pub(crate) action: Action,
}

/// Which requests a rule is for; an absent field is for all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Matcher {
    pub(crate) method: Option<String>,
    /// Segments of a path; `*` is any one segment, `**` any rest.
    pub(crate) path: Option<String>,
    /// Query parameters that must be there with these values.
    pub(crate) query: BTreeMap<String, String>,
    /// Text that the JSON body must hold (compact, as the journal shows it).
    pub(crate) body_contains: Option<String>,
    /// Matching requests to let pass first.
    pub(crate) after: u64,
    /// Matching requests to act on, then no more.
    pub(crate) count: Option<u64>,
}

impl Matcher {
    /// Whether the rule is for such a request, whatever its counters say.
    pub(crate) fn fits(
        &self,
        method: &Method,
        path: &str,
        query: &BTreeMap<String, String>,
        body: Option<&Value>,
    ) -> bool {
        self.method
            .as_ref()
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(method.as_str()))
            && self
                .path
                .as_ref()
                .is_none_or(|pattern| path_fits(pattern, path))
            && self
                .query
                .iter()
                .all(|(name, value)| query.get(name) == Some(value))
            && self
                .body_contains
                .as_ref()
                .is_none_or(|part| body.is_some_and(|body| body.to_string().contains(part)))
    }
}

fn path_fits(pattern: &str, path: &str) -> bool {
    let mut segments = path.trim_start_matches('/').split('/');
    for wanted in pattern.trim_start_matches('/').split('/') {
        if wanted == "**" {
            return true;
        }
        match segments.next() {
            Some(segment) if wanted == "*" || wanted == segment => {}
            _ => return false,
        }
    }
    segments.next().is_none()
}

/// What happens to a request that a rule is for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Action {
    /// Wait before acting.
    Latency(Milliseconds),
    /// Answer without acting.
    Refuse(Reply),
    /// Answer 429 without acting; `retry_after` goes out as it stands.
    RateLimit(RateLimit),
    /// Redirect without acting.
    Redirect(Redirect),
    /// End the connection without acting.
    DropRequest(Drop),
    /// End the stream without acting, by RST_STREAM.
    ResetRequest(ResetStream),
    /// Say GOAWAY, which excludes the request, without acting.
    GoawayRequest(Empty),
    /// Never answer, without acting.
    HoldRequest(Empty),
    /// Act, wait, answer.
    DelayReply(Milliseconds),
    /// Act, then answer something else.
    ReplaceReply(Reply),
    /// Act, then change the JSON of the answer.
    EditReply(Edit),
    /// Act, then send only the first half of the body, as if it were whole.
    HalveReply(Empty),
    /// Act, then end the connection instead of an answer.
    DropReply(Drop),
    /// Act, then end the stream instead of an answer, by RST_STREAM.
    ResetReply(ResetStream),
    /// Act, then say GOAWAY and end the connection instead of an answer.
    GoawayReply(Goaway),
    /// Say GOAWAY and answer all the same.
    Goaway(Empty),
    /// Act, then never answer.
    HoldReply(Empty),
    /// Send this many bytes of the body, then end the connection.
    TruncateReply(Truncate),
    /// Send this many bytes of the body, then nothing more.
    StallReply(Truncate),
    /// Send the body in small pieces with pauses.
    SlowReply(Slow),
    /// Answer; then close the connection once it has been idle this long.
    CloseIdle(Milliseconds),
    /// Answer as if it had acted, without acting (where a route changes a
    /// thing that exists).
    NoEffect(Empty),
    /// Spoil a list's query or page.
    List(ListFault),
    /// Spoil an event stream.
    Sse(SseFault),
    /// Let the Devbox that the request makes play a script.
    DevboxScript(Script),
    /// Let the snapshot that the request makes end this way.
    SnapshotOutcome(SnapshotOutcome),
    /// Let the blueprint that the request makes end this way.
    BuildOutcome(BuildOutcome),
}

/// An action without parameters.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Empty {}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Milliseconds {
    pub(crate) milliseconds: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateLimit {
    /// The header's value, sensible or not; absent: no header.
    pub(crate) retry_after: Option<String>,
}

/// To `location` as it stands, or to the same path on `origin`, or (with
/// neither) to the same path on this origin.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redirect {
    #[serde(default = "temporary_redirect")]
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    pub(crate) origin: Option<String>,
}

fn temporary_redirect() -> u16 {
    307
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drop {
    /// Reset the connection instead of closing it.
    #[serde(default)]
    pub(crate) reset: bool,
}

/// An HTTP/2 error code by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ErrorCode {
    NoError = 0,
    ProtocolError = 1,
    InternalError = 2,
    FlowControlError = 3,
    RefusedStream = 7,
    Cancel = 8,
    EnhanceYourCalm = 11,
    Http11Required = 13,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResetStream {
    /// `refused_stream` promises that nothing was done.
    pub(crate) code: ErrorCode,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Goaway {
    #[serde(default = "no_error")]
    pub(crate) code: ErrorCode,
}

fn no_error() -> ErrorCode {
    ErrorCode::NoError
}

/// JSON pointers to set and to remove; a pointer that leads nowhere is passed
/// over, except that the last step of a `set` may be new.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    #[serde(default)]
    pub(crate) set: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) remove: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Truncate {
    pub(crate) bytes: usize,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Slow {
    pub(crate) chunk_bytes: usize,
    pub(crate) milliseconds: u64,
}

#[cfg(test)]
mod tests {
    use super::path_fits;

    #[test]
    fn a_pattern_fits_whole_segments() {
        assert!(path_fits(
            "/v1/devboxes/*/execute",
            "/v1/devboxes/dbx_1/execute"
        ));
        assert!(!path_fits("/v1/devboxes/*", "/v1/devboxes/dbx_1/execute"));
        assert!(path_fits("/v1/devboxes/**", "/v1/devboxes/dbx_1/execute"));
        assert!(path_fits("/v1/devboxes/**", "/v1/devboxes"));
        assert!(!path_fits("/v1/devboxes", "/v1/devboxes/dbx_1"));
        assert!(path_fits("**", "/anything"));
    }
}
