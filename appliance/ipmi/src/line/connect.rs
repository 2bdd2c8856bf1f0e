//! Opening of a session: cipher suite, handshake, privilege level.

use std::time::Duration;

use tokio::time::timeout;

use super::link::{KNOCK, Link, QUICK, SHORT, SLOW, Waits};
use super::{legacy, random};
use crate::command::OPERATOR;
use crate::command::session::{GetCipherSuites, SetPrivilege, suite_numbers};
use crate::handshake::{Handshake, Login, OPEN_SESSION, Progress, Seed, SessionRefusal};
use crate::message::Command;
use crate::packet::PayloadType;
use crate::session::{Outstanding, Session};
use crate::{Address, CipherSuite, CompletionCode, Error, Malformed, Refusal};

/// Maximum time for the query of the cipher suites, which many BMCs never answer.
const DISCOVERY_LIMIT: Duration = Duration::from_millis(1500);

/// Maximum number of key exchanges that fail after the BMC proved that it knows the password. A
/// lost RAKP message 2 or 4 leaves the two sides with different random numbers.
const ATTEMPTS: usize = 3;

/// Open session with its socket. A BMC has few sessions, so dropping an open session sends one
/// close request, without waiting.
pub(crate) struct Live {
    link: Link,
    session: Session,
    is_closed: bool,
}

/// IPMI version of the earlier sessions with a BMC.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum KnownVersion {
    /// No session was opened.
    #[default]
    Unknown,
    /// IPMI 1.5: the BMC stated that it has no IPMI 2.0.
    Legacy,
    /// IPMI 2.0, with the suite that worked last. From then on IPMI 1.5 is never used.
    Plus(Option<CipherSuite>),
}

impl KnownVersion {
    /// Returns the version without the suite, so that all suites are tried.
    pub(super) fn without_suite(self) -> Self {
        match self {
            Self::Plus(_) => Self::Plus(None),
            other => other,
        }
    }
}

/// Opens a session. A required suite `asked` is never replaced, also not by IPMI 1.5.
pub(crate) async fn open(
    address: &Address,
    login: &Login,
    username: &str,
    asked: Option<CipherSuite>,
    known: KnownVersion,
) -> Result<Live, Error> {
    let mut link = Link::connect(address).await?;
    let session = match asked {
        Some(suite) => open_plus(&mut link, login, username, &[suite]).await?,
        None => negotiate(&mut link, login, username, known).await?,
    };
    let mut live = Live { link, session, is_closed: false };
    live.call(&SetPrivilege(OPERATOR), QUICK).await.map_err(|error| match error {
        Error::CommandRefused { address, refusal, .. } if !refusal.is_transient() => {
            let (username, status) = (username.to_owned(), refusal.to_string());
            Error::Privilege { address, username, status }
        }
        error => error,
    })?;
    Ok(live)
}

/// Opens a session of IPMI 2.0, or one of IPMI 1.5 with a BMC that states that it has nothing else.
async fn negotiate(
    link: &mut Link,
    login: &Login,
    username: &str,
    known: KnownVersion,
) -> Result<Session, Error> {
    if let KnownVersion::Legacy = known {
        // New firmware may bring IPMI 2.0, so the BMC is asked each time.
        let capabilities = legacy::capabilities(link).await?;
        if !capabilities.has_plus {
            return legacy::open(link, login, username, capabilities).await;
        }
    }
    let suites = match known {
        KnownVersion::Plus(Some(suite)) => vec![suite],
        _ => match timeout(DISCOVERY_LIMIT, discover(link)).await.unwrap_or(SuiteList::Silence) {
            SuiteList::Numbers(numbers) => candidates(link, &numbers)?,
            SuiteList::Refused => match fallback(link, login, username, known).await? {
                Some(session) => return Ok(session),
                None => CipherSuite::PREFERRED.to_vec(),
            },
            SuiteList::Silence => CipherSuite::PREFERRED.to_vec(),
        },
    };
    match open_plus(link, login, username, &suites).await {
        Err(error @ (Error::NoAnswer { .. } | Error::Timeout { step: OPEN_SESSION, .. })) => {
            fallback(link, login, username, known).await?.ok_or(error)
        }
        opened => opened,
    }
}

/// Opens a session of IPMI 1.5 if the BMC states that it has no IPMI 2.0. A BMC that had a session
/// of IPMI 2.0 gets no login that is protected less.
async fn fallback(
    link: &mut Link,
    login: &Login,
    username: &str,
    known: KnownVersion,
) -> Result<Option<Session>, Error> {
    let Ok(capabilities) = legacy::capabilities(link).await else { return Ok(None) };
    if capabilities.has_plus {
        return Ok(None);
    }
    if let KnownVersion::Plus(_) = known {
        return Err(Error::Downgrade { address: link.address().clone() });
    }
    legacy::open(link, login, username, capabilities).await.map(Some)
}

