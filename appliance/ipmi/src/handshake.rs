//! Session setup as a state machine without I/O: datagrams in, next datagram or session out.
//!
//! ```text
//! Opening    -- Open Session Response --> Proving
//! Proving    -- RAKP 2, verified      --> Confirming
//! Confirming -- RAKP 4, verified      --> a session
//! any        -- a status not OK, or a RAKP 2 made with another password --> refused
//! ```
//! An unexpected datagram is an error and does not change the state.

pub mod legacy;
pub mod rakp;

use stdx::Secret;
use zeroize::Zeroizing;

use self::rakp::{Answer, Exchange, NAME_ONLY_LOOKUP, PASSWORD_MAX, USERNAME_MAX, open_request};
use crate::command::OPERATOR;
use crate::crypto::{LegacyKey, SessionKeys};
use crate::packet::{Packet, PayloadType, plain};
use crate::session::Session;
use crate::{CipherSuite, Credentials, Malformed, SessionStatus};

/// Name of the first step, for messages.
pub const OPEN_SESSION: &str = "Open Session";

const ROLE: u8 = OPERATOR | NAME_ONLY_LOOKUP;

/// User name and password within IPMI's length limits.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    username: String,
    password: Secret,
}

impl Login {
    /// Checks the lengths of user name and password.
    ///
    /// # Errors
    /// User name or password is too long, as a sentence.
    pub fn new(credentials: &Credentials) -> Result<Self, &'static str> {
        if credentials.username.len() > USERNAME_MAX {
            return Err("the user name is longer than IPMI's 16 bytes");
        }
        if credentials.password.expose().len() > PASSWORD_MAX {
            return Err("the password is longer than IPMI's 20 bytes");
        }
        let Credentials { username, password } = credentials.clone();
        Ok(Self { username, password })
    }

    /// Returns the key of a session of IPMI 1.5; `None` if the password is too long for one.
    pub(crate) fn legacy_key(&self) -> Option<LegacyKey> {
        LegacyKey::new(self.password.expose().as_bytes())
    }
}

/// Random values of one handshake.
#[derive(Clone)]
pub struct Seed {
    /// Tag of the first message; each later message adds 1.
    pub tag: u8,
    /// Session ID of the console (this box). 0, which is reserved, becomes 1.
    pub console_id: u32,
    /// Random number of the console for the key exchange.
    pub console_random: [u8; 16],
}

/// Reason why no session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRefusal {
    /// The BMC refused the step with this status.
    Status(SessionStatus),
    /// The authentication code shows that the BMC has another password for the user.
    OtherPassword {
        /// Datagram that ends the key exchange, so that the BMC frees its session. To be sent once.
        farewell: Vec<u8>,
    },
}

/// Result of a handshake step.
pub enum Progress {
    /// The next message is ready: send the result of [`Handshake::transmit`].
    Next,
    /// The session is open.
    Open(Box<Session>),
    /// No session is opened.
    Refused(SessionRefusal),
}

enum State {
    Opening,
    Proving { managed_id: u32 },
    Confirming { exchange: Box<Exchange>, session_integrity_key: Zeroizing<Vec<u8>> },
}

/// Single attempt to open a session.
pub struct Handshake {
    suite: CipherSuite,
    login: Login,
    seed: Seed,
    state: State,
}

impl Handshake {
    /// Creates an attempt with exactly this cipher suite.
    pub fn new(suite: CipherSuite, login: Login, seed: Seed) -> Self {
        let console_id = seed.console_id.max(1);
        Self { suite, login, seed: Seed { console_id, ..seed }, state: State::Opening }
    }

