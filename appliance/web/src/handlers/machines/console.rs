//! Serial console of a machine, read-only: the stream that its page shows.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::time::timeout;

use crate::handlers::{Caller, PageResponse, Site, SiteState, token};
use crate::response::{content, text};
use rbac::Share;
use web_pages::rights::Permission;

/// Interval between two checks that the session of the browser is still valid.
const CHECK: Duration = Duration::from_secs(5);

/// Output of a console: recorded output first, then live.
pub type ConsoleStream = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new().route("/machines/{name}/console/output", get(output))
}

async fn output(
    State(site): SiteState,
    Path(name): Path<String>,
    headers: HeaderMap,
    who: Caller,
) -> PageResponse {
    let Some(place) = site.streams.enter(&who.user.name) else {
        let why = "Too many pages are open. Close one, then reload this page.";
        return text(StatusCode::SERVICE_UNAVAILABLE, why);
    };
    let token = token(&headers).unwrap_or_default().to_owned();
    match site.source.console(&name).await {
        Ok(console) => {
            let live = Live { site, token, console, _place: place };
            let body = Body::from_stream(live.stream().map(Ok::<_, Infallible>));
            content(StatusCode::OK, "text/plain; charset=utf-8", body)
        }
        Err(why) => text(StatusCode::NOT_FOUND, &why),
    }
}

/// Console in one browser tab.
struct Live {
    site: Arc<Site>,
    token: String,
    console: ConsoleStream,
    _place: Share,
}

impl Live {
    /// Returns the output until the console or the session ends.
    fn stream(self) -> impl Stream<Item = Bytes> {
        stream::unfold(self, |mut live| async move {
            while may_see(&live.site, &live.token).await {
                if let Ok(next) = timeout(CHECK, live.console.next()).await {
                    return next.map(|bytes| (bytes, live));
                }
            }
            None
        })
    }
}

/// Returns true while the session may read consoles.
async fn may_see(site: &Site, token: &str) -> bool {
    let visitor = site.visitor(token, false).await;
    visitor.is_some_and(|it| it.may(Permission::ReadConsole))
}
