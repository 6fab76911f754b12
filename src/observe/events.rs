//! What happens on a connection, for whoever traces it.
//!
//! An event names calls, ids, paths and sizes. A path comes without its query,
//! which may hold a cursor, and a body never.

use serde::Serialize;

/// Is told of events. Must be quick: it is called where things happen.
pub trait Observer: Send + Sync + 'static {
    /// Whether anybody listens. Where nobody does, no event is made.
    fn is_active(&self) -> bool;

    /// Something happened.
    fn observe(&self, event: &Event<'_>);
}

/// Something that happened.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Event<'a> {
    /// A request is about to be sent.
    #[serde(rename = "request.start")]
    RequestStart {
        /// Milliseconds since the epoch.
        time: f64,
        /// Which request.
        #[serde(flatten)]
        request: RequestDetails<'a>,
        /// Size of the body that is sent.
        sent_bytes: usize,
    },
    /// A request was answered, failed, or was given up.
    #[serde(rename = "request.end")]
    RequestEnd {
        /// Milliseconds since the epoch.
        time: f64,
        /// Which request.
        #[serde(flatten)]
        request: RequestDetails<'a>,
        /// HTTP status; absent where no answer came.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// The provider's id of the request, else ours.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<&'a str>,
        /// What went wrong in the transport; absent where the answer is whole.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<&'a str>,
        /// From the start on, the body included.
        duration_ms: f64,
        /// Size of the body that arrived, after decompression.
        received_bytes: u64,
    },
    /// A request failed and will be sent again.
    #[serde(rename = "retry")]
    Retry {
        /// Milliseconds since the epoch.
        time: f64,
        /// Which request.
        #[serde(flatten)]
        request: RequestDetails<'a>,
        /// Why, for example `status 503`.
        reason: &'a str,
        /// Pause before the next attempt.
        delay_ms: f64,
    },
    /// A stream of a process is opened again where it left off.
    #[serde(rename = "reconnect")]
    Reconnect {
        /// Milliseconds since the epoch.
        time: f64,
        /// The call: `process_read`.
        operation: &'a str,
        /// Where the process runs.
        sandbox_id: &'a str,
        /// Which process.
        process_id: &'a str,
        /// `stdout` or `stderr`.
        stream: &'a str,
        /// Where it goes on, in the service's count.
        offset: u64,
        /// How the connection before it ended.
        reason: &'a str,
    },
}

/// What every event of one request says.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestDetails<'a> {
    /// Number of the attempt within this process; start and end have the same.
    pub request: u64,
    /// The call that it is made for.
    pub operation: &'a str,
    /// The caller's operation, where the call is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<&'a str>,
    /// `GET` or `POST`.
    pub method: &'a str,
    /// The path with `{id}` for what is no word of the API.
    pub route: &'a str,
    /// The path, without its query.
    pub path: &'a str,
    /// 1 for the first.
    pub attempt: u32,
}
