//! `/v1/devboxes/{id}/*_file*`: contents in and out of a box.
//!
//! Certain: read and write name `file_path`, upload and download name `path`;
//! a read answers plain text; relative paths lead to the home directory. Which
//! statuses a missing file or a directory gives is inferred.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Multipart, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router, extract::FromRequest};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Lenient;
use super::addressed::OfDevbox;
use crate::error::{ApiError, ApiResult};
use crate::faults::Faulted;
use crate::guest::{FileError, FileReader, Guest, Spawn};
use crate::state::World;
use crate::state::choices::WriteFailure;
use crate::state::devboxes::Devbox;
use crate::state::logs::{Line, Source};
use crate::state::settings::Settings;

/// Longest text that a read gives (documented).
const MAX_TEXT_BYTES: u64 = 100 * 1024 * 1024;

pub(super) fn router() -> Router<Arc<World>> {
    Router::new()
        .route("/v1/devboxes/{id}/read_file_contents", post(read))
        .route("/v1/devboxes/{id}/write_file_contents", post(write))
        .route("/v1/devboxes/{id}/upload_file", post(upload))
        .route("/v1/devboxes/{id}/download_file", post(download))
}

#[derive(Debug, Deserialize)]
struct Read {
    file_path: String,
}

#[derive(Deserialize)]
struct Write {
    file_path: String,
    contents: String,
}

#[derive(Debug, Deserialize)]
struct Download {
    path: String,
}

/// The box that a file call is for, marked as used.
fn guest(world: &World, devbox: &Devbox, line: String) -> ApiResult<Guest> {
    let guest = devbox.running_guest(world.settings.get().not_running_status)?;
    let now_ms = world.clock.now_ms();
    devbox.touch(now_ms);
    devbox.log.write(Line::message(Source::Files, line, now_ms));
    Ok(guest)
}

/// Invalid UTF-8 becomes U+FFFD (inferred).
async fn read(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    Lenient(request): Lenient<Read>,
) -> ApiResult<Response> {
    let guest = guest(&world, &devbox, format!("read {}", request.file_path))?;
    let content = guest
        .read_file(&request.file_path, MAX_TEXT_BYTES)
        .await
        .map_err(|error| refusal(&request.file_path, &error, &world.settings.get()))?;
    let text = match String::from_utf8(content.to_vec()) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

async fn download(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    Lenient(request): Lenient<Download>,
) -> ApiResult<Response> {
    let guest = guest(&world, &devbox, format!("download {}", request.path))?;
    let file = guest
        .open_file(&request.path)
        .await
        .map_err(|error| refusal(&request.path, &error, &world.settings.get()))?;
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_DISPOSITION, "attachment".to_owned()),
        (CONTENT_LENGTH, file.len().to_string()),
    ];
    Ok((headers, Body::from_stream(pieces(file))).into_response())
}

/// At most what the file held when it was opened: that is the length that was
/// promised.
fn pieces(file: FileReader) -> impl futures::Stream<Item = Result<Bytes, FileError>> {
    let left = file.len();
    futures::stream::try_unfold((file, left), |(mut file, left)| async move {
        let Some(mut piece) = file.next().await?.filter(|_| left > 0) else {
            return Ok(None);
        };
        piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        let left = left - piece.len() as u64;
        Ok(Some((piece, (file, left))))
    })
}

/// A failed write may be a 200 with an exit status (certain that it happens).
async fn write(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    faulted: Faulted,
    Lenient(request): Lenient<Write>,
) -> ApiResult<Json<Value>> {
    let path = &request.file_path;
    let guest = guest(&world, &devbox, format!("write {path}"))?;
    let settings = world.settings.get();
    let written = if faulted.has_no_effect() {
        Ok(())
    } else {
        write_all(&guest, path, Bytes::from(request.contents), &settings).await
    };
    let (exit_status, stderr) = match written {
        Ok(()) => (0, String::new()),
        Err(error) if settings.write_failure == WriteFailure::Status => {
            return Err(refusal(path, &error, &settings));
        }
        Err(error) => (1, format!("{path}: {error}\n")),
    };
    Ok(Json(json!({
        "devbox_id": devbox.id(),
        "exit_status": exit_status,
        "stdout": "",
        "stderr": stderr,
    })))
}

async fn write_all(
    guest: &Guest,
    path: &str,
    content: Bytes,
    settings: &Settings,
) -> Result<(), FileError> {
    if settings.create_parents {
        make_parents(guest, path).await?;
    }
    guest.write_file(path, content).await
}

async fn make_parents(guest: &Guest, path: &str) -> Result<(), FileError> {
    let Some((parent, _)) = path
        .rsplit_once('/')
        .filter(|(parent, _)| !parent.is_empty())
    else {
        return Ok(());
    };
    let expanded = parent.strip_prefix("~/").unwrap_or(parent);
    let quoted = expanded.replace('\'', r"'\''");
    guest
        .spawn(Spawn::new(format!("mkdir -p -- '{quoted}'")))
        .await?
        .exited()
        .await;
    Ok(())
}

/// Multipart with `path` before `file` (certain for both official clients).
async fn upload(
    State(world): State<Arc<World>>,
    OfDevbox(devbox): OfDevbox,
    faulted: Faulted,
    request: Request,
) -> ApiResult<Json<Value>> {
    let mut form = Multipart::from_request(request, &())
        .await
        .map_err(|error| ApiError::bad_request(error.body_text()))?;
    let settings = world.settings.get();
    let mut path = None;
    while let Some(mut field) = form.next_field().await.map_err(broken_form)? {
        match field.name() {
            Some("path") => path = Some(field.text().await.map_err(broken_form)?),
            Some("file") => {
                let path =
                    path.ok_or_else(|| ApiError::bad_request("path must come before file"))?;
                let guest = guest(&world, &devbox, format!("upload {path}"))?;
                if faulted.has_no_effect() {
                    return Ok(Json(json!({})));
                }
                let refused = |error: FileError| refusal(&path, &error, &settings);
                if settings.create_parents {
                    make_parents(&guest, &path).await.map_err(refused)?;
                }
                let mut file = guest.create_file(&path).await.map_err(refused)?;
                while let Some(piece) = field.chunk().await.map_err(broken_form)? {
                    file.write(piece).await.map_err(refused)?;
                }
                return Ok(Json(json!({})));
            }
            _ => {}
        }
    }
    Err(ApiError::bad_request(
        "the form needs the fields path and file",
    ))
}

fn broken_form(error: axum::extract::multipart::MultipartError) -> ApiError {
    ApiError::new(error.status(), error.body_text())
}

/// Clients look for "not found", "no such file" and "is a directory".
fn refusal(path: &str, error: &FileError, settings: &Settings) -> ApiError {
    let status = match error {
        FileError::Missing => settings.missing_file_status,
        FileError::PermissionDenied => 403,
        FileError::TooLarge { .. } => 413,
        FileError::NoSpace => 507,
        FileError::NotRunning => settings.not_running_status,
        FileError::IsDirectory => settings.directory_status,
        FileError::NotRegular | FileError::NameTooLong | FileError::InvalidPath => 400,
        _ => 500,
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    ApiError::new(status, format!("{path}: {error}"))
}