    /// Returns the name of the pending message, for messages to people.
    pub fn step(&self) -> &'static str {
        match self.state {
            State::Opening => OPEN_SESSION,
            State::Proving { .. } => "RAKP message 1",
            State::Confirming { .. } => "RAKP message 3",
        }
    }

    /// Returns true until the first valid answer of the BMC.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::Opening)
    }

    /// Returns true after the BMC has proven in RAKP message 2 that it knows the password.
    pub fn is_proved(&self) -> bool {
        matches!(self.state, State::Confirming { .. })
    }

    fn tag(&self) -> u8 {
        self.seed.tag.wrapping_add(match self.state {
            State::Opening => 0,
            State::Proving { .. } => 1,
            State::Confirming { .. } => 2,
        })
    }

    /// Returns the pending message. A retransmission has identical bytes, including the tag.
    pub fn transmit(&self) -> Vec<u8> {
        let tag = self.tag();
        let Seed { console_id, console_random, .. } = &self.seed;
        match &self.state {
            State::Opening => plain(
                PayloadType::OpenRequest,
                &open_request(tag, OPERATOR, *console_id, self.suite),
            ),
            State::Proving { managed_id } => {
                let username = self.login.username.as_bytes();
                plain(
                    PayloadType::Rakp1,
                    &Exchange::rakp1(tag, *managed_id, console_random, ROLE, username),
                )
            }
            State::Confirming { exchange, .. } => {
                plain(PayloadType::Rakp3, &exchange.rakp3(tag, SessionStatus::OK))
            }
        }
    }

    /// Processes a datagram from the BMC.
    ///
    /// # Errors
    /// The datagram is not the answer to the last message; the state does not change.
    pub fn receive(&mut self, datagram: &[u8]) -> Result<Progress, Malformed> {
        let Packet::Plus(packet) = Packet::parse(datagram)? else {
            return Err(Malformed::Stray("IPMI 1.5 session header"));
        };
        let awaited = match self.state {
            State::Opening => PayloadType::OpenResponse,
            State::Proving { .. } => PayloadType::Rakp2,
            State::Confirming { .. } => PayloadType::Rakp4,
        };
        if packet.payload_type != awaited {
            return Err(Malformed::Stray("payload type"));
        }
        if packet.encrypted || packet.authenticated || packet.session_id != 0 {
            return Err(Malformed::Field("session header of a key exchange"));
        }
        let answer = Answer::parse(packet.payload)?;
        if answer.tag != self.tag() {
            return Err(Malformed::Stray("message tag"));
        }
        let ours = self.seed.console_id;
        if answer.status != SessionStatus::OK {
            return match answer.console_id {
                None | Some(0) => Ok(Progress::Refused(SessionRefusal::Status(answer.status))),
                Some(id) if id == ours => {
                    Ok(Progress::Refused(SessionRefusal::Status(answer.status)))
                }
                Some(_) => Err(Malformed::Stray("session ID")),
            };
        }
        if answer.console_id != Some(ours) {
            return Err(Malformed::Stray("session ID"));
        }
        self.advance(&answer)
    }

    fn advance(&mut self, answer: &Answer<'_>) -> Result<Progress, Malformed> {
        match &self.state {
            State::Opening => {
                let managed_id = answer.open_response(self.suite)?;
                self.state = State::Proving { managed_id };
                Ok(Progress::Next)
            }
            State::Proving { managed_id } => {
                let managed_id = *managed_id;
                self.prove(managed_id, answer)
            }
            State::Confirming { exchange, session_integrity_key } => {
                let check = answer.rakp4(self.suite)?;
                if !exchange.verifies_check(session_integrity_key, check) {
                    return Err(Malformed::Unverified("integrity check value of RAKP message 4"));
                }
                let keys = SessionKeys::derive(self.suite, session_integrity_key);
                let session = Session::new(keys, exchange.console_id, exchange.managed_id);
                Ok(Progress::Open(Box::new(session)))
            }
        }
    }

    fn prove(&mut self, managed_id: u32, answer: &Answer<'_>) -> Result<Progress, Malformed> {
        let rakp2 = answer.rakp2(self.suite)?;
        let exchange = Exchange {
            suite: self.suite,
            console_id: self.seed.console_id,
            managed_id,
            console_random: self.seed.console_random,
            managed_random: rakp2.managed_random,
            managed_guid: rakp2.managed_guid,
            role: ROLE,
            username: self.login.username.clone().into_bytes(),
            key: Zeroizing::new(self.login.password.expose().as_bytes().to_vec()),
        };
        if !exchange.verifies_managed(&rakp2.code) {
            let tag = self.seed.tag.wrapping_add(2);
            let goodbye = exchange.rakp3(tag, SessionStatus::INVALID_INTEGRITY_CHECK_VALUE);
            let farewell = plain(PayloadType::Rakp3, &goodbye);
            return Ok(Progress::Refused(SessionRefusal::OtherPassword { farewell }));
        }
        let session_integrity_key = exchange.session_integrity_key();
        self.state = State::Confirming { exchange: Box::new(exchange), session_integrity_key };
        Ok(Progress::Next)
    }
}

#[cfg(test)]
mod tests;
