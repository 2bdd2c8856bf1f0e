//! Packets with an IPMI 1.5 session header (IPMI 2.0 table 13-8): without authentication before a
//! session, with MD5 in a session. Nothing is encrypted.

use super::RMCP;
use crate::Malformed;
use crate::crypto::LegacyKey;
use crate::wire::Reader;

/// Numbers of the authentication types (table 22-15). A password in clear text and MD2 are not
/// supported.
const NONE: u8 = 0x00;
const MD5: u8 = 0x02;

/// Parsed IPMI 1.5 packet. The AuthCode is not yet verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Legacy<'a> {
    /// Session sequence number; 0 before the session is active.
    pub sequence: u32,
    /// Session ID that the BMC assigned; 0 before the session.
    pub session_id: u32,
    /// AuthCode by MD5; `None` without authentication.
    code: Option<[u8; 16]>,
    payload: &'a [u8],
}

impl<'a> Legacy<'a> {
    pub(super) fn parse(authentication: u8, mut reader: Reader<'a>) -> Result<Self, Malformed> {
        let sequence = reader.u32("session sequence number")?;
        let session_id = reader.u32("session ID")?;
        let code = match authentication {
            NONE => None,
            MD5 => Some(reader.array("authentication code")?),
            _ => return Err(Malformed::Field("authentication type")),
        };
        let len = reader.byte("payload length")?;
        // A pad byte may follow (table 13-8).
        let payload = reader.take(len.into(), "payload")?;
        Ok(Self { sequence, session_id, code, payload })
    }

    /// Returns the IPMI message of a packet without authentication, outside of a session or with
    /// the session ID of its setup.
    ///
    /// # Errors
    /// The packet belongs to another session.
    pub fn open(&self, setup_id: u32) -> Result<&'a [u8], Malformed> {
        match self.code {
            None if self.session_id == 0 || self.session_id == setup_id => Ok(self.payload),
            _ => Err(Malformed::Stray("session ID")),
        }
    }

    /// Returns the IPMI message of a packet that was authenticated with `key`.
    ///
    /// # Errors
    /// The packet has no AuthCode, or a wrong one.
    pub fn verified(&self, key: &LegacyKey) -> Result<&'a [u8], Malformed> {
        let code = self.code.ok_or(Malformed::Unverified("packet without authentication"))?;
        match key.verifies(self.session_id, self.sequence, self.payload, &code) {
            true => Ok(self.payload),
            false => Err(Malformed::Unverified("authentication code")),
        }
    }
}

/// Encodes a datagram without session. `message` has at most 255 bytes.
pub fn legacy(message: &[u8]) -> Vec<u8> {
    encode(NONE, (0, 0), &[], message)
}

/// Encodes a datagram of the session with this ID and session sequence number.
pub fn signed(key: &LegacyKey, (session_id, sequence): (u32, u32), message: &[u8]) -> Vec<u8> {
    encode(MD5, (session_id, sequence), &key.code(session_id, sequence, message), message)
}

fn encode(kind: u8, (session_id, sequence): (u32, u32), code: &[u8], message: &[u8]) -> Vec<u8> {
    let len = u8::try_from(message.len()).expect("requests are shorter than 40 bytes");
    let (sequence, session_id) = (sequence.to_le_bytes(), session_id.to_le_bytes());
    [RMCP.as_slice(), &[kind], &sequence, &session_id, code, &[len], message].concat()
}
