//! Requests to the pages that leave a line in the audit log: every one that may change something,
//! and the downloads of keys.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::http::header::{SET_COOKIE, USER_AGENT};
use axum::http::{Method, StatusCode};

use crate::handlers::PageResponse;

/// Characters of what a client calls itself.
const AGENT_CHARS_MAX: usize = 256;

/// A request to the pages, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// HTTP method of the request.
    pub method: String,
    /// The path. A code that is part of it is left out.
    pub path: String,
    /// IP address of the client.
    pub from: Option<IpAddr>,
    /// `User-Agent` of the client.
    pub agent: String,
    /// The client had a session, got one, or showed the code of a box without an owner.
    pub accepted: bool,
    /// HTTP status of the response.
    pub code: u16,
}

impl PageRequest {
    /// The record of a request that has a session or not; `None` for one that only shows a page.
    pub(crate) fn of(request: &Request, has_session: bool) -> Option<Self> {
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
            accepted: has_session,
            code: 0,
        })
    }

    /// Adds the status of the response.
    pub(crate) fn answered(self, answer: &PageResponse) -> Self {
        let status = answer.status();
        let got_session = answer.headers().contains_key(SET_COOKIE);
        let proved = status == StatusCode::OK;
        let accepted = self.accepted || got_session || proved;
        Self { accepted, code: status.as_u16(), ..self }
    }
}
