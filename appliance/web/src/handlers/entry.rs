//! Claim of the box, login and logout.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Form, Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{get, post};
use box_owner::{AccessError, users};
use serde::Deserialize;

use super::access::foreign;
use super::audit::{LoginUser, about};
use super::box_actions::backup;
use super::requested::pages;
use super::token;
use super::{PageResponse, Peer, Site, SiteState, address, refused, setup};
use crate::handlers::Caller;
use crate::response::{html, see, with_cookie};
use web_pages as page;

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/S", get(claim_page).post(claim))
        .route("/S/{code}", get(claim_with_code))
        .route("/S/restore", get(claim_page).post(backup::restore))
        .route("/login", get(login_page).post(login))
        .route("/logout", post(logout))
}

async fn claim_page(state: SiteState, uri: Uri, headers: HeaderMap) -> PageResponse {
    claim_form(&state.0, &place(&uri, &headers), "").await
}

async fn claim_with_code(
    state: SiteState,
    Path(code): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> PageResponse {
    // Only shown: looking at it here would make a link a guess.
    let code = box_owner::claim::Code::typed(&code).map(|code| code.text()).unwrap_or_default();
    claim_form(&state.0, &place(&uri, &headers), &code).await
}

/// Returns the host by which the client reached the box, with a port other than that of HTTPS.
fn place(uri: &Uri, headers: &HeaderMap) -> String {
    pages(uri, headers).trim_start_matches("https://").to_owned()
}

async fn claim_form(site: &Arc<Site>, host: &str, code: &str) -> PageResponse {
    if site.owner.claimed() {
        return see("/login");
    }
    let view = site.view().await;
    if site.owner.is_unknown() {
        let page = page::sentence(&view, "Not now", &AccessError::Unknown.to_string());
        return html(StatusCode::SERVICE_UNAVAILABLE, page);
    }
    html(StatusCode::OK, page::claim(&view, site.source.has_screen(), (code, host), ""))
}

#[derive(Deserialize)]
struct ClaimForm {
    code: String,
    passphrase: String,
    again: String,
}

async fn claim(
    State(site): SiteState,
    peer: Peer,
    uri: Uri,
    headers: HeaderMap,
    Form(form): Form<ClaimForm>,
) -> PageResponse {
    let from = address(peer);
    let ClaimForm { code, passphrase, again } = form;
    let typed = code.clone();
    let entered = if passphrase == again {
        site.hash(from, move |owner| owner.claim(&typed, &passphrase, from)).await
    } else {
        Err(AccessError::Passphrase("The two passphrases are not the same."))
    };
    match entered {
        Ok(entered) => {
            tracing::info!("the box has an owner now");
            *site.shown.lock().await = None;
            let next = site.source.setup().map_or("/", |_| setup::FIRST);
            begin(see(next), &entered.token, users::OWNER_NAME.to_owned())
        }
        Err(refusal) => {
            let host = place(&uri, &headers);
            let (view, screen) = (site.view().await, site.source.has_screen());
            refused(&refusal, &headers, |why| page::claim(&view, screen, (&code, &host), why))
        }
    }
}

async fn login_page(State(site): SiteState) -> PageResponse {
    html(StatusCode::OK, page::login(&*site.view().await, "", ""))
}

#[derive(Deserialize)]
struct LoginForm {
    /// Name of the user; empty for the owner.
    #[serde(default)]
    name: String,
    passphrase: String,
}

async fn login(
    State(site): SiteState,
    peer: Peer,
    headers: HeaderMap,
    Form(form): Form<LoginForm>,
) -> PageResponse {
    let from = address(peer);
    let LoginForm { name, passphrase } = form;
    let typed = name.clone();
    match site.hash(from, move |owner| owner.enter(&typed, &passphrase, from)).await {
        Ok(entered) => begin(see("/"), &entered.token, users::typed_name(&name)),
        Err(refusal) => {
            let view = site.view().await;
            let answer = refused(&refusal, &headers, |why| page::login(&view, &name, why));
            // Only a name that exists: a person may type the passphrase into the wrong field.
            let typed = users::typed_name(&name);
            let is_known = site.owner.users().iter().any(|user| user.name == typed);
            if is_known { about(answer, &format!("login of {typed}")) } else { answer }
        }
    }
}

/// Adds the cookie of a new session of the user `name` to `answer`.
fn begin(answer: PageResponse, token: &str, name: String) -> PageResponse {
    let mut answer = with_cookie(answer, token);
    answer.extensions_mut().insert(LoginUser(name));
    answer
}

#[derive(Deserialize)]
struct LogoutForm {
    csrf: String,
}

async fn logout(
    State(site): SiteState,
    headers: HeaderMap,
    who: Caller,
    Form(form): Form<LogoutForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    token(&headers).into_iter().for_each(|token| site.owner.leave(token));
    with_cookie(see("/login"), "")
}
