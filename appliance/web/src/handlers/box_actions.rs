//! Actions on the box itself: buttons that lose nothing, and the form of the Box page that
//! restarts, switches off and erases the box.

pub mod backup;
pub mod pair;
mod tokens;
mod update;
mod users;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Form, Path, State};
use axum::http::header::REFERER;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::post;
use serde::Deserialize;
use status::image::{ImageOperation, ImageRequest};
use status::reset::{BoxAction, ErasureSummary};
use status::view::problems;
use stdx::Secret;

use super::access::foreign;
use super::audit::about;
use super::{PageResponse, Peer, Site, SiteState, prove};
use crate::handlers::Caller;
use crate::response::{html, see, text, with_theme};
use web_pages as page;
use web_pages::design::THEMES;

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/notices/dismiss", post(dismiss))
        .route("/network/serve-again", post(serve_again))
        .route("/box/identify", post(identify))
        .route("/box/leave", post(leave))
        .route("/theme", post(theme))
        .route("/images/{operation}", post(image))
        .route("/backup", post(backup::download))
        .route("/backup/kept", post(backup::restore_stored))
        .route("/backup/send", post(send_backup))
        .merge(pair::routes())
        .merge(tokens::routes())
        .merge(update::routes())
        .merge(users::routes())
}

#[derive(Deserialize)]
struct LeaveForm {
    csrf: String,
    level: String,
    name: String,
    #[serde(default)]
    owner: Secret,
}

/// Restarts, switches off or resets the box. Requires the box's name and passphrase.
async fn leave(
    State(site): SiteState,
    peer: Peer,
    headers: HeaderMap,
    who: Caller,
    Form(form): Form<LeaveForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let view = site.view().await;
    let page_of =
        |status, title: &str, text: &str| html(status, page::sentence(&view, title, text));
    let Some(leaving) = BoxAction::of(&form.level) else {
        return text(StatusCode::UNPROCESSABLE_ENTITY, "This level does not exist.");
    };
    let name = form.name.trim();
    if name != view.name.as_str() {
        let why = format!("This box is called {}, not {name:?}. Nothing was done.", view.name);
        return page_of(StatusCode::UNPROCESSABLE_ENTITY, leaving.label(), &why);
    }
    if let Err(answer) = prove(&site, (&headers, peer), &form.owner).await {
        return answer;
    }
    let source = Arc::clone(&site.source);
    let left = tokio::task::spawn_blocking(move || source.leave(leaving)).await;
    match left.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(()) => {
            let effect = leaving.effect(&ErasureSummary::of(&view));
            let text = format!("The box goes down now: {effect}.");
            page_of(StatusCode::OK, leaving.label(), &text)
        }
        Err(why) => {
            page_of(StatusCode::CONFLICT, leaving.label(), &format!("The box stays on: {why}."))
        }
    }
}

#[derive(Deserialize)]
struct CsrfForm {
    csrf: String,
}

async fn serve_again(
    State(site): SiteState,
    who: Caller,
    Form(form): Form<CsrfForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
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

#[derive(Deserialize)]
struct NoticeForm {
    csrf: String,
    key: String,
}

/// Hides a notice about the box. A notice that ended meanwhile is not stored.
async fn dismiss(
    State(site): SiteState,
    who: Caller,
    Form(form): Form<NoticeForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let view = site.view().await;
    let is_shown = problems(&view).iter().any(|it| it.key == form.key && it.may_be_dismissed());
    let dismissed = match is_shown {
        true => site.dismissals().dismiss(&form.key, view.now).await,
        false => Ok(()),
    };
    *site.shown.lock().await = None;
    let answer = match dismissed {
        Ok(()) => see("/"),
        Err(error) => {
            let why = stdx::sentences(&error);
            html(StatusCode::CONFLICT, page::sentence(&view, "Dismiss", &why))
        }
    };
    about(answer, &form.key)
}

/// Sends a backup to the configured server.
async fn send_backup(
    State(site): SiteState,
    who: Caller,
    Form(form): Form<CsrfForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let view = site.view().await;
    let (status, text) = match site.source.send_backup() {
        Ok(()) => {
            (StatusCode::OK, "A backup is sent now. The page Box shows the result.".to_owned())
        }
        Err(why) => (StatusCode::CONFLICT, why),
    };
    html(status, page::sentence(&view, "Backup", &text))
}

async fn identify(State(site): SiteState, who: Caller, Form(form): Form<CsrfForm>) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    site.source.identify();
    see("/box")
}

#[derive(Deserialize)]
struct ThemeForm {
    csrf: String,
    theme: String,
}

/// Keeps the chosen colors in a cookie, and leads back to the page of the form.
async fn theme(headers: HeaderMap, who: Caller, Form(form): Form<ThemeForm>) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let chosen = THEMES.iter().find(|(value, _)| *value == form.theme);
    let Some((value, _)) = chosen else {
        return text(StatusCode::UNPROCESSABLE_ENTITY, "There are no such colors.");
    };
    with_theme(see(&back(&headers)), value)
}

/// Returns the path of the page that sent a form; the first page without one.
fn back(headers: &HeaderMap) -> String {
    let referer = headers.get(REFERER).and_then(|it| it.to_str().ok());
    let uri: Option<Uri> = referer.and_then(|it| it.parse().ok());
    // Only the path: a header of the request must not lead to another site.
    let path = uri.as_ref().map_or("/", Uri::path);
    if path.starts_with('/') && !path.starts_with("//") { path.to_owned() } else { "/".to_owned() }
}

#[derive(Deserialize)]
struct ImageForm {
    csrf: String,
    image: String,
}

/// Pins, unpins or removes an image of the cache.
async fn image(
    State(site): SiteState,
    Path(operation): Path<String>,
    who: Caller,
    Form(form): Form<ImageForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let act = match operation.as_str() {
        "pin" => ImageOperation::Pin,
        "unpin" => ImageOperation::Unpin,
        "remove" => ImageOperation::Remove,
        _ => return text(StatusCode::NOT_FOUND, "This page does not exist on this box."),
    };
    match site.source.image(ImageRequest { image: form.image, act }).await {
        Ok(_) => {
            *site.shown.lock().await = None;
            see("/images")
        }
        Err(why) => {
            let view = site.view().await;
            html(StatusCode::CONFLICT, page::sentence(&view, "Images", &why))
        }
    }
}
