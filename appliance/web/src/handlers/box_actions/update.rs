//! Updates of the box's system: upload of a bundle, restart, return to the previous system.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Form, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use status::update::UpdateRequest;
use tokio::sync::mpsc;

use super::CsrfForm;
use crate::handlers::access::foreign;
use crate::handlers::{Caller, PageResponse, Site, SiteState};
use crate::response::{html, see, text};
use page_http::multipart;
use web_pages as page;

/// Maximum number of file pieces in the queue to the disk.
const PIECES: usize = 4;

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new().route("/box/update", post(install)).route("/box/update/{request}", post(change))
}

/// Installs an uploaded bundle. Fields of the form, in order: `csrf`, `restart` (`idle` or `now`),
/// `file`.
async fn install(
    State(site): SiteState,
    headers: HeaderMap,
    who: Caller,
    body: Body,
) -> PageResponse {
    let unread = |broken: multipart::FormError| broken.to_string();
    let mut form = match multipart::Form::of(&headers, body.into_data_stream()).map_err(unread) {
        Ok(form) => form,
        Err(why) => return refusal(&site, StatusCode::BAD_REQUEST, &why).await,
    };
    let csrf = form.field("csrf").await;
    if !csrf.is_ok_and(|given| who.sent(&given)) {
        return foreign();
    }
    let at_once = match form.field("restart").await.map_err(unread) {
        Ok(word) => word == "now",
        Err(why) => return refusal(&site, StatusCode::BAD_REQUEST, &why).await,
    };
    let (send, pieces) = mpsc::channel(PIECES);
    let installing = site.source.install_update(pieces, at_once);
    let (installed, passed) = tokio::join!(installing, form.pass("file", send));
    let (status, why) = match (installed, passed) {
        (Ok(()), _) => return done(&site).await,
        (Err(_), Err(broken)) => (StatusCode::BAD_REQUEST, unread(broken)),
        (Err(why), Ok(())) => (StatusCode::UNPROCESSABLE_ENTITY, why),
    };
    refusal(&site, status, &why).await
}

/// Restarts into an installed update, or returns to the system in the other slot.
async fn change(
    State(site): SiteState,
    Path(request): Path<String>,
    who: Caller,
    Form(form): Form<CsrfForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let Some(request) = UpdateRequest::of(&request) else {
        return text(StatusCode::NOT_FOUND, "This page does not exist on this box.");
    };
    let source = Arc::clone(&site.source);
    let changed = tokio::task::spawn_blocking(move || source.update(request)).await;
    match changed.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(()) => done(&site).await,
        Err(why) => refusal(&site, StatusCode::CONFLICT, &why).await,
    }
}

/// Leads to the page of the box, which shows the state of the update.
async fn done(site: &Site) -> PageResponse {
    *site.shown.lock().await = None;
    see("/box")
}

async fn refusal(site: &Site, status: StatusCode, why: &str) -> PageResponse {
    html(status, page::sentence(&*site.view().await, "Update", why))
}
