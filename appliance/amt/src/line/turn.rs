//! Requests during the exclusive use of a line: login, retries, and answers to errors.

use std::time::Duration;

use tls_pin::Trust;
use tokio::sync::MutexGuard;
use tokio::time::timeout;

use super::http::{Connection, HttpAnswer, SendFailure};
use super::{Endpoint, Security, Session, State};
use crate::envelope::{Class, Parameter, Request, Selectors};
use crate::message::{Answer, Element, Malformed, brief};
use crate::{Error, Fingerprint, ReturnTable, ReturnValue};
use http_digest::{Challenge, ChallengeError};

/// Maximum wait for the answer to one request.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Maximum transmissions of one request: without login, with login, after a stale nonce, and after
/// a connection that was closed meanwhile.
const SENDS_MAX: u32 = 4;
/// Maximum pages of one enumeration.
const PAGES_MAX: usize = 64;
/// Maximum items of one enumeration.
const ITEMS_MAX: usize = 1024;

/// Exclusive use of the line to a machine.
pub(crate) struct Turn<'a> {
    endpoint: &'a Endpoint,
    pub(crate) state: MutexGuard<'a, State>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(endpoint: &'a Endpoint, mut state: MutexGuard<'a, State>) -> Self {
        let login = &endpoint.login;
        state.session.take_if(|session| session.login != *login);
        let trusted = state.trusted;
        state.connection.take_if(|connection| {
            let found = connection.certificate;
            let suits = match endpoint.security {
                Security::Plain => found.is_none(),
                Security::Tls(Trust::Any) => found.is_some(),
                Security::Tls(Trust::FirstUse) => found.is_some() && found == trusted,
                Security::Tls(Trust::Pinned(pin)) => found == Some(pin),
            };
            !suits || !connection.is_fresh()
        });
        Self { endpoint, state }
    }

    /// Connects, and returns the certificate of the machine; `None` without TLS.
    pub async fn certificate(&mut self) -> Result<Option<Fingerprint>, Error> {
        let connection = self.connection().await?;
        let certificate = connection.certificate;
        self.state.connection = Some(connection);
        Ok(certificate)
    }

    /// Returns the expected certificate of the machine; `None` before the first one, if any
    /// certificate is trusted, and without TLS.
    pub fn pin(&self) -> Option<Fingerprint> {
        match self.endpoint.security {
            Security::Tls(Trust::Pinned(pin)) => Some(pin),
            Security::Tls(Trust::FirstUse) => self.state.trusted,
            Security::Tls(Trust::Any) | Security::Plain => None,
        }
    }

    /// Returns the header `Server` of the last answer.
    pub fn server(&self) -> Option<&str> {
        self.state.server.as_deref()
    }

    /// Reads one instance: with the keys, else the first of an enumeration, as AMT 10 has only
    /// one of both for some classes. `None` if the firmware does not have the class.
    pub async fn find(
        &mut self,
        class: Class,
        selectors: Selectors<'_>,
    ) -> Result<Option<Element>, Error> {
        match self.get(class, selectors).await {
            Err(error) if error.is_absent() => {}
            found => return found.map(Some),
        }
        let mut items = self.list(class).await?;
        items.truncate(1);
        Ok(items.pop())
    }

    /// Reads the instance with the keys `selectors`.
    pub async fn get(&mut self, class: Class, selectors: Selectors<'_>) -> Result<Element, Error> {
        let request = Request::get(class, selectors);
        self.call(&request, |answer| answer.expect(class.0)).await
    }

    /// Reads all instances; empty if the firmware does not have the class.
    pub async fn list(&mut self, class: Class) -> Result<Vec<Element>, Error> {
        let begun = self.call(&Request::enumerate(class), Answer::enumeration).await;
        let mut context = match begun {
            Err(error) if error.is_absent() => return Ok(Vec::new()),
            begun => Some(begun?),
        };
        let mut items = Vec::new();
        for _ in 0..PAGES_MAX {
            let Some(current) = context.take() else { break };
            // A page is consumed when it is read.
            let request = Request::pull(class, &current).only_once();
            let (page, next) = self.call(&request, Answer::page).await?;
            items.extend(page.into_iter().filter(|item| item.name == class.0));
            if items.len() > ITEMS_MAX {
                break;
            }
            context = next;
        }
        items.truncate(ITEMS_MAX);
        Ok(items)
    }

    /// Calls a method; a return value other than success is an error.
    pub async fn invoke(
        &mut self,
        class: Class,
        method: &str,
        parameters: &[Parameter<'_>],
        table: ReturnTable,
    ) -> Result<(), Error> {
        self.execute(&Request::invoke(class, method, parameters), method, table).await
    }

    /// Sends the request of a method; a return value other than success is an error.
    pub async fn execute(
        &mut self,
        request: &Request,
        method: &str,
        table: ReturnTable,
    ) -> Result<(), Error> {
        let value = self.call(request, |answer| answer.return_value(method)).await?;
        let value = ReturnValue { value, table };
        match value.is_accepted() {
            true => Ok(()),
            false => Err(Error::Refused { step: request.name.clone(), value }),
        }
    }

    /// Calls a method with output values, and returns them with the return value.
    pub async fn query(
        &mut self,
        class: Class,
        method: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<(Element, u32), Error> {
        let request = Request::invoke(class, method, parameters);
        self.call(&request, |answer| answer.output(method)).await
    }

    /// Replaces one instance; the answer repeats the instance.
    pub async fn put(
        &mut self,
        class: Class,
        selectors: Selectors<'_>,
        fields: &[(String, String)],
    ) -> Result<(), Error> {
        let request = Request::put(class, selectors, fields);
        self.call(&request, |answer| answer.expect(class.0)).await.map(drop)
    }

    /// Sends a request until it has an answer, and reads the answer.
    async fn call<T>(
        &mut self,
        request: &Request,
        read: impl FnOnce(Answer) -> Result<T, Malformed>,
    ) -> Result<T, Error> {
        let id = self.state.last_id.wrapping_add(1);
        self.state.last_id = id;
        let answer = self.exchange(request, &request.envelope(id)).await?;
        let step = &request.name;
        let malformed = |source| Error::Malformed { step: step.clone(), source };
        let soap = Answer::parse(&answer.body);
        match (answer.status.as_u16(), soap) {
            (403, _) => {
                let username = self.endpoint.login.username.clone();
                Err(Error::Forbidden { username, step: step.clone() })
            }
            (status, Ok(soap)) => match soap.fault() {
                Some(fault) => Err(Error::Fault { step: step.clone(), fault }),
                None if status == 200 => {
                    soap.check_relation(id).map_err(malformed)?;
                    read(soap).map_err(malformed)
                }
                None => Err(http_error(step, &answer)),
            },
            (200, Err(source)) => Err(malformed(source)),
            (_, Err(_)) => Err(http_error(step, &answer)),
        }
    }

    /// Sends a request and logs in. A request is sent again only if the firmware has not executed
    /// it: after a challenge, or if the connection was closed before.
    async fn exchange(&mut self, request: &Request, envelope: &str) -> Result<HttpAnswer, Error> {
        let step = &request.name;
        if self.endpoint.login.username.contains(char::is_control) {
            return Err(ChallengeError::UserName.into());
        }
        let (mut challenges, mut lost) = (0, None);
        for _ in 0..SENDS_MAX {
            let mut connection = self.connection().await?;
            let was_used = connection.has_answered;
            let authorization = self.state.session.as_mut().map(Session::authorization);
            let sent = connection.post(authorization.as_deref(), envelope.to_owned());
            match timeout(ANSWER_LIMIT, sent).await {
                Err(_) => {
                    return Err(Error::Timeout { step: step.clone(), after: ANSWER_LIMIT });
                }
                // AMT closes idle connections at any time.
                Ok(Err(SendFailure::NotSent)) => {
                    lost = Some("the connection was closed".to_owned());
                }
                Ok(Err(SendFailure::Sent(reason))) if was_used && request.may_repeat => {
                    tracing::debug!(host = %self.endpoint.host, step, reason, "connection lost");
                    lost = Some(reason);
                }
                Ok(Err(SendFailure::Sent(reason))) => {
                    return Err(Error::Lost { step: step.clone(), reason });
                }
                Ok(Ok((answer, stays_open))) => {
                    if stays_open {
                        self.state.connection = Some(connection);
                    }
                    if answer.server.is_some() {
                        self.state.server.clone_from(&answer.server);
                    }
                    if answer.status != http::StatusCode::UNAUTHORIZED {
                        return Ok(answer);
                    }
                    self.answer_challenge(&answer, challenges)?;
                    challenges += 1;
                }
            }
        }
        let reason = lost.unwrap_or_else(|| "the login was requested again and again".to_owned());
        Err(Error::Lost { step: step.clone(), reason })
    }

    /// Prepares the login for the next transmission. A login with a nonce of this exchange is
    /// final, unless the nonce is stale: each wrong attempt brings the account nearer to a lockout.
    fn answer_challenge(&mut self, answer: &HttpAnswer, earlier: u32) -> Result<(), Error> {
        let tried = self.state.session.take();
        let was_tried = tried.is_some();
        let challenge = Challenge::find(answer.challenges.iter().map(String::as_str));
        let challenge = match challenge {
            // A response to a login may leave the challenge out.
            Err(ChallengeError::Absent) if was_tried => None,
            challenge => Some(challenge?),
        };
        let login = self.endpoint.login.clone();
        let is_new = |new: &Challenge| {
            tried.as_ref().is_none_or(|old| earlier == 0 && old.challenge.nonce != new.nonce)
        };
        match challenge {
            Some(challenge) if challenge.is_stale || is_new(&challenge) => {
                self.state.session = Some(Session::new(challenge, login));
                Ok(())
            }
            _ => Err(Error::WrongPassword { username: login.username }),
        }
    }

    /// Takes the open connection out of the line, so that a canceled call leaves no connection in
    /// an unknown state, or opens a new one.
    async fn connection(&mut self) -> Result<Connection, Error> {
        if let Some(connection) = self.state.connection.take().filter(Connection::is_fresh) {
            return Ok(connection);
        }
        let pin = self.pin();
        let connection = Connection::open(self.endpoint, pin).await?;
        if let Some(found) = connection.certificate {
            let is_first = self.endpoint.security == Security::Tls(Trust::FirstUse);
            if is_first && pin.is_none() {
                tracing::info!(host = %self.endpoint.host, %found, "AMT certificate trusted");
            }
            // A certificate that the owner does not verify must not be trusted later.
            self.state.trusted = Some(found).filter(|_| pin.is_some() || is_first);
        }
        Ok(connection)
    }
}

/// Returns the error for an answer that is not SOAP. AMT sends pages in HTML.
fn http_error(step: &str, answer: &HttpAnswer) -> Error {
    let body = String::from_utf8_lossy(&answer.body);
    let mut text = String::new();
    let mut is_tag = false;
    for char in body.chars() {
        match char {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                text.push(' ');
            }
            char if !is_tag => text.push(char),
            _ => {}
        }
    }
    let (step, status) = (step.to_owned(), answer.status.as_u16());
    Error::Http { step, status, text: brief(&text) }
}
