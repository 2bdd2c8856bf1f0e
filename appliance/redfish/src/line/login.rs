//! Login at a BMC: one session, or HTTP Basic where the service has no sessions.

use http::Method;
use http::header::{HeaderName, HeaderValue};
use serde_json::json;
use stdx::Secret;

use super::Login;
use super::connection::{Answer, Call, TOKEN, basic};
use super::turn::Turn;
use crate::document::location;
use crate::{Error, Reason};

/// Path of the sessions of a service that does not state it (DSP0266 §13.3.4).
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";
/// Message identifiers of a refused login that has another status than 401.
const WRONG_LOGIN: [&str; 3] =
    ["UnauthorizedLoginAttempt", "InvalidCredentials", "AuthenticationF"];
/// Message identifiers of a service without a free session.
const NO_SESSION_FREE: [&str; 3] =
    ["SessionLimitExceeded", "CreateLimitReachedForResource", "RAC0218"];

/// Login that the next request uses.
pub struct Auth {
    login: Login,
    kind: AuthKind,
}

enum AuthKind {
    /// Token of a session, and the session's path.
    Session { token: Secret, path: Option<String> },
    /// HTTP Basic. `full` is the message of a service that has no free session.
    Basic { full: Option<Reason> },
}

impl Auth {
    /// Returns true if the login is a session.
    pub fn is_session(&self) -> bool {
        matches!(self.kind, AuthKind::Session { .. })
    }

    /// Returns the header of a request.
    pub fn header(&self) -> Result<(HeaderName, HeaderValue), Error> {
        match &self.kind {
            AuthKind::Session { token, .. } => {
                let value = HeaderValue::try_from(token.expose());
                let mut value = value.map_err(|_| Error::UserName)?;
                value.set_sensitive(true);
                Ok((TOKEN, value))
            }
            AuthKind::Basic { .. } => basic(&self.login.username, self.login.password.expose()),
        }
    }

    /// Returns the error after the service refused HTTP Basic.
    pub fn refused(self) -> Error {
        let username = self.login.username;
        match self.kind {
            AuthKind::Basic { full: Some(reason) } => Error::SessionLimit { username, reason },
            _ => Error::WrongPassword { username },
        }
    }
}

impl Turn<'_> {
    /// Returns true if the line has an open session.
    pub fn has_session(&self) -> bool {
        self.state.auth.as_ref().is_some_and(Auth::is_session)
    }

    /// Ends a session of another login than the one of this turn.
    pub async fn end_other_session(&mut self) {
        let is_other = self.state.auth.as_ref().is_some_and(|it| it.login != self.endpoint.login);
        if is_other {
            self.end_session().await;
        }
    }

    /// Deletes the session at the BMC. A failure is ignored: the BMC ends the session when it is
    /// idle.
    pub async fn end_session(&mut self) {
        let Some(auth) = self.state.auth.take() else { return };
        let AuthKind::Session { path: Some(path), .. } = &auth.kind else { return };
        let Ok(login) = auth.header() else { return };
        let call = Call {
            method: Method::DELETE,
            path,
            body: None,
            etag: None,
            login: Some(login),
            identity: true,
        };
        match self.transmit(&call, false).await {
            Ok(answer) => tracing::debug!(path, status = answer.status, "session deleted"),
            Err(error) => {
                tracing::debug!(path, error = %stdx::chain(&error), "session not deleted");
            }
        }
    }

    /// Uses HTTP Basic from now on, because the service refuses the tokens of its own sessions.
    pub async fn use_basic(&mut self) {
        self.end_session().await;
        let kind = AuthKind::Basic { full: None };
        self.state.auth = Some(Auth { login: self.endpoint.login.clone(), kind });
    }

    /// Logs in if the line has no login. The result is the header for the next request.
    pub async fn login(&mut self) -> Result<(HeaderName, HeaderValue), Error> {
        let auth = match self.state.auth.take() {
            Some(auth) => auth,
            None => self.new_login().await?,
        };
        let header = auth.header();
        self.state.auth = Some(auth);
        header
    }

    async fn new_login(&mut self) -> Result<Auth, Error> {
        let login = self.endpoint.login.clone();
        let basic = |full| Auth { login: login.clone(), kind: AuthKind::Basic { full } };
        if login.is_basic {
            return Ok(basic(None));
        }
        let sessions = match Box::pin(self.root()).await {
            Ok(root) => {
                let service = root.link("/SessionService");
                let below = service.map(|it| format!("{}/Sessions", it.trim_end_matches('/')));
                match root.link("/Links/Sessions").or(below) {
                    Some(sessions) => sessions,
                    None => return Ok(basic(None)),
                }
            }
            // Some services show nothing without a login.
            Err(Error::Refused { status: 401 | 403, .. }) => SESSIONS.to_owned(),
            Err(error) => return Err(error),
        };
        let body = json!({ "UserName": login.username, "Password": login.password.expose() });
        let call = Call {
            method: Method::POST,
            path: &sessions,
            body: Some(body.to_string().into()),
            etag: None,
            login: None,
            identity: true,
        };
        let answer = self.transmit(&call, false).await?;
        let reason = Reason::read(&answer.body);
        let is = |ids: &[&str]| ids.iter().any(|id| reason.names(id));
        match (answer.status, answer.token.as_deref()) {
            (200..=299, Some(token)) => {
                let path = session_path(&answer);
                let kind = AuthKind::Session { token: token.into(), path };
                Ok(Auth { login, kind })
            }
            // A service that makes sessions without a token has nothing to send.
            (200..=299, None) | (404 | 405 | 501, _) => Ok(basic(None)),
            (_, _) if is(&NO_SESSION_FREE) => Ok(basic(Some(reason))),
            (503, _) => Ok(basic(Some(reason))),
            (401, _) => Err(Error::WrongPassword { username: login.username }),
            (400 | 403, _) if is(&WRONG_LOGIN) => {
                Err(Error::WrongPassword { username: login.username })
            }
            (403, _) => {
                let step = "a session".to_owned();
                Err(Error::Forbidden { username: login.username, step, reason })
            }
            (status, _) => {
                let step = format!("POST {sessions}");
                Err(Error::Refused { step, status, reason, is_busy: false })
            }
        }
    }
}

/// Returns the path of a new session: header `Location`, with or without a host, else the body.
fn session_path(answer: &Answer) -> Option<String> {
    let header = answer.location.as_deref().and_then(location);
    let body = || {
        let json: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
        crate::document::reference(&json)
    };
    header.or_else(body)
}
