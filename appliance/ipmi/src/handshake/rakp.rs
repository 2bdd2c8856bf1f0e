//! Payloads and codes of the key exchange (IPMI 2.0 §13.17 to §13.24, §13.31, §13.32).
//!
//! Names follow the standard: the remote console is the box, the managed system is the BMC. A
//! side's session ID is the ID in packets that this side *receives*.

use zeroize::Zeroizing;

use crate::crypto::{hmac, verify};
use crate::wire::Reader;
use crate::{CipherSuite, Malformed, SessionStatus};

/// Maximum length of a user name, in bytes.
pub const USERNAME_MAX: usize = 16;
/// Maximum length of a password, in bytes.
pub const PASSWORD_MAX: usize = 20;
/// Length of a random number or GUID, in bytes.
const NONCE: usize = 16;

/// Flag of the privilege byte in RAKP message 1: look up the user by name only, not by name and
/// level. An administrator can thus log in with the level operator.
pub const NAME_ONLY_LOOKUP: u8 = 0x10;

/// Returns the algorithm records of Open Session: type, reserved, length, number.
fn proposals(suite: CipherSuite) -> Vec<u8> {
    let [authentication, integrity, confidentiality] = suite.algorithms();
    [(0, authentication), (1, integrity), (2, confidentiality)]
        .into_iter()
        .flat_map(|(kind, number)| [kind, 0, 0, 8, number, 0, 0, 0])
        .collect()
}

/// Encodes an RMCP+ Open Session Request (§13.17).
pub fn open_request(tag: u8, privilege: u8, console_id: u32, suite: CipherSuite) -> Vec<u8> {
    [[tag, privilege, 0, 0].as_slice(), &console_id.to_le_bytes(), &proposals(suite)].concat()
}

/// Common beginning of Open Session Response, RAKP message 2 and RAKP message 4.
#[derive(Debug, Clone)]
pub struct Answer<'a> {
    /// Tag of the message that is answered.
    pub tag: u8,
    /// Status of the step. No data follows a status other than OK.
    pub status: SessionStatus,
    /// Session ID of the console. Some BMCs omit it or send zero in a refusal.
    pub console_id: Option<u32>,
    rest: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Parses the common beginning of an answer.
    ///
    /// # Errors
    /// The payload is too short.
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

    /// Parses an Open Session Response (§13.18), and returns the session ID of the BMC.
    ///
    /// # Errors
    /// The message is too short, or the BMC chose another suite than the proposed `suite`.
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

    /// Parses RAKP message 2 (§13.21): random number, GUID and key exchange code of the BMC.
    ///
    /// # Errors
    /// The message is too short.
    pub fn rakp2(&self, suite: CipherSuite) -> Result<Rakp2, Malformed> {
        let mut reader = Reader::new(self.rest);
        Ok(Rakp2 {
            managed_random: reader.array("managed system random number")?,
            managed_guid: reader.array("managed system GUID")?,
            code: reader.take(suite.key_exchange_len(), "key exchange code")?.to_vec(),
        })
    }

    /// Parses RAKP message 4 (§13.23), and returns the integrity check value.
    ///
    /// # Errors
    /// The message is too short.
    pub fn rakp4(&self, suite: CipherSuite) -> Result<&'a [u8], Malformed> {
        Reader::new(self.rest).take(suite.check_len(), "integrity check value")
    }
}

/// Content of RAKP message 2.
#[derive(Debug, Clone)]
pub struct Rakp2 {
    /// Random number of the BMC (R_C).
    pub managed_random: [u8; NONCE],
    /// GUID of the BMC (GUID_C).
    pub managed_guid: [u8; NONCE],
    /// Key exchange authentication code: proof that the BMC knows the password.
    pub code: Vec<u8>,
}

/// Values that both sides know after RAKP message 2, input of all later codes.
pub struct Exchange {
    /// Cipher suite of the key exchange.
    pub suite: CipherSuite,
    /// Session ID of the console (SID_M).
    pub console_id: u32,
    /// Session ID of the BMC (SID_C).
    pub managed_id: u32,
    /// Random number of the console (R_M).
    pub console_random: [u8; NONCE],
    /// Random number of the BMC (R_C).
    pub managed_random: [u8; NONCE],
    /// GUID of the BMC (GUID_C).
    pub managed_guid: [u8; NONCE],
    /// Privilege byte of RAKP message 1 with the lookup flag (Role_M).
    pub role: u8,
    /// User name, at most [`USERNAME_MAX`] bytes.
    pub username: Vec<u8>,
    /// Password, used as key of the HMACs (K_UID).
    pub key: Zeroizing<Vec<u8>>,
}

impl Exchange {
    /// Encodes RAKP message 1 (§13.20).
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

    /// Encodes RAKP message 3 (§13.22). A status other than OK ends the exchange, without a code.
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

    /// Returns the data that the BMC signs in RAKP message 2 (§13.31).
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

    /// Returns the key exchange code of RAKP message 2, as the BMC computes it.
    pub fn managed_code(&self) -> Zeroizing<Vec<u8>> {
        let ids = [self.console_id.to_le_bytes(), self.managed_id.to_le_bytes()];
        hmac(self.suite, &self.key, &self.managed_parts(&ids, &self.user_len()))
    }

    /// Returns true if `code` of RAKP message 2 proves that the BMC knows the password.
    pub fn verifies_managed(&self, code: &[u8]) -> bool {
        let ids = [self.console_id.to_le_bytes(), self.managed_id.to_le_bytes()];
        code.len() == self.suite.key_exchange_len()
            && verify(self.suite, &self.key, &self.managed_parts(&ids, &self.user_len()), code)
    }

    /// Returns the key exchange code of RAKP message 3: proof that the console knows the password.
    pub fn console_code(&self) -> Zeroizing<Vec<u8>> {
        let id = self.console_id.to_le_bytes();
        let user = self.user_len();
        hmac(self.suite, &self.key, &[&self.managed_random, &id, &user, &self.username])
    }

    /// Returns the session integrity key (§13.31) of a one-key login: K_G is the password.
    pub fn session_integrity_key(&self) -> Zeroizing<Vec<u8>> {
        let user = self.user_len();
        let parts: [&[u8]; 4] = [&self.console_random, &self.managed_random, &user, &self.username];
        hmac(self.suite, &self.key, &parts)
    }

    /// Returns true if `check` proves that the BMC has the same session integrity key (RAKP 4).
    pub fn verifies_check(&self, session_integrity_key: &[u8], check: &[u8]) -> bool {
        let id = self.managed_id.to_le_bytes();
        let parts: [&[u8]; 3] = [&self.console_random, &id, &self.managed_guid];
        check.len() == self.suite.check_len()
            && verify(self.suite, session_integrity_key, &parts, check)
    }
}
