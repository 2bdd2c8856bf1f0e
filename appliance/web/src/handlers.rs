//! Routes, handlers and access checks.

mod access;
pub(crate) mod audit;
mod box_actions;
mod entry;
pub(crate) mod event_stream;
mod machines;
mod os_images;
mod requested;
mod search;
pub mod setup;
mod source;
mod templates;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::header::{ACCEPT, COOKIE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use dismissals::Dismissals;
use machine_actions::Action;
use serde::Deserialize;
use status::view::StatusView;
use tokio::sync::Mutex;

use crate::assets;
use crate::response::{self, content, html, see, text};
pub(crate) use access::guard::Caller;
pub(crate) use access::{Peer, address, guard, prove};
pub use box_actions::pair::PairRequest;
use box_owner::hash_queue::HashQueue;
use box_owner::{AccessError, Owner};
use event_stream::{Feeds, STREAMS};
pub use machines::console::ConsoleStream;
use page_http::compression::compress;
use rbac::Shares;
pub(crate) use requested::asked;
use requested::{host, pages};
pub use source::{Download, FileBody, Source, SourceFuture};
use web_pages::machine::tabs::Tab;
use web_pages::rights::Permission;
use web_pages::{self as page, More, Page};

/// Maximum size of a form body in bytes.
const BODY_BYTES_MAX: usize = 16 << 10;
/// Maximum age of a reused view, so that many open tabs build one view.
pub(crate) const FRESH: Duration = Duration::from_millis(500);
/// Maximum wait of a request in the hash queue.
const HASH_WAIT: Duration = Duration::from_secs(10);

/// Shared state of the pages: owner, data source and limits.
pub struct Site {
    pub(crate) owner: Arc<Owner>,
    pub(crate) source: Arc<dyn Source>,
    shown: Mutex<Option<(Instant, Arc<StatusView>)>>,
    streams: Shares,
    pub(crate) feeds: Feeds,
    hashing: Arc<HashQueue>,
}

impl Site {
    /// Creates the state for the box of `owner`.
    pub fn new(owner: Arc<Owner>, source: Arc<dyn Source>) -> Arc<Self> {
        Arc::new(Self {
            owner,
            source,
            shown: Mutex::default(),
            streams: Shares::new(STREAMS),
            feeds: Feeds::default(),
            hashing: Arc::default(),
        })
    }

    /// Returns the status view, at most [`FRESH`] old.
    pub(crate) async fn view(&self) -> Arc<StatusView> {
        let mut shown = self.shown.lock().await;
        if let Some((at, view)) = shown.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            let _ = at;
            return Arc::clone(view);
        }
        let view = Arc::new(self.source.view().await);
        *shown = Some((Instant::now(), Arc::clone(&view)));
        view
    }

    /// Returns the data of a page that is not in the status view.
    pub(crate) async fn more(&self, page: &Page, view: &StatusView) -> More {
        let log = |machine: &str| match view.machines.iter().any(|it| it.name.as_str() == machine) {
            true => self.source.machine_log(machine),
            false => Vec::new(),
        };
        match page {
            Page::Machine(name, Tab::Log) => More { log: log(name), ..More::default() },
            Page::Workflow(name) => {
                let work = self.source.workflow(name).await.unwrap_or_default();
                let machine = work.as_ref().map(|it| it.work.machine.clone());
                let log = machine.map(|it| log(&it)).unwrap_or_default();
                More { log, work, ..More::default() }
            }
            _ => More::default(),
        }
    }

    /// Returns access to what people have put aside.
    fn dismissals(&self) -> Dismissals {
        Dismissals::new(Arc::clone(&self.source.machine_actions().objects))
    }

    /// Runs `work`, which writes the users to disk, on a thread that may block.
    async fn users(
        &self,
        work: impl FnOnce(&Owner) -> Result<(), AccessError> + Send + 'static,
    ) -> Result<(), AccessError> {
        let owner = Arc::clone(&self.owner);
        tokio::task::spawn_blocking(move || work(&owner)).await.unwrap_or(Err(AccessError::Busy))
    }

