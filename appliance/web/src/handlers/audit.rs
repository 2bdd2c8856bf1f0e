//! Requests recorded in the audit log: those that can change data, and downloads of keys.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::http::header::{SET_COOKIE, USER_AGENT};
use axum::http::{Method, StatusCode};

use crate::handlers::PageResponse;

/// Maximum length of a recorded `User-Agent`, in characters.
const AGENT_CHARS_MAX: usize = 256;

/// Maximum length of a recorded detail, in characters.
const DETAIL_CHARS_MAX: usize = 256;

/// A request to the pages, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// HTTP method of the request.
    pub method: String,
    /// Path of the request; a claim code in the path is replaced by `CODE`.
    pub path: String,
    /// IP address of the client.
    pub from: Option<IpAddr>,
    /// `User-Agent` of the client.
    pub agent: String,
    /// Name of the session's user; empty without a session.
    pub user: String,
    /// Objects that the request names, such as a user and a role; may be empty.
    pub detail: String,
    /// True if the client had a session, got a session, or sent the valid claim code.
    pub accepted: bool,
    /// HTTP status of the response.
    pub code: u16,
}

/// Objects that a request names, for its record.
#[derive(Clone)]
struct RequestDetail(String);

/// Adds the objects that a request names to its record, such as a new user and the role.
pub(crate) fn about(mut answer: PageResponse, detail: &str) -> PageResponse {
    let detail = status::plain(detail).chars().take(DETAIL_CHARS_MAX).collect();
    answer.extensions_mut().insert(RequestDetail(detail));
    answer
}

/// Name of the user for whom a response begins a session.
#[derive(Clone)]
pub(crate) struct LoginUser(pub String);

impl PageRequest {
    /// Creates the record of a request. Returns `None` for a request that only reads a page.
    pub(crate) fn of(request: &Request, user: Option<&str>) -> Option<Self> {
        let (method, path) = (request.method(), request.uri().path());
        let shows = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
        if shows && path != "/kubeconfig" {
            return None;
        }
        let agent = request.headers().get(USER_AGENT).and_then(|it| it.to_str().ok());
        let path = match path.strip_prefix("/S/") {
            Some(rest) if rest != "restore" => "/S/CODE",
            _ => path,
        };
        let from = request.extensions().get::<ConnectInfo<SocketAddr>>();
        Some(Self {
            method: method.to_string(),
            path: path.to_owned(),
            from: from.map(|from| from.0.ip().to_canonical()),
            agent: agent.unwrap_or_default().chars().take(AGENT_CHARS_MAX).collect(),
            user: user.unwrap_or_default().to_owned(),
            detail: String::new(),
            accepted: user.is_some(),
            code: 0,
        })
    }

    /// Adds the status of the response, and its effect on `accepted`.
    pub(crate) fn answered(self, answer: &PageResponse) -> Self {
        let status = answer.status();
        let got_session = answer.headers().contains_key(SET_COOKIE);
        let proved = status == StatusCode::OK;
        let accepted = self.accepted || got_session || proved;
        let user = match answer.extensions().get::<LoginUser>() {
            Some(LoginUser(name)) => name.clone(),
            None => self.user.clone(),
        };
        let detail = answer.extensions().get::<RequestDetail>().map(|it| it.0.clone());
        let detail = detail.unwrap_or_default();
        Self { user, detail, accepted, code: status.as_u16(), ..self }
    }
}
