//! Download of the kubeconfig and replacement of the administrator's token. Each requires the
//! passphrase, or a recent proof within the session.

pub(crate) mod account;
pub(crate) mod guard;
mod table;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Form, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::Deserialize;
use stdx::Secret;

use super::{PageResponse, Site, SiteState, asked, refused, token};
use crate::handlers::Caller;
use crate::response::{content, html, text};
use box_owner::AccessError;
use web_pages as page;
use web_pages::rights::Visitor;

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/kubeconfig", get(kubeconfig).post(proved_kubeconfig))
        .route("/kubeconfig/rotate", post(rotate))
        .merge(account::routes())
}

/// IP address of the client, from the listener.
pub(crate) type Peer = Option<Extension<ConnectInfo<SocketAddr>>>;

pub(crate) fn address(peer: Peer) -> IpAddr {
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.0.ip())
}

/// Checks the passphrase in `given`. If `given` is empty, the session must have a recent proof
/// ([`PROVED_FOR`](box_owner::PROVED_FOR)).
///
/// # Errors
/// The proof fails. The error is a page with the reason.
pub(crate) async fn prove(
    site: &Arc<Site>,
    (headers, peer): (&HeaderMap, Peer),
    given: &Secret,
) -> Result<(), PageResponse> {
    let session = token(headers).unwrap_or_default().to_owned();
    let proved = if given.expose().is_empty() {
        if site.owner.is_proved(&session) { Ok(()) } else { Err(AccessError::Unproved) }
    } else {
        let (given, from) = (given.clone(), address(peer));
        site.hash(from, move |owner| owner.prove_again(&session, given.expose(), from)).await
    };
    let Err(refusal) = proved else { return Ok(()) };
    Err(refusal_page(site, headers, &refusal).await)
}

pub(crate) async fn refusal_page(
    site: &Arc<Site>,
    headers: &HeaderMap,
    refusal: &AccessError,
) -> PageResponse {
    let view = site.view().await;
    refused(refusal, headers, |why| page::sentence(&view, "Not done", why))
}

/// Reason why a form without the token of the session is refused.
const FOREIGN: &str = "This form does not belong to your session. Reload the page and try again.";

pub(crate) fn foreign() -> PageResponse {
    text(StatusCode::FORBIDDEN, FOREIGN)
}

/// Sends the kubeconfig if the passphrase was entered in this session within
/// [`PROVED_FOR`](box_owner::PROVED_FOR).
async fn kubeconfig(
    State(site): SiteState,
    uri: Uri,
    peer: Peer,
    headers: HeaderMap,
) -> PageResponse {
    match prove(&site, (&headers, peer), &Secret::default()).await {
        Ok(()) => download(&site, &uri, &headers),
        Err(answer) => answer,
    }
}

#[derive(Deserialize)]
struct ProofForm {
    csrf: String,
    #[serde(default)]
    owner: Secret,
}

/// Checks the CSRF token of the form, and the owner's passphrase as [`prove`] does.
async fn check(
    site: &Arc<Site>,
    (headers, peer): (&HeaderMap, Peer),
    (who, form): (&Visitor, &ProofForm),
) -> Result<(), PageResponse> {
    if !who.sent(&form.csrf) {
        return Err(foreign());
    }
    prove(site, (headers, peer), &form.owner).await
}

/// Sends the kubeconfig for a form with the passphrase.
async fn proved_kubeconfig(
    State(site): SiteState,
    uri: Uri,
    peer: Peer,
    headers: HeaderMap,
    who: Caller,
    Form(form): Form<ProofForm>,
) -> PageResponse {
    match check(&site, (&headers, peer), (&who, &form)).await {
        Ok(()) => download(&site, &uri, &headers),
        Err(answer) => answer,
    }
}

/// Replaces the administrator's token and sends the new kubeconfig; the old token is revoked.
async fn rotate(
    State(site): SiteState,
    uri: Uri,
    peer: Peer,
    headers: HeaderMap,
    who: Caller,
    Form(form): Form<ProofForm>,
) -> PageResponse {
    if let Err(answer) = check(&site, (&headers, peer), (&who, &form)).await {
        return answer;
    }
    let source = Arc::clone(&site.source);
    let rotated = tokio::task::spawn_blocking(move || source.rotate()).await;
    match rotated.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(()) => download(&site, &uri, &headers),
        Err(why) => {
            let why = format!("The token was not replaced: {why}.");
            html(StatusCode::CONFLICT, page::sentence(&*site.view().await, "Not done", &why))
        }
    }
}

fn download(site: &Site, uri: &Uri, headers: &HeaderMap) -> PageResponse {
    let made = asked(uri, headers).and_then(|host| site.source.kubeconfig(&host));
    let Some(made) = made else {
        let why = "The kubeconfig cannot be read, or the name in the address bar is not a name of \
                   this box. Use its IP address, or replace the administrator's token.";
        return text(StatusCode::NOT_FOUND, why);
    };
    let mut answer = content(StatusCode::OK, "application/yaml", made);
    let name = HeaderValue::from_static("attachment; filename=\"admin.kubeconfig\"");
    answer.headers_mut().insert("content-disposition", name);
    answer
}
