//! Search for machines, workflows and templates.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use serde::Deserialize;

use super::{PageResponse, Site, SiteState};
use crate::handlers::Caller;
use crate::response::{html, see};
use web_pages::search::{SearchResults, results};

/// Maximum length of a search text in characters; the rest is ignored.
const TEXT_CHARS_MAX: usize = 100;

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new().route("/search", get(search))
}

#[derive(Deserialize)]
struct SearchQuery {
    #[serde(default)]
    q: String,
}

/// Shows what matches; an object of this name, or a single result, is opened at once.
async fn search(
    State(site): SiteState,
    who: Caller,
    Query(query): Query<SearchQuery>,
) -> PageResponse {
    let text: String = query.q.trim().chars().take(TEXT_CHARS_MAX).collect();
    let view = site.view().await;
    let templates = site.templates().list().await.unwrap_or_default();
    let found = SearchResults::of(&view, &templates, &text);
    if let Some(path) = found.only(&text) {
        return see(path);
    }
    html(StatusCode::OK, results(&view, &who, &text, &found))
}
