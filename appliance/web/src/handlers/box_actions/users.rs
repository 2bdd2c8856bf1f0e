//! Users of the box: list, new user, role, passphrase, removal. Every change needs the passphrase
//! of the administrator who makes it, because a new administrator could lock out the others.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use box_owner::AccessError;
use box_owner::users::{Role, User};
use serde::Deserialize;
use stdx::Secret;

use super::super::access::foreign;
use super::super::audit::about;
use super::super::{PageResponse, Peer, Site, SiteState, address, prove, refused};
use crate::handlers::Caller;
use crate::response::{html, see, text};
use web_pages as page;
use web_pages::accounts::users::{self as pages, NewUser, user_link};

/// Number of records on the page of the audit log.
const RECORDS: usize = 200;
/// Maximum length of the filter in characters; the rest is ignored.
const FILTER_CHARS_MAX: usize = 100;

/// Returns the routes of this module.
pub fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/users", get(show_list).post(add))
        .route("/users/{name}", get(show_user))
        .route("/users/{name}/{change}", post(change))
        .route("/audit", get(show_audit))
}

async fn show_list(State(site): SiteState, who: Caller) -> PageResponse {
    let form = NewUser { role: Some(Role::Operator), ..NewUser::default() };
    let page = pages::list(&*site.view().await, &who, &site.owner.users(), (&form, ""));
    html(StatusCode::OK, page)
}

#[derive(Deserialize)]
struct AddForm {
    csrf: String,
    name: String,
    role: String,
    passphrase: Secret,
    #[serde(default)]
    owner: Secret,
}

async fn add(
    State(site): SiteState,
    peer: Peer,
    headers: HeaderMap,
    who: Caller,
    Form(form): Form<AddForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let from = address(peer);
    if let Err(answer) = prove(&site, (&headers, peer), &form.owner).await {
        return answer;
    }
    let Some(role) = Role::named(&form.role) else { return no_role() };
    let (name, passphrase) = (form.name.trim().to_owned(), form.passphrase);
    let new = name.clone();
    let detail = format!("user {name}, role {}", role.word());
    let added = site.hash(from, move |owner| owner.add_user(&new, role, passphrase.expose()));
    let answer = match added.await {
        Ok(()) => see("/users"),
        Err(refusal) => {
            let (view, users) = (site.view().await, site.owner.users());
            let form = NewUser { name, role: Some(role) };
            refused(&refusal, &headers, |why| pages::list(&view, &who, &users, (&form, why)))
        }
    };
    about(answer, &detail)
}

fn no_role() -> PageResponse {
    text(StatusCode::UNPROCESSABLE_ENTITY, "There is no such role.")
}

/// Returns a user besides the owner, or the response that there is none.
async fn find(site: &Site, name: &str) -> Result<User, PageResponse> {
    let users = site.owner.users().into_iter();
    match users.filter(|user| !user.is_owner()).find(|user| user.name == name) {
        Some(user) => Ok(user),
        None => {
            let why = AccessError::NoUser(name.to_owned()).to_string();
            let page = page::sentence(&*site.view().await, "Not found", &why);
            Err(html(StatusCode::NOT_FOUND, page))
        }
    }
}

async fn show_user(State(site): SiteState, Path(name): Path<String>, who: Caller) -> PageResponse {
    match find(&site, &name).await {
        Ok(user) => html(StatusCode::OK, pages::one(&*site.view().await, &who, &user, "")),
        Err(answer) => answer,
    }
}

#[derive(Deserialize)]
struct ChangeForm {
    csrf: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    passphrase: Secret,
    /// Name of the user, typed as confirmation of the removal.
    #[serde(default)]
    typed: String,
    #[serde(default)]
    owner: Secret,
}

/// Changes role or passphrase of a user, or removes the user.
async fn change(
    State(site): SiteState,
    Path((name, change)): Path<(String, String)>,
    peer: Peer,
    headers: HeaderMap,
    who: Caller,
    Form(form): Form<ChangeForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let user = match find(&site, &name).await {
        Ok(user) => user,
        Err(answer) => return answer,
    };
    let from = address(peer);
    if let Err(answer) = prove(&site, (&headers, peer), &form.owner).await {
        return answer;
    }
    let detail = if change == "role" { format!("role {}", form.role) } else { String::new() };
    let (changed, next) = match change.as_str() {
        "role" => {
            let Some(role) = Role::named(&form.role) else { return no_role() };
            let link = user_link(&name);
            (site.users(move |owner| owner.set_role(&name, role)).await, link)
        }
        "passphrase" => {
            let (link, new) = (user_link(&name), form.passphrase);
            let set = site.hash(from, move |owner| owner.reset_passphrase(&name, new.expose()));
            (set.await, link)
        }
        "remove" if form.typed.trim() == name => {
            (site.users(move |owner| owner.remove_user(&name)).await, "/users".to_owned())
        }
        "remove" => {
            let why =
                format!("This user is called {name}, not {:?}. Nothing was done.", form.typed);
            let page = pages::one(&*site.view().await, &who, &user, &why);
            return html(StatusCode::UNPROCESSABLE_ENTITY, page);
        }
        _ => return text(StatusCode::NOT_FOUND, "This page does not exist on this box."),
    };
    let answer = match changed {
        Ok(()) => see(&next),
        Err(refusal) => {
            let view = site.view().await;
            refused(&refusal, &headers, |why| pages::one(&view, &who, &user, why))
        }
    };
    about(answer, &detail)
}

#[derive(Deserialize)]
struct AuditQuery {
    #[serde(default)]
    q: String,
}

async fn show_audit(
    State(site): SiteState,
    Query(query): Query<AuditQuery>,
    who: Caller,
) -> PageResponse {
    let filter: String = query.q.trim().chars().take(FILTER_CHARS_MAX).collect();
    let (source, wanted) = (Arc::clone(&site.source), filter.clone());
    let read = tokio::task::spawn_blocking(move || source.audit(&wanted, RECORDS)).await;
    let view = site.view().await;
    match read.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(lines) => html(StatusCode::OK, pages::audit(&view, &who, &lines, &filter)),
        Err(why) => html(StatusCode::SERVICE_UNAVAILABLE, page::sentence(&view, "Audit log", &why)),
    }
}