    /// Waits in the hash queue, then runs `work`, which hashes a passphrase. `from` is the client.
    /// Returns [`AccessError::Busy`] if the queue is full or the wait exceeds [`HASH_WAIT`].
    async fn hash<T: Send + 'static>(
        self: &Arc<Self>,
        from: IpAddr,
        work: impl FnOnce(&Owner) -> Result<T, AccessError> + Send + 'static,
    ) -> Result<T, AccessError> {
        let turn = self.hashing.take(self.owner.standing(from));
        let turn = tokio::time::timeout(HASH_WAIT, turn).await;
        let Ok(Some(turn)) = turn else { return Err(AccessError::Busy) };
        let owner = Arc::clone(&self.owner);
        let hashed = tokio::task::spawn_blocking(move || {
            // Held while the thread hashes, also if the client has gone.
            let _turn = turn;
            work(&owner)
        });
        hashed.await.unwrap_or(Err(AccessError::Busy))
    }
}

pub(crate) type PageResponse = Response<Body>;
pub(crate) type SiteState = State<Arc<Site>>;
/// Returns the routes for HTTPS. The listener must add `ConnectInfo<SocketAddr>` of the client.
pub fn router(site: Arc<Site>) -> Router {
    Router::new()
        .merge(entry::routes())
        .merge(box_actions::routes())
        .merge(os_images::routes())
        .route("/events", get(events))
        .merge(access::routes())
        .merge(machines::routes())
        .route("/panel.png", get(panel))
        .route("/ca.pem", get(ca_pem))
        .route("/assets/style.css", get(style))
        .route("/assets/keys.js", get(async |headers: HeaderMap| assets::KEYS.response(&headers)))
        .route("/assets/live.js", get(async |headers: HeaderMap| assets::LIVE.response(&headers)))
        .route(
            "/assets/console.js",
            get(async |headers: HeaderMap| assets::CONSOLE.response(&headers)),
        )
        .merge(search::routes())
        .merge(setup::settings::routes())
        .merge(setup::routes())
        .merge(templates::routes())
        .fallback(get(show))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn(compress))
        .layer(from_fn_with_state(Arc::clone(&site), guard::check))
        .with_state(site)
}

/// Returns the routes for HTTP: the CA certificate, and redirects to HTTPS at `port` (TL-5).
pub fn plain(site: Arc<Site>, port: u16) -> Router {
    let elsewhere = move |headers: HeaderMap, uri: Uri| async move {
        let Some(host) = host(&headers) else {
            return text(StatusCode::BAD_REQUEST, "This request has no Host header.");
        };
        let port = if port == 443 { String::new() } else { format!(":{port}") };
        let path = uri.path_and_query().map_or("/", |it| it.as_str());
        let mut answer = see(&format!("https://{host}{port}{path}"));
        *answer.status_mut() = StatusCode::PERMANENT_REDIRECT;
        answer
    };
    Router::new().route("/ca.pem", get(ca_pem)).fallback(elsewhere).with_state(site)
}

fn token(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, response::COOKIE)
}

/// Returns the value of a cookie of a request; `None` without it.
fn cookie<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|it| it.trim().split_once('='));
    pairs.filter(|(name, _)| *name == wanted).map(|(_, value)| value).next()
}

/// Sends the style sheet in the colors that the person chose.
async fn style(headers: HeaderMap) -> PageResponse {
    let theme = cookie(&headers, response::THEME).unwrap_or_default();
    assets::style(theme).response(&headers)
}

async fn ca_pem(State(site): SiteState) -> PageResponse {
    content(StatusCode::OK, "application/x-pem-file", site.source.ca_pem())
}

