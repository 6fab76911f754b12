//! Sends requests on behalf of a call and settles what stops it.
//!
//! A read is dropped when its caller goes away. A mutation is not: it runs in
//! a task of its own, so that it goes out whole or not at all, and only the
//! wait for its answer stops. This is the one place that decides between the
//! two; verbs call [`Connection::read`] or [`Connection::submit`].

use std::sync::Arc;

use tokio::task::JoinHandle;

use super::{Call, Connection};
use crate::api::Context;
use crate::api::answer::{accept, unanswered};
use crate::error::{Code, Error, Result};
use crate::message::{Failure, Request, Response, StreamResponse};

/// The answer to a mutation, to come. Dropping it stops nothing.
pub(super) type Reply = JoinHandle<std::result::Result<Response, Failure>>;

impl Connection {
    /// What the answer to this request will mean.
    pub(super) fn context(&self, operation: &'static str, request: &Request) -> Context<'_> {
        Context::new(operation, request, self.secrets())
    }

    /// Sends a read or a long poll and passes a 2xx on. Anything else is an error.
    pub(super) async fn read(
        &self,
        request: &Request,
        context: &Context<'_>,
        call: &Call,
    ) -> Result<Response> {
        accept(self.ask(request, context, call).await?, context)
    }

    /// As [`read`](Self::read), but an answer of any status is passed on.
    pub(super) async fn ask(
        &self,
        request: &Request,
        context: &Context<'_>,
        call: &Call,
    ) -> Result<Response> {
        let traced = self.traced(request, context.operation, call);
        let sending = self.transport().send(traced.as_ref().unwrap_or(request));
        let answer = self.until_stopped(call, context.operation, sending);
        answer
            .await?
            .map_err(|failure| unanswered(&failure, context))
    }

    /// Opens a stream and passes a 2xx on; any other answer is read and made an error.
    pub(super) async fn open_stream(
        &self,
        request: &Request,
        context: &Context<'_>,
        call: &Call,
    ) -> Result<StreamResponse> {
        let traced = self.traced(request, context.operation, call);
        let sent = traced.as_ref().unwrap_or(request);
        let work = async {
            let answer = self.transport().stream(sent).await?;
            if answer.head.is_success() {
                return Ok(Ok(answer));
            }
            answer
                .collect(request.max_body_bytes.min(64 * 1024))
                .await
                .map(Err)
        };
        match self.until_stopped(call, context.operation, work).await? {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(refused)) => Err(crate::api::answer::refusal(&refused, context)),
            Err(failure) => Err(unanswered(&failure, context)),
        }
    }

    /// Sends a mutation, once, and passes a 2xx on.
    ///
    /// Stopped before it is sent: `CANCELLED` or `CLOSED` with `submitted:
    /// false`, and nothing is sent. Stopped later: the request goes on; the
    /// error is `CANCELLED` with `submitted: true`, or `OUTCOME_UNKNOWN` where
    /// the connection was closed.
    pub(super) async fn submit(
        &self,
        request: Request,
        context: &Context<'_>,
        call: &Call,
    ) -> Result<Response> {
        let operation = context.operation;
        if let Some(error) = self.stopped(call, operation) {
            return Err(error.with_outcome(|outcome| outcome.submitted = Some(false)));
        }
        let answer = tokio::select! {
            biased;
            answer = self.dispatch(request, operation, call) => answer.map_err(|_| {
                Error::internal("the task that sent a request ended early").during(operation)
            })?,
            () = call.cancel.cancelled() => {
                let error = cancelled(operation);
                return Err(error.with_outcome(|outcome| outcome.submitted = Some(true)));
            }
            () = self.closed().cancelled() => {
                let error = Error::new(
                    Code::OutcomeUnknown,
                    "the connection was closed while a request was on its way",
                );
                let error = error.during(operation);
                return Err(error.with_outcome(|outcome| outcome.submitted = Some(true)));
            }
        };
        let answer = answer.map_err(|failure| unanswered(&failure, context))?;
        accept(answer, context)
    }

    /// Sends a mutation, once, in a task that nothing stops. Its answer may be
    /// awaited, or be left to come.
    pub(super) fn dispatch(
        &self,
        mut request: Request,
        operation: &'static str,
        call: &Call,
    ) -> Reply {
        request.trace = self.trace(operation, call);
        let transport = Arc::clone(self.transport());
        tokio::spawn(async move { transport.send(&request).await })
    }

    /// The request with a trace; `None` where nobody listens, so that nothing is copied.
    pub(super) fn traced(
        &self,
        request: &Request,
        operation: &'static str,
        call: &Call,
    ) -> Option<Request> {
        let trace = self.trace(operation, call)?;
        Some(Request {
            trace: Some(trace),
            ..request.clone()
        })
    }

    /// Runs until it is done, the caller's signal or the end of the connection.
    pub(super) async fn until_stopped<T>(
        &self,
        call: &Call,
        operation: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T> {
        if let Some(error) = self.stopped(call, operation) {
            return Err(error);
        }
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = call.cancel.cancelled() => Err(cancelled(operation)),
            () = self.closed().cancelled() => Err(closed(operation)),
        }
    }

    /// The error of a call that must not go on.
    pub(super) fn stopped(&self, call: &Call, operation: &'static str) -> Option<Error> {
        if call.cancel.is_cancelled() {
            return Some(cancelled(operation));
        }
        self.closed().is_cancelled().then(|| closed(operation))
    }
}

fn cancelled(operation: &'static str) -> Error {
    Error::new(Code::Cancelled, "the caller's signal stopped the call").during(operation)
}

fn closed(operation: &'static str) -> Error {
    Error::new(Code::Closed, "the connection is closed; connect again").during(operation)
}
