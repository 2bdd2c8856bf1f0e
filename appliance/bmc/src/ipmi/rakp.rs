//! The key exchange's payloads and codes (IPMI 2.0 §13.17 to §13.24, §13.31, §13.32).
//!
//! Names follow the standard: the remote console is we, the managed system is the BMC. Each side's
//! session ID is the one that the *other* puts into the packets it sends.

use zeroize::Zeroizing;

use super::crypto::{hmac, verify};
use super::wire::Reader;
use super::{Malformed, SessionStatus};
use crate::CipherSuite;

/// Longest user name, in bytes.
pub const USERNAME_MAX: usize = 16;
/// Longest password, in bytes.
pub const PASSWORD_MAX: usize = 20;
/// Bytes of a random number or GUID.
const NONCE: usize = 16;

/// Flag of RAKP's privilege byte that looks up the user by name alone, not by name and level: then
/// an administrator may log in as an operator.
pub const NAME_ONLY_LOOKUP: u8 = 0x10;

/// The algorithm records of Open Session: type, reserved, length, number.
fn proposals(suite: CipherSuite) -> Vec<u8> {
    let [authentication, integrity, confidentiality] = suite.algorithms();
    [(0, authentication), (1, integrity), (2, confidentiality)]
        .into_iter()
        .flat_map(|(kind, number)| [kind, 0, 0, 8, number, 0, 0, 0])
        .collect()
}

/// RMCP+ Open Session Request (§13.17).
pub fn open_request(tag: u8, privilege: u8, console_id: u32, suite: CipherSuite) -> Vec<u8> {
    [[tag, privilege, 0, 0].as_slice(), &console_id.to_le_bytes(), &proposals(suite)].concat()
}

/// Beginning of every answer of the key exchange: tag, session ID and status.
#[derive(Debug, Clone)]
pub struct Answer<'a> {
    /// The tag of the message answered.
    pub tag: u8,
    /// Result of the step; unless OK, no data follows.
    pub status: SessionStatus,
    /// Our session ID. Some BMCs leave it out or zero when they refuse.
    pub console_id: Option<u32>,
    rest: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Read the part common to Open Session Response and RAKP messages 2 and 4.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let [tag, status] = reader.array("message tag and status")?;
        let status = SessionStatus(status);
        let console_id = match reader.take(2, "reserved").and_then(|_| reader.u32("session ID")) {
            Ok(id) => Some(id),
            Err(error) if status == SessionStatus::OK => return Err(error),
            Err(_) => None,
        };
        Ok(Self { tag, status, console_id, rest: reader.rest() })
    }

    /// Open Session Response (§13.18): the BMC's session ID, given that it took exactly `suite`.
    ///
    /// # Errors
    /// [`Malformed`] when short, or when another suite came back than the only one proposed.
    pub fn open_response(&self, suite: CipherSuite) -> Result<u32, Malformed> {
        let mut reader = Reader::new(self.rest);
        let managed_id = reader.u32("managed system session ID")?;
        let records = reader.take(24, "algorithms")?;
        let chosen = [records[4], records[12], records[20]].map(|number| number & 0x3F);
        if managed_id == 0 {
            return Err(Malformed::Field("managed system session ID"));
        }
        if chosen != suite.algorithms() {
            return Err(Malformed::Field("algorithms: not those proposed"));
        }
        Ok(managed_id)
    }

    /// RAKP message 2 (§13.21): the BMC's random number, GUID and key exchange code.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn rakp2(&self, suite: CipherSuite) -> Result<Rakp2, Malformed> {
        let mut reader = Reader::new(self.rest);
        Ok(Rakp2 {
            managed_random: reader.array("managed system random number")?,
            managed_guid: reader.array("managed system GUID")?,
            code: reader.take(suite.key_exchange_len(), "key exchange code")?.to_vec(),
        })
    }

    /// RAKP message 4 (§13.23): the check value.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn rakp4(&self, suite: CipherSuite) -> Result<&'a [u8], Malformed> {
        Reader::new(self.rest).take(suite.check_len(), "integrity check value")
    }
}

/// Content of RAKP message 2.
#[derive(Debug, Clone)]
pub struct Rakp2 {
    /// R_C, the random number of the BMC.
    pub managed_random: [u8; NONCE],
    /// GUID_C, the GUID of the BMC.
    pub managed_guid: [u8; NONCE],
    /// Proof that the BMC knows the password.
    pub code: Vec<u8>,
}

