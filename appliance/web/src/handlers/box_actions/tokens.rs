//! Access tokens of the API: list, new token, revocation.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Form, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::routing::{get, post};
use serde::Deserialize;
use status::access::{DAYS_MAX, TokenRequest};
use stdx::Secret;

use super::super::access::foreign;
use super::super::audit::about;
use super::super::{PageResponse, Peer, Site, SiteState, asked, prove};
use crate::handlers::Caller;
use crate::response::{content, html, see};
use web_pages::accounts::tokens::{self as pages, NewToken};
use web_pages::rights::Visitor;

/// Returns the routes of this module.
pub fn routes() -> Router<Arc<Site>> {
    Router::new().route("/tokens", get(show).post(create)).route("/tokens/revoke", post(revoke))
}

async fn show(State(site): SiteState, who: Caller) -> PageResponse {
    list(&site, &who, &NewToken::default(), "").await
}

async fn list(site: &Site, who: &Visitor, form: &NewToken, error: &str) -> PageResponse {
    let status = if error.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let page = pages::list(&*site.view().await, who, &site.source.tokens(), (form, error));
    html(status, page)
}

#[derive(Deserialize)]
struct CreateForm {
    csrf: String,
    name: String,
    role: String,
    days: u32,
    #[serde(default)]
    owner: Secret,
}

/// Creates a token and sends its kubeconfig, the only copy of the token.
async fn create(
    State(site): SiteState,
    peer: Peer,
    uri: Uri,
    headers: HeaderMap,
    who: Caller,
    Form(form): Form<CreateForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    if let Err(answer) = prove(&site, (&headers, peer), &form.owner).await {
        return answer;
    }
    let name = form.name.trim().to_owned();
    let days = form.days.clamp(1, DAYS_MAX);
    let detail = format!("token {name}, role {}, {days} days", form.role);
    let request = TokenRequest { name: name.clone(), role: form.role.clone(), days };
    let host = asked(&uri, &headers).unwrap_or_default();
    let source = Arc::clone(&site.source);
    let made = tokio::task::spawn_blocking(move || source.create_token(&request, &host)).await;
    let answer = match made.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(kubeconfig) => {
            let mut answer =
                content(StatusCode::OK, "application/yaml", kubeconfig.expose().to_owned());
            let file = format!("attachment; filename=\"{name}.kubeconfig\"");
            if let Ok(file) = HeaderValue::from_str(&file) {
                answer.headers_mut().insert("content-disposition", file);
            }
            answer
        }
        Err(why) => {
            let form = NewToken { name, role: form.role, days };
            list(&site, &who, &form, &format!("Nothing was created: {why}.")).await
        }
    };
    about(answer, &detail)
}

#[derive(Deserialize)]
struct RevokeForm {
    csrf: String,
    id: String,
}

async fn revoke(State(site): SiteState, who: Caller, Form(form): Form<RevokeForm>) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let (source, detail) = (Arc::clone(&site.source), format!("token {}", form.id));
    let revoked = tokio::task::spawn_blocking(move || source.revoke_token(&form.id)).await;
    let answer = match revoked.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(()) => see("/tokens"),
        Err(why) => list(&site, &who, &NewToken::default(), &format!("{why}.")).await,
    };
    about(answer, &detail)
}