/// Opens a session of IPMI 2.0 with the first of the suites that the BMC accepts.
async fn open_plus(
    link: &mut Link,
    login: &Login,
    username: &str,
    suites: &[CipherSuite],
) -> Result<Session, Error> {
    let address = link.address().clone();
    let mut refused = None;
    for (at, suite) in suites.iter().copied().enumerate() {
        let is_last = at + 1 == suites.len();
        match handshake(link, login, username, suite).await {
            Ok(session) => {
                tracing::debug!(bmc = %address, suite = suite.id(), "session opened");
                return Ok(session);
            }
            // A BMC may also drop a proposal whose suite is unknown to it.
            Err(
                error @ (Error::SuiteRefused { .. }
                | Error::NoAnswer { .. }
                | Error::Timeout { step: OPEN_SESSION, .. }),
            ) if !is_last => {
                tracing::debug!(bmc = %address, suite = suite.id(), %error, "suite not accepted");
                refused = Some(error);
            }
            Err(Error::SuiteRefused { reason, .. }) => {
                return Err(suite_refused(&address, suites, reason));
            }
            // The BMC refused the earlier suites explicitly: it is reachable, and supports none of
            // them.
            Err(Error::NoAnswer { .. }) if matches!(refused, Some(Error::SuiteRefused { .. })) => {
                let reason = "no response to the last suite".into();
                return Err(suite_refused(&address, suites, reason));
            }
            Err(error) => return Err(error),
        }
    }
    Err(suite_refused(&address, suites, "no suite was tried".into()))
}

/// Returns the cipher suites to try, best first, of those that the BMC offers.
fn candidates(link: &Link, offered: &[u8]) -> Result<Vec<CipherSuite>, Error> {
    let wanted = |suite: &CipherSuite| offered.contains(&suite.id());
    let candidates: Vec<_> = CipherSuite::PREFERRED.into_iter().filter(wanted).collect();
    if candidates.is_empty() {
        let numbers: Vec<_> = offered.iter().map(u8::to_string).collect();
        let reason = format!("it offers {}", numbers.join(", "));
        return Err(suite_refused(link.address(), &CipherSuite::PREFERRED, reason));
    }
    Ok(candidates)
}

/// Answer to the query of the cipher suites.
enum SuiteList {
    Numbers(Vec<u8>),
    /// The BMC refused the query, which IPMI 1.5 does not have, or has no suite.
    Refused,
    Silence,
}

/// Requests the numbers of the BMC's cipher suites.
async fn discover(link: &mut Link) -> SuiteList {
    let mut records = Vec::new();
    for slice in 0..GetCipherSuites::SLICES {
        let found = match link.ask(&GetCipherSuites { slice }, slice).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => return SuiteList::Refused,
            Err(_) => return SuiteList::Silence,
        };
        records.extend_from_slice(&found);
        if found.len() < GetCipherSuites::SLICE_LEN {
            break;
        }
    }
    match suite_numbers(&records) {
        numbers if numbers.is_empty() => SuiteList::Refused,
        numbers => SuiteList::Numbers(numbers),
    }
}

async fn handshake(
    link: &mut Link,
    login: &Login,
    username: &str,
    suite: CipherSuite,
) -> Result<Session, Error> {
    let mut attempt = 1;
    loop {
        let mut handshake = Handshake::new(suite, login.clone(), seed());
        let error = match attempt_once(link, &mut handshake).await {
            Ok(Ok(session)) => return Ok(session),
            Ok(Err(refusal)) => refused(link, &handshake, refusal, username, suite).await,
            Err(error) => error,
        };
        let broke_off = matches!(error, Error::Timeout { .. } | Error::SessionRefused { .. });
        if attempt == ATTEMPTS || !broke_off || !handshake.is_proved() {
            return Err(error);
        }
        attempt += 1;
    }
}

async fn attempt_once(
    link: &mut Link,
    handshake: &mut Handshake,
) -> Result<Result<Session, SessionRefusal>, Error> {
    loop {
        let step = handshake.step();
        let transmit = |handshake: &mut Handshake| handshake.transmit();
        let waits = if handshake.is_opening() { KNOCK } else { QUICK };
        match link.exchange(step, waits, handshake, transmit, Handshake::receive).await? {
            Progress::Next => {}
            Progress::Open(session) => return Ok(Ok(*session)),
            Progress::Refused(refusal) => return Ok(Err(refusal)),
        }
    }
}

