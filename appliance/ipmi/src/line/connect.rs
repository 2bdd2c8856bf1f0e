//! Opening of a session: cipher suite, handshake, privilege level.

use std::time::Duration;

use tokio::time::timeout;

use super::link::{KNOCK, Link, QUICK, SHORT, SLOW, Waits};
use crate::command::OPERATOR;
use crate::command::session::{GetCipherSuites, SetPrivilege, suite_numbers};
use crate::handshake::{Handshake, Login, OPEN_SESSION, Progress, Seed, SessionRefusal};
use crate::message::{Command, request, response};
use crate::packet::{Packet, PayloadType, legacy};
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

/// Opens a session. `asked` is the required cipher suite, `known` the suite that worked the last
/// time. With neither, the suites of [`candidates`] are tried.
pub(crate) async fn open(
    address: &Address,
    login: &Login,
    username: &str,
    asked: Option<CipherSuite>,
    known: Option<CipherSuite>,
) -> Result<Live, Error> {
    let mut link = Link::connect(address).await?;
    let candidates = match asked.or(known) {
        Some(suite) => vec![suite],
        None => candidates(&mut link).await?,
    };
    let mut refused = None;
    for (at, suite) in candidates.iter().copied().enumerate() {
        let is_last = at + 1 == candidates.len();
        match handshake(&mut link, login, username, suite).await {
            Ok(session) => {
                tracing::debug!(bmc = %address, suite = suite.id(), "session opened");
                let mut live = Live { link, session, is_closed: false };
                live.call(&SetPrivilege(OPERATOR), QUICK).await.map_err(|error| match error {
                    Error::CommandRefused { address, refusal, .. } if !refusal.is_transient() => {
                        let (username, status) = (username.to_owned(), refusal.to_string());
                        Error::Privilege { address, username, status }
                    }
                    error => error,
                })?;
                return Ok(live);
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
                return Err(suite_refused(address, &candidates, reason));
            }
            // The BMC refused the earlier suites explicitly: it is reachable, and supports none of
            // them.
            Err(Error::NoAnswer { .. }) if matches!(refused, Some(Error::SuiteRefused { .. })) => {
                return Err(suite_refused(
                    address,
                    &candidates,
                    "no response to the last suite".into(),
                ));
            }
            Err(error) => return Err(error),
        }
    }
    Err(suite_refused(address, &candidates, "no suite was tried".into()))
}

/// Returns the cipher suites to try, best first.
async fn candidates(link: &mut Link) -> Result<Vec<CipherSuite>, Error> {
    let Ok(Some(offered)) = timeout(DISCOVERY_LIMIT, discover(link)).await else {
        return Ok(CipherSuite::PREFERRED.to_vec());
    };
    let wanted = |suite: &CipherSuite| offered.contains(&suite.id());
    let candidates: Vec<_> = CipherSuite::PREFERRED.into_iter().filter(wanted).collect();
    if candidates.is_empty() {
        let numbers: Vec<_> = offered.iter().map(u8::to_string).collect();
        let reason = format!("it offers {}", numbers.join(", "));
        return Err(suite_refused(link.address(), &CipherSuite::PREFERRED, reason));
    }
    Ok(candidates)
}

/// Requests the numbers of the BMC's cipher suites; `None` if the BMC returns no list.
async fn discover(link: &mut Link) -> Option<Vec<u8>> {
    let mut records = Vec::new();
    for slice in 0..GetCipherSuites::SLICES {
        let command = GetCipherSuites { slice };
        let (message, expected) = request(&command, slice);
        let datagram = legacy(&message);
        let sent = |_: &mut ()| datagram.clone();
        let accept = |_: &mut (), received: &[u8]| {
            let Packet::Legacy { payload } = Packet::parse(received)? else {
                return Err(Malformed::Stray("RMCP+ session header"));
            };
            match response(payload, expected)? {
                (CompletionCode::OK, data) => command.reply(data).map(Some),
                _ => Ok(None),
            }
        };
        let stateless = &mut ();
        let asked = link.exchange(GetCipherSuites::NAME, SHORT, stateless, sent, accept);
        let found = asked.await.ok()??;
        records.extend_from_slice(&found);
        if found.len() < GetCipherSuites::SLICE_LEN {
            break;
        }
    }
    Some(suite_numbers(&records)).filter(|numbers| !numbers.is_empty())
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
    /// Returns the cipher suite of the session.
    pub(crate) fn suite(&self) -> CipherSuite {
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
            refusal: Refusal { net_fn: C::NET_FN, command: C::CODE, code },
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

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the kernel gives randomness");
    bytes
}