async fn show(State(site): SiteState, uri: Uri, headers: HeaderMap, who: Caller) -> PageResponse {
    let view = site.view().await;
    let Some(page) = Page::at(uri.path()) else {
        let text = "This page does not exist on this box.";
        return html(StatusCode::NOT_FOUND, page::sentence(&view, "Not found", text));
    };
    let mut more = site.more(&page, &view).await;
    let known = match &page {
        Page::Workflow(_) => more.work.is_some(),
        Page::Machine(name, _) => view.machines.iter().any(|it| it.name.as_str() == name),
        _ => true,
    };
    let status = if known { StatusCode::OK } else { StatusCode::NOT_FOUND };
    if let (true, Page::Machine(name, tab)) = (known, &page) {
        more.sections = site.source.machine_tab(name, *tab).await;
    }
    let start = match page {
        Page::Machine(_, Tab::History) => done(&uri),
        Page::Machines => done(&uri) + &web_pages::machine::forms::add_by_mac(&who),
        Page::Network if who.may(Permission::ChangeSettings) && site.source.setup().is_some() => {
            page::setup_link()
        }
        Page::ClusterApi => {
            page::connect(&view, &pages(&uri, &headers), &site.source.ca_pem(), &who)
        }
        _ => String::new(),
    };
    html(status, page.html_with(&view, &more, &who, &start))
}

/// Returns the message about the action that led to a page; empty without one.
fn done(uri: &Uri) -> String {
    let word = uri.query().and_then(|query| query.strip_prefix("done="));
    word.and_then(Action::named).map(web_pages::machine::forms::done).unwrap_or_default()
}

#[derive(Deserialize)]
struct EventsQuery {
    page: String,
}

async fn events(
    State(site): SiteState,
    query: Query<EventsQuery>,
    headers: HeaderMap,
    who: Caller,
) -> PageResponse {
    let Some(page) = Page::at(&query.page) else {
        return text(StatusCode::NOT_FOUND, "This page does not exist on this box.");
    };
    let Some(place) = site.streams.enter(&who.user.name) else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "Too many pages are open. Reload this one.");
    };
    let token = token(&headers).unwrap_or_default().to_owned();
    event_stream::answer(site, page, (&headers, token, who.rights), place)
}

async fn panel(State(site): SiteState) -> PageResponse {
    let view = site.view().await;
    match site.source.panel(&view) {
        Some(png) => content(StatusCode::OK, "image/png", png),
        None => text(StatusCode::NOT_FOUND, "This box has no panel."),
    }
}

/// Builds the response to a refused request: a page, or plain text for `Accept: text/plain`.
pub(crate) fn refused(
    refusal: &AccessError,
    headers: &HeaderMap,
    page: impl FnOnce(&str) -> String,
) -> PageResponse {
    if let AccessError::Disk(error) = refusal {
        tracing::error!(error = %stdx::chain(error), "the box cannot save its owner");
    }
    let status = match refusal {
        AccessError::Claimed | AccessError::Unclaimed | AccessError::Unknown => {
            StatusCode::CONFLICT
        }
        AccessError::Passphrase(_)
        | AccessError::NoCode
        | AccessError::UserName
        | AccessError::SshKey(_) => StatusCode::UNPROCESSABLE_ENTITY,
        AccessError::NoUser(_) => StatusCode::NOT_FOUND,
        AccessError::Taken(_) | AccessError::TooManyUsers | AccessError::Damaged => {
            StatusCode::CONFLICT
        }
        AccessError::WrongCode(_)
        | AccessError::Barred
        | AccessError::Changed
        | AccessError::WrongPassphrase
        | AccessError::WrongLogin
        | AccessError::Unproved => StatusCode::FORBIDDEN,
        AccessError::Wait(_) => StatusCode::TOO_MANY_REQUESTS,
        AccessError::Busy | AccessError::Disk(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let plain = headers.get(ACCEPT).is_some_and(|it| it.as_bytes() == b"text/plain");
    let why = refusal.to_string();
    let mut answer = if plain { text(status, &why) } else { html(status, page(&why)) };
    if let AccessError::Wait(seconds) = refusal {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(*seconds));
    }
    answer
}

#[cfg(test)]
mod tests;
