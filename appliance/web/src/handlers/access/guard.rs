//! Check of every request before its handler: session, rights, origin. A path without a row in
//! [`table::access`](super::table::access) is refused.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::Next;

use super::table::{Access, access};
use crate::handlers::audit::PageRequest;
use crate::handlers::{PageResponse, Site, SiteState, token};
use crate::response::{harden, html, see, text};
use web_pages::rights::{Permission, Visitor};
use web_pages::{self as page, Page};

impl Site {
    /// Returns the person of a session with the rights of now; `None` without a session. Prolongs
    /// the session if `prolongs` is true.
    pub(crate) async fn visitor(&self, token: &str, prolongs: bool) -> Option<Visitor> {
        let session = match prolongs {
            true => self.owner.session(token)?,
            false => self.owner.session_user(token)?,
        };
        let rights = self.source.rights(&session.user).await;
        Some(Visitor::new(session.user, rights, session.csrf))
    }
}

/// Visitor whose request has passed the check.
pub(crate) struct Caller(Visitor);

impl Deref for Caller {
    type Target = Visitor;

    fn deref(&self) -> &Visitor {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = PageResponse;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let visitor = parts.extensions.get::<Visitor>().cloned();
        visitor.map(Caller).ok_or_else(|| text(StatusCode::UNAUTHORIZED, "Log in first."))
    }
}

/// Lets a request pass if its path is open, or if its session has the right. Redirects requests
/// without a session to the login or the claim. Adds security headers to every response.
pub(crate) async fn check(
    State(site): SiteState,
    mut request: Request,
    next: Next,
) -> PageResponse {
    let session = token(request.headers()).unwrap_or_default().to_owned();
    let visitor = site.visitor(&session, true).await;
    let mut record = PageRequest::of(&request, visitor.as_ref().map(|it| it.user.name.as_str()));
    let admitted = admit(&site, &request, visitor.as_ref());
    let mut answer = match (admitted, visitor) {
        (Ok(()), visitor) => {
            if let Some(visitor) = visitor {
                request.extensions_mut().insert(visitor);
            }
            carried_out(&site, record.take(), next.run(request)).await
        }
        (Err(Refusal::Lacks(permission)), Some(visitor)) => {
            let page = page::refused(&*site.view().await, &visitor, permission);
            html(StatusCode::FORBIDDEN, page)
        }
        (Err(Refusal::Lacks(_)), None) => see("/login"),
        (Err(Refusal::Elsewhere(path)), _) => see(path),
        (Err(Refusal::Text(status, why)), _) => text(status, why),
    };
    if let Some(record) = record {
        site.source.record(record.answered(&answer));
    }
    harden(answer.headers_mut());
    answer
}

/// Waits for the response of a handler and writes the record of the request. A request that has a
/// record is carried out and recorded even if its client disconnects.
async fn carried_out(
    site: &Arc<Site>,
    record: Option<PageRequest>,
    handled: impl Future<Output = PageResponse> + Send + 'static,
) -> PageResponse {
    let Some(record) = record else { return handled.await };
    let source = Arc::clone(&site.source);
    let recorded = tokio::spawn(async move {
        let answer = handled.await;
        source.record(record.answered(&answer));
        answer
    });
    recorded.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request of a page ended early");
        text(StatusCode::INTERNAL_SERVER_ERROR, "The box could not carry out this request.")
    })
}

/// Reason why a request may not pass.
enum Refusal {
    /// The session's user lacks the permission.
    Lacks(Permission),
    /// The client must log in or claim the box first, at this path.
    Elsewhere(&'static str),
    /// Another reason, as a sentence.
    Text(StatusCode, &'static str),
}

/// Decides about a request by its path and its session.
fn admit(site: &Site, request: &Request, visitor: Option<&Visitor>) -> Result<(), Refusal> {
    let (method, uri) = (request.method(), request.uri());
    if method == Method::POST && is_foreign(uri, request.headers()) {
        let why = "This form was sent by another site.";
        return Err(Refusal::Text(StatusCode::FORBIDDEN, why));
    }
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let access = match route.map(|route| access(method, route)) {
        // All other paths are pages that only show.
        None => Access::Need(Page::at(uri.path()).map_or(Permission::See, |it| it.permission())),
        Some(Some(access)) => access,
        Some(None) => {
            let why = "No user may request this path.";
            return Err(Refusal::Text(StatusCode::FORBIDDEN, why));
        }
    };
    match (access, visitor) {
        (Access::Open | Access::Claim, _) => Ok(()),
        _ if !site.owner.claimed() => Err(Refusal::Elsewhere("/S")),
        (Access::Login, _) | (Access::Session, Some(_)) => Ok(()),
        (Access::Session | Access::Need(_), None) if uri.path() == "/events" => {
            Err(Refusal::Text(StatusCode::UNAUTHORIZED, "Log in first."))
        }
        (Access::Session | Access::Need(_), None) => Err(Refusal::Elsewhere("/login")),
        (Access::Need(permission), Some(visitor)) if visitor.may(permission) => Ok(()),
        (Access::Need(permission), Some(_)) => Err(Refusal::Lacks(permission)),
    }
}

/// Returns true if the browser reports that a page of another site sent the request
/// (`Sec-Fetch-Site`, else `Origin`).
fn is_foreign(uri: &Uri, headers: &HeaderMap) -> bool {
    let says = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = says("sec-fetch-site") {
        return !matches!(site, "same-origin" | "none");
    }
    // Over HTTP/2 the host is in the URL, and `Host` is absent.
    let host = uri.authority().map(|it| it.as_str()).or(says(HOST.as_str())).unwrap_or_default();
    says(ORIGIN.as_str()).is_some_and(|it| it.strip_prefix("https://") != Some(host))
}
