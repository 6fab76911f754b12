//! One request on an HTTP/2 connection, and its answer.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderValue, Request, Version};
use http_body::Frame;
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::server::connection::{Connection, Hangup};

/// Headers that HTTP/2 does not have.
const OF_HTTP_1: [HeaderName; 6] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// What the whole connection is to do instead of an answer. The stream stays
/// open until that is done: dropping it is RST_STREAM.
pub(super) struct Instead {
    pub(super) how: Hangup,
    pub(super) stream: SendResponse<Bytes>,
}

/// Answers the request, unless it is for the connection to do something.
pub(super) async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    connection: Arc<Connection>,
    router: Router,
) -> Option<Instead> {
    let _until_sent = connection.begin_request();
    let (mut parts, stream) = request.into_parts();
    parts.extensions.insert(Arc::clone(&connection));
    let request = Request::from_parts(parts, Body::new(Received(stream)));
    let response = tokio::select! {
        answered = router.oneshot(request) => match answered {
            Ok(response) => response,
            Err::<_, Infallible>(never) => match never {},
        },
        // The client no longer waits.
        _reset = poll_fn(|context| respond.poll_reset(context)) => return None,
    };
    match response.extensions().get::<Hangup>().copied() {
        None => {
            if let Err(error) = send(response, &mut respond).await {
                tracing::debug!(connection = connection.id, %error, "stream ended");
            }
            None
        }
        Some(Hangup::ResetStream(code)) => {
            respond.send_reset(Reason::from(code));
            None
        }
        Some(how) => {
            if how == Hangup::GoawayBefore {
                connection.shut_before(respond.stream_id().as_u32());
                if connection.admit(respond.stream_id().as_u32()) {
                    respond.send_reset(Reason::REFUSED_STREAM);
                }
            }
            Some(Instead {
                how,
                stream: respond,
            })
        }
    }
}

async fn send(response: Response, respond: &mut SendResponse<Bytes>) -> Result<(), h2::Error> {
    let (mut parts, mut body) = response.into_parts();
    parts.version = Version::HTTP_2;
    for name in &OF_HTTP_1 {
        parts.headers.remove(name);
    }
    if let Some(length) = body.size_hint().exact() {
        let length = HeaderValue::from(length);
        parts.headers.entry(CONTENT_LENGTH).or_insert(length);
    }
    let is_over = body.is_end_stream();
    let mut stream = respond.send_response(Response::from_parts(parts, ()), is_over)?;
    if is_over {
        return Ok(());
    }
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            reset = poll_fn(|context| stream.poll_reset(context)) => return reset.map(|_reason| ()),
        };
        match frame.map(|frame| frame.map(Frame::into_data)) {
            None => return stream.send_data(Bytes::new(), true),
            Some(Err(_broken)) => {
                stream.send_reset(Reason::INTERNAL_ERROR);
                return Ok(());
            }
            Some(Ok(Ok(data))) => {
                let is_over = body.is_end_stream() && !data.is_empty();
                send_data(&mut stream, data, is_over).await?;
                if is_over {
                    return Ok(());
                }
            }
            Some(Ok(Err(other))) => {
                if let Ok(trailers) = other.into_trailers() {
                    return stream.send_trailers(trailers);
                }
            }
        }
    }
}

/// Sends as much at once as the client has room for.
async fn send_data(
    stream: &mut SendStream<Bytes>,
    mut data: Bytes,
    is_over: bool,
) -> Result<(), h2::Error> {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        while stream.capacity() == 0 {
            match poll_fn(|context| stream.poll_capacity(context)).await {
                Some(granted) => granted?,
                None => return Ok(()),
            };
        }
        let piece = data.split_to(stream.capacity().min(data.len()));
        stream.send_data(piece, is_over && data.is_empty())?;
    }
    Ok(())
}

/// The body of a request; what was read makes room for more.
struct Received(RecvStream);

impl HttpBody for Received {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        match ready!(self.0.poll_data(context)) {
            Some(Ok(data)) => {
                let released = self.0.flow_control().release_capacity(data.len());
                Poll::Ready(Some(released.map(|()| Frame::data(data))))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                let trailers = ready!(self.0.poll_trailers(context)).transpose();
                Poll::Ready(trailers.map(|trailers| trailers.map(Frame::trailers)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}
