//! Setup of an IPMI 1.5 session as a state machine without I/O: datagrams in, next datagram or
//! session out.
//!
//! ```text
//! Challenging -- Get Session Challenge             --> Activating
//! Activating  -- Activate Session, authenticated   --> a session
//! any         -- another completion code           --> refused
//! ```
//! An unexpected datagram is an error and does not change the state.

use super::Login;
use crate::command::session::{ActivateSession, Challenge, GetChallenge};
use crate::crypto::{BLOCK, LegacyKey};
use crate::message::{Command, request, response};
use crate::packet::{Packet, legacy, signed};
use crate::session::Session;
use crate::{CompletionCode, Malformed, Refusal};

/// Random values of one setup.
#[derive(Clone)]
pub struct LegacySeed {
    /// Request sequence number, six bits.
    pub sequence: u8,
    /// Session sequence number of the first packet from the BMC. 0, which is reserved, becomes 1.
    pub from_bmc: u32,
}

/// Result of a step.
pub enum LegacyProgress {
    /// The next message is ready: send the result of [`LegacyHandshake::transmit`].
    Next,
    /// The session is open.
    Open(Box<Session>),
    /// The BMC refused the step.
    Refused(Refusal),
    /// The BMC opened a session whose packets are not authenticated.
    Unauthenticated {
        /// Datagram that closes the session. To be sent once.
        farewell: Vec<u8>,
    },
}

/// Single attempt to open a session of IPMI 1.5.
pub struct LegacyHandshake {
    username: [u8; 16],
    key: LegacyKey,
    seed: LegacySeed,
    /// Challenge of the BMC; `None` before it.
    challenge: Option<Challenge>,
}

impl LegacyHandshake {
    /// Creates an attempt; `None` if the password is too long for IPMI 1.5.
    pub fn new(login: &Login, seed: LegacySeed) -> Option<Self> {
        let mut username = [0; 16];
        let name = login.username.as_bytes();
        username.get_mut(..name.len())?.copy_from_slice(name);
        let seed = LegacySeed { from_bmc: seed.from_bmc.max(1), ..seed };
        Some(Self { username, key: login.legacy_key()?, seed, challenge: None })
    }

    /// Returns the name of the pending request, for messages to people.
    pub fn step(&self) -> &'static str {
        match self.challenge {
            None => GetChallenge::NAME,
            Some(_) => ActivateSession::NAME,
        }
    }

    /// Returns true after the BMC accepted the user name.
    pub fn is_activating(&self) -> bool {
        self.challenge.is_some()
    }

    fn challenging(&self) -> GetChallenge {
        GetChallenge { username: self.username }
    }

    fn activating(&self, challenge: Challenge) -> ActivateSession {
        ActivateSession { challenge: challenge.bytes, from_bmc: self.seed.from_bmc }
    }

    /// Returns the pending request. A retransmission has identical bytes.
    pub fn transmit(&self) -> Vec<u8> {
        match self.challenge {
            None => legacy(&request(&self.challenging(), self.seed.sequence).0),
            Some(challenge) => {
                let (message, _) = request(&self.activating(challenge), self.seed.sequence);
                signed(&self.key, (challenge.temporary_id, 0), &message)
            }
        }
    }

    /// Processes a datagram from the BMC.
    ///
    /// # Errors
    /// The datagram is not the answer to the last request; the state does not change.
    pub fn receive(&mut self, datagram: &[u8]) -> Result<LegacyProgress, Malformed> {
        let Packet::Legacy(packet) = Packet::parse(datagram)? else {
            return Err(Malformed::Stray("RMCP+ session header"));
        };
        let sequence = self.seed.sequence;
        let Some(challenge) = self.challenge else {
            let command = self.challenging();
            let (code, data) = response(packet.open(0)?, request(&command, sequence).1)?;
            if code != CompletionCode::OK {
                return Ok(LegacyProgress::Refused(Refusal::of::<GetChallenge>(code)));
            }
            self.challenge = Some(command.reply(data)?);
            return Ok(LegacyProgress::Next);
        };
        let command = self.activating(challenge);
        let expected = request(&command, sequence).1;
        let (code, data) = match packet.verified(&self.key) {
            Ok(message) => response(message, expected)?,
            // Some BMCs do not authenticate a refusal.
            Err(unverified) => {
                let message = packet.open(challenge.temporary_id).map_err(|_| unverified)?;
                match response(message, expected)? {
                    (CompletionCode::OK, _) => return Err(unverified),
                    refused => refused,
                }
            }
        };
        if code != CompletionCode::OK {
            return Ok(LegacyProgress::Refused(Refusal::of::<ActivateSession>(code)));
        }
        let activation = command.reply(data)?;
        let (key, from_bmc) = (self.key.clone(), self.seed.from_bmc);
        let mut session = Session::legacy(key, activation.session_id, activation.to_bmc, from_bmc);
        if !activation.is_authenticated {
            let close = session.begin(&session.close());
            let farewell = session.transmit(&close, [0; BLOCK]);
            return Ok(LegacyProgress::Unauthenticated { farewell });
        }
        Ok(LegacyProgress::Open(Box::new(session)))
    }
}

#[cfg(test)]
mod tests;
