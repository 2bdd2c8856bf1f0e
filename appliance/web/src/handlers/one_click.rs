//! Requests about the box that one button sends: nothing is lost by them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde::Deserialize;

use super::{PageResponse, Site, SiteState, csrf};
use crate::page;
use crate::response::{html, see, text};

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/network/serve-again", post(serve_again))
        .route("/box/identify", post(identify))
}

#[derive(Deserialize)]
struct CsrfForm {
    csrf: String,
}

fn is_own(site: &Site, headers: &HeaderMap, form: &CsrfForm) -> bool {
    csrf(site, headers).is_some_and(|csrf| csrf == form.csrf)
}

fn foreign() -> PageResponse {
    text(StatusCode::FORBIDDEN, "This form does not belong to your session.")
}

async fn serve_again(
    State(site): SiteState,
    headers: HeaderMap,
    Form(form): Form<CsrfForm>,
) -> PageResponse {
    if !is_own(&site, &headers, &form) {
        return foreign();
    }
    match site.source.serve_again().await {
        Ok(()) => see("/network"),
        Err(why) => {
            let view = site.view().await;
            html(StatusCode::CONFLICT, page::sentence(&view, "Serve again", &why))
        }
    }
}

async fn identify(
    State(site): SiteState,
    headers: HeaderMap,
    Form(form): Form<CsrfForm>,
) -> PageResponse {
    if !is_own(&site, &headers, &form) {
        return foreign();
    }
    site.source.identify();
    see("/box")
}
