//! HTTP handlers of updates.

use std::sync::Arc;

use apiserver::failure;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use stdx::Hint as _;
use tokio::sync::mpsc;

use super::{UpdateError, Updates};
use crate::upload;

/// Maximum number of uploaded pieces of a bundle that wait for the disk.
const PIECES: usize = 4;

/// Routes of updates. With `?now=true`, the restart does not wait for running workflows.
///
/// - `/apis/box.tinbox.dev/v1alpha1/update`: a GET returns a [`status::update::UpdateReport`]. A
///   POST takes a bundle as its body, and returns a report when the bundle is in its slot.
/// - `…/update/rollback`: a POST starts the system in the other slot.
/// - `…/update/restart`: a POST agrees to the restart for an installed update. The restart then
///   does not wait for the allowed hours or for consent.
pub fn router(updates: Option<Arc<Updates>>) -> Router {
    Router::new()
        .route("/apis/box.tinbox.dev/v1alpha1/update", get(report).post(apply))
        .route("/apis/box.tinbox.dev/v1alpha1/update/rollback", post(roll_back))
        .route("/apis/box.tinbox.dev/v1alpha1/update/restart", post(restart))
        .with_state(updates)
}

#[derive(Deserialize)]
struct RestartQuery {
    #[serde(default)]
    now: bool,
}

async fn report(State(updates): State<Option<Arc<Updates>>>) -> Response {
    match updates {
        Some(updates) => Json(updates.report()).into_response(),
        None => not_own(),
    }
}

async fn apply(
    State(updates): State<Option<Arc<Updates>>>,
    Query(query): Query<RestartQuery>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(updates) = updates else { return not_own() };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let size = length.and_then(|length| length.parse().ok());
    let (send, pieces) = mpsc::channel(PIECES);
    let installing = updates.install(pieces, size, query.now);
    // A client that disconnects ends the stream early, and the reader reports a truncated bundle.
    let (done, _) = tokio::join!(installing, upload::pass(body.into_data_stream(), send));
    answer(&updates, done)
}

async fn roll_back(
    State(updates): State<Option<Arc<Updates>>>,
    Query(query): Query<RestartQuery>,
) -> Response {
    let Some(updates) = updates else { return not_own() };
    let asked = Arc::clone(&updates);
    let done = tokio::task::spawn_blocking(move || asked.roll_back(query.now)).await;
    answer(&updates, done.unwrap_or(Err(UpdateError::Ended)))
}

async fn restart(
    State(updates): State<Option<Arc<Updates>>>,
    Query(query): Query<RestartQuery>,
) -> Response {
    let Some(updates) = updates else { return not_own() };
    let done = updates.agree(query.now);
    answer(&updates, done)
}

fn answer(updates: &Updates, done: Result<(), UpdateError>) -> Response {
    let Err(refused) = done else { return Json(updates.report()).into_response() };
    tracing::warn!(reason = stdx::chain(&refused), hint = refused.hint(), "an update was refused");
    let message = stdx::with_hint(&refused);
    match refused {
        UpdateError::Busy => failure(StatusCode::CONFLICT, "Conflict", &message),
        UpdateError::Bundle(_) | UpdateError::Unwanted { .. } => {
            failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &message)
        }
        UpdateError::NoRoom(_) => {
            failure(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", &message)
        }
        UpdateError::Host(_) | UpdateError::Record(_) | UpdateError::Ended => {
            failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &message)
        }
    }
}

fn not_own() -> Response {
    let why = "Tinbox runs as a program on a host system: update the program there";
    failure(StatusCode::NOT_FOUND, "NotFound", why)
}
