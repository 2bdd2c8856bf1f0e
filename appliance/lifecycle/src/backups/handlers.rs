//! HTTP handlers of backups. Only administrators may use the paths: the paths belong to no API
//! group, so a role other than `*` cannot name them. A backup has all data of administrators.

use std::sync::Arc;

use apiserver::failure;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use percent_encoding::percent_decode;
use status::backup::{BackupRequest, BackupSummary, LastBackup};
use stdx::{Hint as _, Secret};
use tokio::sync::mpsc;

use super::{BackupError, BackupFile, Backups, PIECES};
use crate::upload;

/// Request header with the passphrase of the uploaded backup, percent-encoded. A URL cannot contain
/// the passphrase, because logs contain URLs.
const PASSPHRASE: &str = "tinbox-passphrase";

/// Returns the routes of backups.
///
/// - `/backup`: a GET returns a [`LastBackup`]; a POST takes a [`BackupRequest`] and returns a
///   backup.
/// - `/backup/verify` and `/backup/restore`: a POST takes a backup and returns a [`BackupSummary`].
///   The box restarts after a restore.
/// - `/backup/kept`: a GET lists the [`status::backup::StoredBackup`] values of the daily backups;
///   a POST makes a backup now and returns it.
/// - `/backup/kept/NAME/verify` and `/backup/kept/NAME/restore` use a daily backup.
pub fn router(backups: Arc<Backups>) -> Router {
    Router::new()
        .route("/backup", get(last).post(create))
        .route("/backup/kept", get(kept).post(keep))
        .route("/backup/kept/{name}/verify", post(verify_kept))
        .route("/backup/kept/{name}/restore", post(restore_kept))
        .route("/backup/verify", post(verify))
        .route("/backup/restore", post(restore))
        .with_state(backups)
}

async fn last(State(backups): State<Arc<Backups>>) -> Json<LastBackup> {
    Json(backups.last())
}

async fn keep(State(backups): State<Arc<Backups>>) -> Response {
    match backups.keep_now().await {
        Ok(kept) => Json(kept).into_response(),
        Err(refused) => refusal(&refused),
    }
}

async fn kept(State(backups): State<Arc<Backups>>) -> Response {
    let listed = tokio::task::spawn_blocking(move || backups.kept()).await;
    match listed.unwrap_or(Err(BackupError::Ended)) {
        Ok(kept) => Json(kept).into_response(),
        Err(refused) => refusal(&refused),
    }
}

async fn verify_kept(State(backups): State<Arc<Backups>>, Path(name): Path<String>) -> Response {
    answer(backups.verify_kept(name).await)
}

async fn restore_kept(State(backups): State<Arc<Backups>>, Path(name): Path<String>) -> Response {
    answer(backups.restore_kept(name).await)
}

async fn create(State(backups): State<Arc<Backups>>, Json(order): Json<BackupRequest>) -> Response {
    let made = backups.create(order).await;
    match made.and_then(|made| download(&backups, made)) {
        Ok(response) => response,
        Err(refused) => refusal(&refused),
    }
}

/// Returns a response with a backup, which a browser saves as a file.
fn download(backups: &Arc<Backups>, made: BackupFile) -> Result<Response, BackupError> {
    let (size, name) = (made.last.bytes, format!("attachment; filename=\"{}\"", made.name));
    let mut response = Response::new(made.body(backups)?);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

async fn verify(State(backups): State<Arc<Backups>>, headers: HeaderMap, body: Body) -> Response {
    let (send, pieces) = mpsc::channel(PIECES);
    let reading = backups.verify(pieces, passphrase(&headers));
    let (read, _) = tokio::join!(reading, upload::pass(body.into_data_stream(), send));
    answer(read)
}

async fn restore(State(backups): State<Arc<Backups>>, headers: HeaderMap, body: Body) -> Response {
    let (send, pieces) = mpsc::channel(PIECES);
    let reading = backups.restore(pieces, passphrase(&headers));
    let (read, _) = tokio::join!(reading, upload::pass(body.into_data_stream(), send));
    answer(read)
}

fn passphrase(headers: &HeaderMap) -> Option<Secret> {
    let given = headers.get(PASSPHRASE)?.as_bytes();
    let text = percent_decode(given).decode_utf8_lossy();
    (!text.is_empty()).then(|| Secret::from(text.into_owned()))
}

fn answer(read: Result<BackupSummary, BackupError>) -> Response {
    match read {
        Ok(report) => Json(report).into_response(),
        Err(refused) => refusal(&refused),
    }
}

fn refusal(refused: &BackupError) -> Response {
    tracing::warn!(reason = stdx::chain(refused), hint = refused.hint(), "a backup was refused");
    let message = stdx::with_hint(refused);
    match refused {
        BackupError::Busy | BackupError::Restarting | BackupError::Lost => {
            failure(StatusCode::CONFLICT, "Conflict", &message)
        }
        BackupError::Nowhere | BackupError::NoSuch(_) => {
            failure(StatusCode::NOT_FOUND, "NotFound", &message)
        }
        BackupError::Request
        | BackupError::Backup(_)
        | BackupError::Plain
        | BackupError::Unfit(_) => failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &message),
        BackupError::Disk { .. }
        | BackupError::Store(_)
        | BackupError::Leases(_)
        | BackupError::Ended => {
            failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &message)
        }
    }
}
