//! Packet formats: RMCP header, then the IPMI 1.5 or the RMCP+ session header (IPMI 2.0 §13.6).
//!
//! ```text
//! 06 00 ff 07                      RMCP: version, reserved, no ACK, class IPMI
//! 00 or 02 <sequence 4> <session 4> [<AuthCode 16>] <length 1> payload   IPMI 1.5
//! 06 <type> <session 4> <sequence 4> <length 2> payload [<trailer>]       RMCP+
//! trailer: pad ff.. to 4 · pad length · 07 · AuthCode over 06 .. 07
//! ```

mod legacy;

pub use self::legacy::{Legacy, legacy, signed};
use crate::Malformed;
use crate::crypto::SessionKeys;
use crate::wire::Reader;

/// Maximum length of a received datagram, in bytes; over four times the longest sent message.
pub const MAX_DATAGRAM: usize = 1024;

const RMCP: [u8; 4] = [0x06, 0x00, 0xFF, 0x07];
const AUTH_RMCP_PLUS: u8 = 0x06;
const NEXT_HEADER: u8 = 0x07;
const ENCRYPTED: u8 = 0x80;
const AUTHENTICATED: u8 = 0x40;
const TYPE_MASK: u8 = 0x3F;

/// Payload type of a packet (IPMI 2.0 table 13-16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadType {
    /// IPMI message, request or response.
    Message,
    /// Serial-over-LAN (IPMI 2.0 §15).
    Sol,
    /// RMCP+ Open Session Request.
    OpenRequest,
    /// RMCP+ Open Session Response.
    OpenResponse,
    /// RAKP message 1 of the key exchange.
    Rakp1,
    /// RAKP message 2 of the key exchange.
    Rakp2,
    /// RAKP message 3 of the key exchange.
    Rakp3,
    /// RAKP message 4 of the key exchange.
    Rakp4,
}

impl PayloadType {
    const ALL: [Self; 8] = [
        Self::Message,
        Self::Sol,
        Self::OpenRequest,
        Self::OpenResponse,
        Self::Rakp1,
        Self::Rakp2,
        Self::Rakp3,
        Self::Rakp4,
    ];

    /// Returns the number of the payload type on the wire.
    pub fn number(self) -> u8 {
        match self {
            Self::Message => 0x00,
            Self::Sol => 0x01,
            Self::OpenRequest => 0x10,
            Self::OpenResponse => 0x11,
            Self::Rakp1 => 0x12,
            Self::Rakp2 => 0x13,
            Self::Rakp3 => 0x14,
            Self::Rakp4 => 0x15,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|payload| payload.number() == number)
    }
}

/// Parsed datagram. The lengths are checked, the content is not yet verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Packet with an IPMI 1.5 session header, also for requests before a session of IPMI 2.0.
    Legacy(Legacy<'a>),
    /// Packet with an RMCP+ session header.
    Plus(Plus<'a>),
}

/// IPMI 2.0 packet (RMCP+).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plus<'a> {
    /// Type of the payload.
    pub payload_type: PayloadType,
    /// True if the payload is encrypted.
    pub encrypted: bool,
    /// True if the packet has an AuthCode.
    pub authenticated: bool,
    /// Session ID of the receiver; 0 before the session is open.
    pub session_id: u32,
    /// Session sequence number; 0 before the session is open.
    pub sequence: u32,
    /// Payload as received, possibly encrypted.
    pub payload: &'a [u8],
    /// Bytes from the authentication type to the end of the datagram.
    whole: &'a [u8],
    trailer: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Parses a datagram and checks its header and lengths.
    ///
    /// # Errors
    /// The datagram is not RMCP with an IPMI 1.5 or RMCP+ session header.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        if datagram.len() > MAX_DATAGRAM {
            return Err(Malformed::Field("length of the datagram"));
        }
        let mut reader = Reader::new(datagram);
        let [version, _, _, class] = reader.array("RMCP header")?;
        if version != RMCP[0] || class != RMCP[3] {
            return Err(Malformed::Field("RMCP header"));
        }
        let whole = reader.rest();
        match reader.byte("authentication type")? {
            AUTH_RMCP_PLUS => Plus::parse(whole, reader).map(Self::Plus),
            authentication => Legacy::parse(authentication, reader).map(Self::Legacy),
        }
    }
}

impl<'a> Plus<'a> {
    fn parse(whole: &'a [u8], mut reader: Reader<'a>) -> Result<Self, Malformed> {
        let kind = reader.byte("payload type")?;
        let payload_type =
            PayloadType::from_number(kind & TYPE_MASK).ok_or(Malformed::Field("payload type"))?;
        let session_id = reader.u32("session ID")?;
        let sequence = reader.u32("session sequence number")?;
        let len = reader.u16("payload length")?;
        let payload = reader.take(len.into(), "payload")?;
        Ok(Self {
            payload_type,
            encrypted: kind & ENCRYPTED != 0,
            authenticated: kind & AUTHENTICATED != 0,
            session_id,
            sequence,
            payload,
            whole,
            trailer: reader.rest(),
        })
    }

    /// Verifies and decrypts the payload of a packet that was signed and encrypted with `keys`.
    ///
    /// # Errors
    /// The packet is not encrypted and signed, the AuthCode is wrong, or a length is invalid.
    pub fn open(&self, keys: &SessionKeys) -> Result<Vec<u8>, Malformed> {
        if !self.authenticated || !self.encrypted {
            return Err(Malformed::Unverified("packet without authentication and encryption"));
        }
        let short = Malformed::Short("session trailer");
        let code_at = self.whole.len().checked_sub(keys.suite().check_len()).ok_or(short)?;
        let (signed, code) = self.whole.split_at(code_at);
        if !keys.verify(signed, code) {
            return Err(Malformed::Unverified("authentication code"));
        }
        let pads = self.trailer.len().checked_sub(code.len() + 2).ok_or(short)?;
        if self.trailer.get(pads).map(|len| usize::from(*len)) != Some(pads) {
            return Err(Malformed::Field("integrity pad length"));
        }
        keys.decrypt(self.payload)
    }
}

/// Encodes an RMCP+ datagram for the session setup: no ID, no sequence number, no AuthCode.
pub fn plain(payload_type: PayloadType, payload: &[u8]) -> Vec<u8> {
    [RMCP.as_slice(), &header(payload_type.number(), 0, 0, payload)].concat()
}

/// Encodes an RMCP+ datagram of a session, encrypted and signed. `iv` as in
/// [`SessionKeys::encrypt`].
pub fn sealed(
    keys: &SessionKeys,
    (session_id, sequence): (u32, u32),
    iv: [u8; 16],
    payload_type: PayloadType,
    payload: &[u8],
) -> Vec<u8> {
    let kind = payload_type.number() | ENCRYPTED | AUTHENTICATED;
    let mut signed = header(kind, session_id, sequence, &keys.encrypt(iv, payload));
    let pad = (4 - (signed.len() + 2) % 4) % 4;
    signed.extend(std::iter::repeat_n(0xFF, pad));
    signed.extend([pad as u8, NEXT_HEADER]);
    [RMCP.as_slice(), &signed, &keys.sign(&signed)].concat()
}

fn header(kind: u8, session_id: u32, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).expect("our payloads are short");
    let mut bytes = vec![AUTH_RMCP_PLUS, kind];
    bytes.extend(session_id.to_le_bytes());
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(len.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}
