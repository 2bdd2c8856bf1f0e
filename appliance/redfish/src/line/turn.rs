//! Requests during the exclusive use of a line: login, retries, redirects, versions and tasks.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep, timeout};

use super::connection::{Answer, Call, Connection, SendFailure, authority};
use super::{Endpoint, Security, State, Trust};
use crate::document::{location, path};
use crate::reason::brief;
use crate::{Document, Error, Reason};

/// Path of the root resource (DSP0266 §6.3).
const ROOT: &str = "/redfish/v1/";
/// Maximum wait for the response to one request. Some BMCs need 20 s for their system.
const ANSWER_LIMIT: Duration = Duration::from_secs(40);
/// Maximum transmissions of one request: after a new login, a redirect, a busy BMC, or a
/// connection that was closed meanwhile.
const SENDS_MAX: u32 = 8;
/// Maximum repetitions of one request for a busy BMC.
const BUSY_MAX: u32 = 3;
/// Wait for a busy BMC that names no time.
const BUSY_PAUSE: Duration = Duration::from_secs(2);
/// Maximum wait for a busy BMC between two transmissions.
const BUSY_PAUSE_MAX: Duration = Duration::from_secs(10);
/// Maximum wait for the end of a task. After this time, the state of the machine decides.
const TASK_LIMIT: Duration = Duration::from_secs(30);
/// Interval between two readings of a task.
const TASK_POLL: Duration = Duration::from_secs(1);
/// Maximum length of a shown location, in characters.
const LOCATION_CHARS_MAX: usize = 120;

/// Exclusive use of the line to a BMC.
pub(crate) struct Turn<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(crate) state: MutexGuard<'a, State>,
}

/// Request whose version, login and repetitions the turn decides.
struct Request<'a> {
    method: Method,
    path: &'a str,
    body: Option<Bytes>,
    etag: Option<&'a str>,
    /// True if the BMC may execute the request twice.
    may_repeat: bool,
}