/// Everything both sides know once RAKP message 2 is through, and the codes made of it.
pub struct Exchange {
    /// The suite in use.
    pub suite: CipherSuite,
    /// SID_M, our session ID.
    pub console_id: u32,
    /// SID_C, the session ID of the BMC.
    pub managed_id: u32,
    /// R_M, our random number.
    pub console_random: [u8; NONCE],
    /// R_C, the random number of the BMC.
    pub managed_random: [u8; NONCE],
    /// GUID_C, the GUID of the BMC.
    pub managed_guid: [u8; NONCE],
    /// Role_M: the privilege byte of RAKP message 1, lookup bit and all.
    pub role: u8,
    /// User name, at most [`USERNAME_MAX`] bytes.
    pub username: Vec<u8>,
    /// K_UID, the key made from the password.
    pub key: Zeroizing<Vec<u8>>,
}

impl Exchange {
    /// RAKP message 1 (§13.20).
    pub fn rakp1(
        tag: u8,
        managed_id: u32,
        console_random: &[u8; NONCE],
        role: u8,
        username: &[u8],
    ) -> Vec<u8> {
        [
            [tag, 0, 0, 0].as_slice(),
            &managed_id.to_le_bytes(),
            console_random,
            &[role, 0, 0, username.len() as u8],
            username,
        ]
        .concat()
    }

    /// RAKP message 3 (§13.22). With another status than OK it ends the exchange and proves
    /// nothing.
    pub fn rakp3(&self, tag: u8, status: SessionStatus) -> Vec<u8> {
        let code = match status {
            SessionStatus::OK => self.console_code(),
            _ => Zeroizing::default(),
        };
        let head = [tag, status.0, 0, 0];
        [head.as_slice(), &self.managed_id.to_le_bytes(), &code].concat()
    }

    fn user_len(&self) -> [u8; 2] {
        [self.role, self.username.len() as u8]
    }

    /// Data that the BMC signs in RAKP message 2 (§13.31).
    fn managed_parts<'a>(&'a self, ids: &'a [[u8; 4]; 2], user: &'a [u8; 2]) -> [&'a [u8]; 7] {
        [
            &ids[0],
            &ids[1],
            &self.console_random,
            &self.managed_random,
            &self.managed_guid,
            user,
            &self.username,
        ]
    }

    /// The key exchange code of RAKP message 2, as the BMC makes it.
    pub fn managed_code(&self) -> Zeroizing<Vec<u8>> {
        let ids = [self.console_id.to_le_bytes(), self.managed_id.to_le_bytes()];
        hmac(self.suite, &self.key, &self.managed_parts(&ids, &self.user_len()))
    }

    /// True if the BMC knows the password.
    pub fn verifies_managed(&self, code: &[u8]) -> bool {
        let ids = [self.console_id.to_le_bytes(), self.managed_id.to_le_bytes()];
        code.len() == self.suite.key_exchange_len()
            && verify(self.suite, &self.key, &self.managed_parts(&ids, &self.user_len()), code)
    }

    /// The key exchange code of RAKP message 3: proof that we know the password.
    pub fn console_code(&self) -> Zeroizing<Vec<u8>> {
        let id = self.console_id.to_le_bytes();
        let user = self.user_len();
        hmac(self.suite, &self.key, &[&self.managed_random, &id, &user, &self.username])
    }

    /// The session integrity key (§13.31), one-key log-in: K_G is the password.
    pub fn session_integrity_key(&self) -> Zeroizing<Vec<u8>> {
        let user = self.user_len();
        let parts: [&[u8]; 4] = [&self.console_random, &self.managed_random, &user, &self.username];
        hmac(self.suite, &self.key, &parts)
    }

    /// True if RAKP message 4 proves that the BMC made the same session integrity key.
    pub fn verifies_check(&self, session_integrity_key: &[u8], check: &[u8]) -> bool {
        let id = self.managed_id.to_le_bytes();
        let parts: [&[u8]; 3] = [&self.console_random, &id, &self.managed_guid];
        check.len() == self.suite.check_len()
            && verify(self.suite, session_integrity_key, &parts, check)
    }
}