/// Converts a refusal to an error. After a wrong password, also closes the BMC's session.
async fn refused(
    link: &Link,
    handshake: &Handshake,
    refusal: SessionRefusal,
    username: &str,
    suite: CipherSuite,
) -> Error {
    let address = link.address().clone();
    let username = username.to_owned();
    match refusal {
        SessionRefusal::OtherPassword { farewell } => {
            if let Err(error) = link.send(&farewell).await {
                tracing::debug!(bmc = %address, %error, "cannot send Close Session");
            }
            Error::WrongPassword { address, username }
        }
        SessionRefusal::Status(status) if status.refuses_suite() => {
            suite_refused(&address, &[suite], status.to_string())
        }
        // After the BMC's proof was verified, the password is right: the key exchange was
        // interrupted.
        SessionRefusal::Status(status) if status.refuses_user() && !handshake.is_proved() => {
            Error::WrongPassword { address, username }
        }
        SessionRefusal::Status(status) if status.refuses_privilege() => {
            Error::Privilege { address, username, status: status.to_string() }
        }
        SessionRefusal::Status(status) => {
            Error::SessionRefused { address, step: handshake.step(), status }
        }
    }
}

fn suite_refused(address: &Address, allowed: &[CipherSuite], reason: String) -> Error {
    let allowed: Vec<_> = allowed.iter().map(CipherSuite::to_string).collect();
    Error::SuiteRefused { address: address.clone(), allowed: allowed.join(", "), reason }
}

impl Live {
    /// Returns the cipher suite of the session; `None` for IPMI 1.5.
    pub(crate) fn suite(&self) -> Option<CipherSuite> {
        self.session.suite()
    }

    /// Sends one request and returns the response.
    pub(crate) async fn call<C: Command>(
        &mut self,
        command: &C,
        waits: Waits,
    ) -> Result<C::Reply, Error> {
        let waits = if C::SLOW { SLOW } else { waits };
        let outstanding = self.session.begin(command);
        let transmit = |session: &mut Session| session.transmit(&outstanding, random());
        let accept =
            |session: &mut Session, bytes: &[u8]| match session.receive(&outstanding, bytes)? {
                (CompletionCode::OK, data) => command.reply(&data).map(Ok),
                (code, _) => Ok(Err(code)),
            };
        let session = &mut self.session;
        let answer = self.link.exchange(C::NAME, waits, session, transmit, accept).await?;
        answer.map_err(|code| Error::CommandRefused {
            address: self.link.address().clone(),
            command: C::NAME,
            refusal: Refusal::of::<C>(code),
        })
    }

    /// Waits for the next datagram of the BMC. Safe to cancel.
    pub(crate) async fn datagram(&self) -> Result<Vec<u8>, Error> {
        self.link.receive().await
    }

    /// Verifies and decrypts a datagram with a payload of this type.
    pub(crate) fn open_payload(
        &mut self,
        payload_type: PayloadType,
        datagram: &[u8],
    ) -> Result<Vec<u8>, Malformed> {
        self.session.open(payload_type, datagram)
    }

    /// Sends a payload once.
    pub(crate) async fn send_payload(
        &mut self,
        payload_type: PayloadType,
        payload: &[u8],
    ) -> Result<(), Error> {
        let datagram = self.session.seal(payload_type, payload, random());
        self.link.send(&datagram).await
    }

    /// Sends a request once, without waiting for its response.
    pub(crate) async fn post<C: Command>(&mut self, command: &C) -> Result<Outstanding, Error> {
        let outstanding = self.session.begin(command);
        let datagram = self.session.transmit(&outstanding, random());
        self.link.send(&datagram).await?;
        Ok(outstanding)
    }

    /// Decodes a datagram as the response to a posted request; `None` if the BMC refused it.
    pub(crate) fn answer<C: Command>(
        &mut self,
        command: &C,
        outstanding: &Outstanding,
        datagram: &[u8],
    ) -> Result<Option<C::Reply>, Malformed> {
        match self.session.receive(outstanding, datagram)? {
            (CompletionCode::OK, data) => command.reply(&data).map(Some),
            _ => Ok(None),
        }
    }

    /// Closes the session. A missing response is ignored: the BMC also drops idle sessions.
    pub(crate) async fn close(mut self) {
        let close = self.session.close();
        if let Err(error) = self.call(&close, SHORT).await {
            tracing::debug!(bmc = %self.link.address(), %error, "session not closed");
        }
        self.is_closed = true;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !self.is_closed {
            let close = self.session.begin(&self.session.close());
            self.link.try_send(&self.session.transmit(&close, random()));
        }
    }
}

fn seed() -> Seed {
    let [tag] = random();
    Seed { tag, console_id: u32::from_le_bytes(random()), console_random: random() }
}