impl Request<'_> {
    fn step(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

impl<'a> Turn<'a> {
    pub(super) fn new(endpoint: &'a Endpoint, mut state: MutexGuard<'a, State>) -> Self {
        state.connection.take_if(|connection| {
            let suits = match endpoint.security {
                Security::Plain => connection.certificate.is_none(),
                Security::Tls(Trust::Pinned(pin)) => connection.certificate == Some(pin),
                Security::Tls(Trust::Any | Trust::FirstUse) => connection.certificate.is_some(),
            };
            !suits || !connection.is_fresh()
        });
        Self { endpoint, state }
    }

    /// Reads the root resource, without a login.
    pub async fn root(&mut self) -> Result<Document, Error> {
        if let Some(root) = &self.state.root {
            return Ok(root.clone());
        }
        let request =
            Request { method: Method::GET, path: ROOT, body: None, etag: None, may_repeat: true };
        let answer = self.exchange(&request, false).await?;
        let root = document(&request, answer)?;
        self.state.root = Some(root.clone());
        Ok(root)
    }

    /// Reads a resource of the service with the login of the line.
    pub async fn get(&mut self, path: &str) -> Result<Document, Error> {
        let request =
            Request { method: Method::GET, path, body: None, etag: None, may_repeat: true };
        let answer = self.exchange(&request, true).await?;
        document(&request, answer)
    }

    /// Reads a resource; `None` if the service does not have it.
    pub async fn find(&mut self, path: Option<String>) -> Result<Option<Document>, Error> {
        let Some(path) = path else { return Ok(None) };
        match self.get(&path).await {
            Err(error) if error.is_absent() => Ok(None),
            found => found.map(Some),
        }
    }

    /// Reads a resource that a request can do without; `None` if the service does not have it or
    /// cannot read it. Some services respond to a link of their own with an internal error.
    pub async fn readable(&mut self, path: Option<String>) -> Result<Option<Document>, Error> {
        match self.find(path).await {
            Err(Error::Refused { step, status, is_busy: false, .. }) => {
                tracing::debug!(step, status, "resource is not readable");
                Ok(None)
            }
            found => found,
        }
    }

    /// Reads the members of a collection, at most `limit`.
    pub async fn members(
        &mut self,
        collection: Option<String>,
        limit: usize,
    ) -> Result<Vec<Document>, Error> {
        let Some(collection) = self.find(collection).await? else { return Ok(Vec::new()) };
        let mut members = Vec::new();
        for path in collection.links("/Members").into_iter().take(limit) {
            members.extend(self.find(Some(path)).await?);
        }
        Ok(members)
    }

    /// Changes properties of a resource that was read before. A service that compares versions
    /// refuses the version in another strength than its own, or requires one.
    pub async fn patch(&mut self, resource: &Document, body: &Value) -> Result<(), Error> {
        let read = resource.etag.clone();
        let other = read.as_deref().map(|etag| match etag.strip_prefix("W/") {
            Some(strong) => strong.to_owned(),
            None => format!("W/{etag}"),
        });
        let mut versions = vec![read];
        versions.extend(other.map(Some));
        versions.push(None);
        versions.dedup();
        let mut last = None;
        for version in versions {
            match self.patch_once(&resource.path, body, version.as_deref()).await {
                // The version differs (412), or is required (428).
                Err(error @ Error::Refused { status: 412 | 428, .. }) => last = Some(error),
                done => return done,
            }
        }
        // Another client may have changed the resource since it was read.
        let again = self.get(&resource.path).await?;
        let version = again.etag.unwrap_or_else(|| "*".to_owned());
        match last {
            Some(_) => self.patch_once(&resource.path, body, Some(&version)).await,
            None => Ok(()),
        }
    }

    async fn patch_once(
        &mut self,
        path: &str,
        body: &Value,
        etag: Option<&str>,
    ) -> Result<(), Error> {
        let body = Some(Bytes::from(body.to_string()));
        let request = Request { method: Method::PATCH, path, body, etag, may_repeat: true };
        let answer = self.exchange(&request, true).await?;
        self.settle(&request, answer).await
    }

    /// Requests an action. The request is not repeated if the BMC may have executed it.
    pub async fn post(&mut self, path: &str, body: &Value) -> Result<(), Error> {
        let body = Some(Bytes::from(body.to_string()));
        let request = Request { method: Method::POST, path, body, etag: None, may_repeat: false };
        let answer = self.exchange(&request, true).await?;
        self.settle(&request, answer).await
    }

    /// Waits for the task of an accepted request (DSP0266 §12.2), if the service has made one.
    async fn settle(&mut self, request: &Request<'_>, answer: Answer) -> Result<(), Error> {
        if answer.status != 202 {
            return Ok(());
        }
        let body = Document::parse(request.path, None, &answer.body).ok();
        let link = body.as_ref().and_then(|it| it.link(""));
        let Some(task) = answer.location.as_deref().and_then(location).or(link) else {
            return Ok(());
        };
        let end = Instant::now() + TASK_LIMIT;
        while Instant::now() < end {
            // The task may be gone, or be something else: the request itself was accepted.
            let Ok(found) = self.get(&task).await else { return Ok(()) };
            match found.text("/TaskState") {
                Some("Completed") => return Ok(()),
                Some(state @ ("Exception" | "Killed" | "Cancelled")) => {
                    let (step, state) = (request.step(), state.to_owned());
                    return Err(Error::TaskFailed { step, state, reason: Reason::of(&found.json) });
                }
                Some(_) => sleep(TASK_POLL).await,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Sends a request until it is accepted or finally refused.
    async fn exchange(&mut self, request: &Request<'_>, has_login: bool) -> Result<Answer, Error> {
        let mut target = request.path.to_owned();
        let (mut logins, mut busy, mut redirects) = (0, 0, 0);
        let mut identity = true;
        for _ in 0..SENDS_MAX {
            let login = match has_login {
                true => {
                    logins += u32::from(!self.has_session());
                    Some(self.login().await?)
                }
                false => None,
            };
            let (method, path) = (request.method.clone(), target.as_str());
            let (body, etag) = (request.body.clone(), request.etag);
            let call = Call { method, path, body, etag, login, identity };
            let answer = self.transmit(&call, request.may_repeat).await?;
            let status = answer.status;
            match status {
                200..=299 => return Ok(answer),
                401 if has_login => self.relogin(logins).await?,
                // Some firmware cannot send a resource without compression.
                406 if identity => identity = false,
                300..=399 if redirects == 0 => {
                    redirects += 1;
                    target = self.redirected(request, &answer)?;
                }
                _ => {
                    let error = self.refusal(request, &answer);
                    let is_busy = matches!(error, Error::Refused { is_busy: true, .. });
                    if !is_busy || busy >= BUSY_MAX {
                        return Err(error);
                    }
                    busy += 1;
                    let pause = answer.retry_after.map_or(BUSY_PAUSE, Duration::from_secs);
                    sleep(pause.min(BUSY_PAUSE_MAX)).await;
                }
            }
        }
        let reason = "the BMC asked for the same request again and again".to_owned();
        Err(Error::Lost { step: request.step(), reason })
    }

    /// Decides after a refused login. A session that ended gets one new session; a service that
    /// refuses the token of a new session gets HTTP Basic, with the login that it accepted. No
    /// further login is sent, because a BMC may lock the account after a few wrong ones.
    async fn relogin(&mut self, logins: u32) -> Result<(), Error> {
        let Some(auth) = self.state.auth.take() else { return Ok(()) };
        if !auth.is_session() {
            return Err(auth.refused());
        }
        self.state.auth = Some(auth);
        match logins {
            0 => self.state.auth = None,
            _ => self.use_basic().await,
        }
        Ok(())
    }

    /// Returns the path of a redirect on the same server.
    fn redirected(&self, request: &Request<'_>, answer: &Answer) -> Result<String, Error> {
        let location = answer.location.clone().unwrap_or_default();
        let scheme = match self.endpoint.security {
            Security::Plain => "http://",
            Security::Tls(_) => "https://",
        };
        let own = authority(self.endpoint);
        let host = own.rsplit_once(':').map_or(own.as_str(), |(host, _)| host);
        let rest = location.strip_prefix(scheme).and_then(|rest| {
            rest.strip_prefix(own.as_str())
                .or(rest.strip_prefix(host))
                .filter(|rest| rest.starts_with('/'))
        });
        path(rest.unwrap_or(&location)).ok_or_else(|| Error::Redirect {
            step: request.step(),
            location: brief(&location).chars().take(LOCATION_CHARS_MAX).collect(),
        })
    }

    fn refusal(&self, request: &Request<'_>, answer: &Answer) -> Error {
        let (step, status) = (request.step(), answer.status);
        let reason = Reason::read(&answer.body);
        let is_busy = matches!(status, 429 | 503) || self.state.quirks.is_busy(&reason);
        match status {
            // Another message, such as a missing license, is not about the user.
            403 if !is_busy && reason.is_about_rights() => {
                let username = self.endpoint.login.username.clone();
                Error::Forbidden { username, step, reason }
            }
            300..=399 => {
                let location = brief(answer.location.as_deref().unwrap_or_default());
                Error::Redirect { step, location }
            }
            _ => Error::Refused { step, status, reason, is_busy },
        }
    }

    /// Sends a request once, and again only if the BMC has not received it, or may execute it
    /// twice: BMCs close idle connections at any time.
    pub(super) async fn transmit(
        &mut self,
        call: &Call<'_>,
        may_repeat: bool,
    ) -> Result<Answer, Error> {
        let step = || format!("{} {}", call.method, call.path);
        let mut lost = String::new();
        for _ in 0..2 {
            let mut connection = self.connection().await?;
            let was_used = connection.has_answered;
            match timeout(ANSWER_LIMIT, connection.send(call)).await {
                Err(_) => return Err(Error::Timeout { step: step(), after: ANSWER_LIMIT }),
                Ok(Err(SendFailure::NotSent)) => "the connection was closed".clone_into(&mut lost),
                Ok(Err(SendFailure::Sent(reason))) if was_used && may_repeat => lost = reason,
                Ok(Err(SendFailure::Sent(reason))) => {
                    return Err(Error::Lost { step: step(), reason });
                }
                Ok(Ok((answer, stays_open))) => {
                    if stays_open {
                        self.state.connection = Some(connection);
                    }
                    return Ok(answer);
                }
            }
        }
        Err(Error::Lost { step: step(), reason: lost })
    }

    /// Takes the open connection out of the line, so that a canceled call leaves no connection in
    /// an unknown state, or opens a new one.
    async fn connection(&mut self) -> Result<Connection, Error> {
        if let Some(connection) = self.state.connection.take().filter(Connection::is_fresh) {
            return Ok(connection);
        }
        let pin = match self.endpoint.security {
            Security::Tls(Trust::Pinned(pin)) => Some(pin),
            Security::Tls(Trust::FirstUse) => self.state.trusted,
            Security::Tls(Trust::Any) | Security::Plain => None,
        };
        let connection = Connection::open(self.endpoint, pin).await?;
        if let Some(found) = connection.certificate {
            let is_first = self.endpoint.security == Security::Tls(Trust::FirstUse);
            if is_first && pin.is_none() {
                tracing::info!(host = %self.endpoint.host, %found, "BMC certificate trusted");
            }
            // A certificate that the owner does not verify must not be trusted later.
            self.state.trusted = Some(found).filter(|_| pin.is_some() || is_first);
        }
        Ok(connection)
    }
}

fn document(request: &Request<'_>, answer: Answer) -> Result<Document, Error> {
    let read = Document::parse(request.path, answer.etag, &answer.body);
    read.map_err(|reason| Error::NotJson { step: request.step(), reason })
}
