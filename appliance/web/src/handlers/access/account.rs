//! Page of the logged-in user: role, passphrase, SSH keys.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Form, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use box_owner::{AccessError, Owner, users};
use serde::Deserialize;
use stdx::Secret;

use super::{Peer, address, foreign, prove, refusal_page};
use crate::handlers::Caller;
use crate::handlers::{PageResponse, Site, SiteState, token};
use crate::response::{html, see};
use web_pages::{self as page, accounts::users as pages};

/// Maximum size of a form in bytes: the SSH keys of a user at their limits, in URL encoding.
const FORM_BYTES_MAX: usize = 256 << 10;

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/account", get(show))
        .route("/account/passphrase", post(change_passphrase))
        .route("/account/ssh-keys", post(change_ssh_keys))
        .route_layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
}

async fn show(State(site): SiteState, who: Caller) -> PageResponse {
    html(StatusCode::OK, pages::account(&*site.view().await, &who))
}

#[derive(Deserialize)]
struct PassphraseForm {
    csrf: String,
    owner: Secret,
    passphrase: Secret,
    again: Secret,
}

/// Changes the passphrase and ends every other session of the user.
async fn change_passphrase(
    State(site): SiteState,
    peer: Peer,
    headers: HeaderMap,
    who: Caller,
    Form(form): Form<PassphraseForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let session = token(&headers).unwrap_or_default().to_owned();
    let PassphraseForm { owner: old, passphrase: new, again, .. } = form;
    let from = address(peer);
    let changed = if new == again {
        let texts = move |owner: &Owner| {
            owner.change_passphrase(&session, (old.expose(), new.expose()), from)
        };
        site.hash(from, texts).await
    } else {
        Err(AccessError::Passphrase("The two passphrases are not the same."))
    };
    match changed {
        Ok(()) => {
            let done = "The passphrase is changed. Every other session of yours has ended.";
            html(StatusCode::OK, page::sentence(&*site.view().await, "Passphrase", done))
        }
        Err(refusal) => refusal_page(&site, &headers, &refusal).await,
    }
}

#[derive(Deserialize)]
struct KeysForm {
    csrf: String,
    #[serde(default)]
    keys: String,
    #[serde(default)]
    owner: Secret,
}

/// Replaces the user's SSH keys. They outlive the session, so the change needs the passphrase.
async fn change_ssh_keys(
    State(site): SiteState,
    peer: Peer,
    headers: HeaderMap,
    who: Caller,
    Form(form): Form<KeysForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    if let Err(answer) = prove(&site, (&headers, peer), &form.owner).await {
        return answer;
    }
    let name = who.user.name.clone();
    let changed = users::ssh_keys(&form.keys);
    let changed = match changed {
        Ok(keys) => site.users(move |owner| owner.set_ssh_keys(&name, keys)).await,
        Err(refusal) => Err(refusal),
    };
    match changed {
        Ok(()) => see("/account"),
        Err(refusal) => refusal_page(&site, &headers, &refusal).await,
    }
}
