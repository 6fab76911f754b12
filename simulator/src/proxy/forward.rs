//! One request on one connection of its own, WebSockets and other upgrades
//! included.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{self, HOST};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, Version};
use hyper::client::conn::http1;
use hyper::upgrade::{OnUpgrade, on};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Headers that speak of one connection, not of the request.
const HOP_BY_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Sends the request and gives the answer as it arrives; ends with the box.
pub(super) async fn forward(
    request: Request,
    stream: TcpStream,
    ended: CancellationToken,
) -> hyper::Result<Response> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let serving = ended.clone();
    tokio::spawn(async move {
        tokio::select! {
            served = connection.with_upgrades() => if let Err(error) = served {
                tracing::debug!(%error, "a tunnelled connection broke off");
            },
            () = serving.cancelled() => {}
        }
    });
    let (request, of_client) = outgoing(request);
    let answer = sender.send_request(request).await?;
    Ok(match of_client {
        Some(of_client) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
            join(of_client, answer, ended)
        }
        _ => {
            let (mut parts, body) = answer.into_parts();
            strip(&mut parts.headers);
            Response::from_parts(parts, Body::new(body))
        }
    })
}

/// The request as the server in the box is to see it, and the client's side
/// of the upgrade that it asks for.
fn outgoing(mut request: Request) -> (Request, Option<OnUpgrade>) {
    let upgrade = request.headers().get(header::UPGRADE).cloned();
    let of_client = upgrade.is_some().then(|| on(&mut request));
    let (mut parts, body) = request.into_parts();
    strip(&mut parts.headers);
    if let Some(upgrade) = upgrade {
        parts.headers.insert(header::UPGRADE, upgrade);
        parts
            .headers
            .insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
    if let Some(authority) = parts.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        parts.headers.insert(HOST, host);
    }
    let path = parts.uri.path_and_query().cloned();
    parts.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    parts.version = Version::HTTP_11;
    (Request::from_parts(parts, body), of_client)
}

fn strip(headers: &mut HeaderMap) {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Answers the upgrade and carries bytes both ways until a side ends.
fn join(
    of_client: OnUpgrade,
    mut answer: hyper::Response<hyper::body::Incoming>,
    ended: CancellationToken,
) -> Response {
    let of_server = on(&mut answer);
    tokio::spawn(async move {
        let Ok((client, server)) = futures::future::try_join(of_client, of_server).await else {
            return;
        };
        let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
        tokio::select! {
            carried = tokio::io::copy_bidirectional(&mut client, &mut server) => {
                if let Err(error) = carried {
                    tracing::debug!(%error, "an upgraded connection broke off");
                }
            }
            () = ended.cancelled() => {}
        }
    });
    answer.map(|_| Body::empty())
}
