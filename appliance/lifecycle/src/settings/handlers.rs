//! HTTP handlers of the settings. Only administrators may use their API group `box.tinbox.dev`: the
//! roles of viewers and operators are for machines.

use std::sync::Arc;

use apiserver::User;
use apiserver::failure;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde::Deserialize;
use status::settings::{Diff, RevertRequest, SettingsChange, SettingsReport};
use stdx::Hint as _;

use super::{ChangeAuthor, Settings, SettingsError};

type SettingsState = State<Option<Arc<Settings>>>;
type RequestUser = Extension<User>;

/// Routes of the settings. Every write needs `If-Match` with the sum of the current text.
///
/// - `/apis/box.tinbox.dev/v1alpha1/settings`: a GET returns a [`SettingsReport`]; a PUT takes the
///   new text, a PATCH a [`SettingsChange`].
/// - `…/history` and `…/diff?from=3&to=5`: a GET reads revisions.
/// - `…/revert`: a POST takes a [`RevertRequest`].
pub fn router(settings: Option<Arc<Settings>>) -> Router {
    const ROOT: &str = "/apis/box.tinbox.dev/v1alpha1/settings";
    Router::new()
        .route(ROOT, get(report).put(replace).patch(change))
        .route(&format!("{ROOT}/history"), get(history))
        .route(&format!("{ROOT}/diff"), get(diff))
        .route(&format!("{ROOT}/revert"), post(revert))
        .with_state(settings)
}

#[derive(Deserialize)]
struct ReportQuery {
    #[serde(default)]
    secrets: bool,
}

async fn report(State(settings): SettingsState, Query(shown): Query<ReportQuery>) -> Response {
    answer(settings, move |settings| settings.report(shown.secrets)).await
}

async fn history(State(settings): SettingsState) -> Response {
    json(settings, |settings| settings.history()).await
}

#[derive(Deserialize)]
struct DiffQuery {
    from: Option<u32>,
    to: Option<u32>,
}

async fn diff(State(settings): SettingsState, Query(between): Query<DiffQuery>) -> Response {
    let differs = move |settings: &Settings| settings.diff(between.from, between.to);
    json(settings, move |settings| differs(settings).map(|text| Diff { text })).await
}

#[derive(Deserialize)]
struct Note {
    #[serde(default)]
    note: String,
}

async fn replace(
    State(settings): SettingsState,
    Extension(user): RequestUser,
    Query(Note { note }): Query<Note>,
    headers: HeaderMap,
    text: String,
) -> Response {
    let Some(based) = based(&headers) else { return unconditional() };
    answer(settings, move |settings| {
        settings.replace(&based, ChangeAuthor { actor: &user.name, note: &note }, &text)
    })
    .await
}

async fn change(
    State(settings): SettingsState,
    Extension(user): RequestUser,
    headers: HeaderMap,
    Json(SettingsChange { set, note }): Json<SettingsChange>,
) -> Response {
    let Some(based) = based(&headers) else { return unconditional() };
    answer(settings, move |settings| {
        settings.set(&based, ChangeAuthor { actor: &user.name, note: &note }, &set)
    })
    .await
}

async fn revert(
    State(settings): SettingsState,
    Extension(user): RequestUser,
    headers: HeaderMap,
    Json(RevertRequest { revision, note }): Json<RevertRequest>,
) -> Response {
    let Some(based) = based(&headers) else { return unconditional() };
    answer(settings, move |settings| {
        settings.revert(&based, ChangeAuthor { actor: &user.name, note: &note }, revision)
    })
    .await
}

/// Returns the sum from `If-Match` (RFC 9110 section 13.1.1), or `None` without the header.
fn based(headers: &HeaderMap) -> Option<String> {
    let tag = headers.get(header::IF_MATCH)?.to_str().ok()?.trim();
    Some(tag.trim_matches('"').to_owned())
}

fn unconditional() -> Response {
    let why = "set If-Match to the ETag of the settings that this change is based on, so that no \
               other change is lost";
    failure(StatusCode::PRECONDITION_REQUIRED, "PreconditionRequired", why)
}

/// Returns a response with the settings, and their sum as the entity tag.
async fn answer(
    settings: Option<Arc<Settings>>,
    work: impl FnOnce(&Settings) -> Result<SettingsReport, SettingsError> + Send + 'static,
) -> Response {
    match done(settings, work).await {
        Ok(report) => {
            let tag = HeaderValue::from_str(&format!("\"{}\"", report.sum));
            let tag: Option<(HeaderName, HeaderValue)> = tag.ok().map(|tag| (header::ETAG, tag));
            let mut answer = Json(report).into_response();
            answer.headers_mut().extend(tag);
            answer
        }
        Err(refused) => refused,
    }
}

async fn json<T: serde::Serialize + Send + 'static>(
    settings: Option<Arc<Settings>>,
    work: impl FnOnce(&Settings) -> Result<T, SettingsError> + Send + 'static,
) -> Response {
    done(settings, work).await.map_or_else(|refused| refused, |done| Json(done).into_response())
}

/// Runs `work` on a blocking thread, because the disk may be slow.
async fn done<T: Send + 'static>(
    settings: Option<Arc<Settings>>,
    work: impl FnOnce(&Settings) -> Result<T, SettingsError> + Send + 'static,
) -> Result<T, Response> {
    let Some(settings) = settings else {
        let why = "this box is a program on a host: edit its configuration, then restart tinboxd";
        return Err(failure(StatusCode::NOT_FOUND, "NotFound", why));
    };
    let asked = tokio::task::spawn_blocking(move || work(&settings)).await;
    match asked {
        Ok(done) => done.map_err(|refused| failed(&refused)),
        Err(_) => {
            let why = "the change stopped unexpectedly";
            Err(failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", why))
        }
    }
}

fn failed(refused: &SettingsError) -> Response {
    let (code, reason) = match refused {
        SettingsError::Changed { .. } => (StatusCode::PRECONDITION_FAILED, "Conflict"),
        SettingsError::Mistakes(_) | SettingsError::Unwanted(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "Invalid")
        }
        SettingsError::NoRevision(_) => (StatusCode::NOT_FOUND, "NotFound"),
        SettingsError::History(_) | SettingsError::Volume(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "InternalError")
        }
    };
    let (why, hint) = (stdx::chain(refused), refused.hint());
    tracing::warn!(reason = why, hint, "a change of the settings was refused");
    failure(code, reason, &stdx::with_hint(refused))
}
