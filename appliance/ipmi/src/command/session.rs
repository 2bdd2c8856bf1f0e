//! Commands that find out about a session, set its privilege and close it (IPMI 2.0 §22).

use super::{APP, Command, Malformed, OPERATOR, Reader};

/// Number of the channel on which the request arrives (IPMI 2.0 table 6-1).
const THIS_CHANNEL: u8 = 0x0E;
/// Number of authentication by MD5 (table 22-15).
const MD5: u8 = 0x02;

/// Set Session Privilege Level (IPMI 2.0 §22.18). A session begins with the privilege "user".
#[derive(Debug, Clone, Copy)]
pub struct SetPrivilege(pub u8);

impl Command for SetPrivilege {
    const NAME: &'static str = "Set Session Privilege Level";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x3B;
    type Reply = ();

    fn data(&self) -> Vec<u8> {
        vec![self.0]
    }

    fn reply(&self, data: &[u8]) -> Result<(), Malformed> {
        match Reader::new(data).byte("privilege level")? & 0x0F {
            level if level >= self.0 => Ok(()),
            _ => Err(Malformed::Field("privilege level")),
        }
    }
}

/// Close Session (IPMI 2.0 §22.19).
#[derive(Debug, Clone, Copy)]
pub struct CloseSession {
    /// Session ID that the BMC assigned.
    pub session_id: u32,
}

impl Command for CloseSession {
    const NAME: &'static str = "Close Session";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x3C;
    type Reply = ();

    fn data(&self) -> Vec<u8> {
        self.session_id.to_le_bytes().to_vec()
    }

    fn reply(&self, _: &[u8]) -> Result<(), Malformed> {
        Ok(())
    }
}

/// Get Channel Cipher Suites (IPMI 2.0 §22.15.1): returns up to 16 bytes of the list.
#[derive(Debug, Clone, Copy)]
pub struct GetCipherSuites {
    /// Index of the 16-byte slice, below [`GetCipherSuites::SLICES`].
    pub slice: u8,
}

impl GetCipherSuites {
    /// Maximum number of slices of a list.
    pub const SLICES: u8 = 0x40;
    /// Length of every slice except the last, in bytes.
    pub const SLICE_LEN: usize = 16;
}

impl Command for GetCipherSuites {
    const NAME: &'static str = "Get Channel Cipher Suites";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x54;
    type Reply = Vec<u8>;

    fn data(&self) -> Vec<u8> {
        // Channel, IPMI payloads, listed by suite.
        vec![THIS_CHANNEL, 0x00, 0x80 | (self.slice & 0x3F)]
    }

    fn reply(&self, data: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut reader = Reader::new(data);
        reader.byte("channel number")?;
        Ok(reader.rest().iter().take(Self::SLICE_LEN).copied().collect())
    }
}

/// Returns the suite numbers in a complete list of cipher suite records (IPMI 2.0 table 22-19). An
/// invalid record ends the list.
pub fn suite_numbers(mut records: &[u8]) -> Vec<u8> {
    let mut numbers = Vec::new();
    while let Some((&start, rest)) = records.split_first() {
        let skipped = match start {
            0xC0 => 0,
            // A suite of the maker's own: its number, and the maker's.
            0xC1 => 3,
            _ => break,
        };
        let Some((&number, rest)) = rest.split_first() else { break };
        if start == 0xC0 {
            numbers.push(number);
        }
        let rest = rest.get(skipped..).unwrap_or_default();
        let algorithms = rest.iter().take_while(|tag| **tag & 0xC0 != 0xC0).count();
        records = &rest[algorithms..];
    }
    numbers
}

/// Get Channel Authentication Capabilities (IPMI 2.0 §22.13), for the privilege level operator.
#[derive(Debug, Clone, Copy)]
pub struct GetAuthCapabilities {
    /// True to request the fields of IPMI 2.0. Some BMCs with IPMI 1.5 refuse such a request.
    pub is_extended: bool,
}

/// Ways to log in to a BMC (IPMI 2.0 table 22-15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthCapabilities {
    /// True if the BMC has sessions of IPMI 2.0.
    pub has_plus: bool,
    /// True if sessions of IPMI 1.5 can be authenticated by MD5.
    pub has_md5: bool,
}

impl Command for GetAuthCapabilities {
    const NAME: &'static str = "Get Channel Authentication Capabilities";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x38;
    type Reply = AuthCapabilities;

    fn data(&self) -> Vec<u8> {
        let extended = if self.is_extended { 0x80 } else { 0 };
        vec![extended | THIS_CHANNEL, OPERATOR]
    }

    fn reply(&self, data: &[u8]) -> Result<AuthCapabilities, Malformed> {
        let [_, types, _, versions] = Reader::new(data).array("authentication capabilities")?;
        Ok(AuthCapabilities {
            has_plus: types & 0x80 != 0 && versions & 0x02 != 0,
            has_md5: types & 0x04 != 0,
        })
    }
}

/// Get Session Challenge (IPMI 2.0 §22.16), for authentication by MD5.
#[derive(Debug, Clone)]
pub struct GetChallenge {
    /// User name, filled with zeros.
    pub username: [u8; 16],
}

/// Challenge of a BMC (IPMI 2.0 table 22-21).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Challenge {
    /// Session ID of the request that follows.
    pub temporary_id: u32,
    /// Bytes that the request has to repeat, authenticated.
    pub bytes: [u8; 16],
}

impl Command for GetChallenge {
    const NAME: &'static str = "Get Session Challenge";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x39;
    type Reply = Challenge;

    fn data(&self) -> Vec<u8> {
        [[MD5].as_slice(), &self.username].concat()
    }

    fn reply(&self, data: &[u8]) -> Result<Challenge, Malformed> {
        let mut reader = Reader::new(data);
        let temporary_id = reader.u32("temporary session ID")?;
        let bytes = reader.array("challenge")?;
        match temporary_id {
            0 => Err(Malformed::Field("temporary session ID")),
            _ => Ok(Challenge { temporary_id, bytes }),
        }
    }
}

/// Activate Session (IPMI 2.0 §22.17), with the privilege level operator as the highest.
#[derive(Debug, Clone)]
pub struct ActivateSession {
    /// Bytes of the [`Challenge`].
    pub challenge: [u8; 16],
    /// Session sequence number of the first packet from the BMC; not 0.
    pub from_bmc: u32,
}

/// Session of IPMI 1.5 that a BMC opened (IPMI 2.0 table 22-22).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activation {
    /// True if every later packet is authenticated by MD5.
    pub is_authenticated: bool,
    /// Session ID of the packets in both directions.
    pub session_id: u32,
    /// Session sequence number of the first packet to the BMC.
    pub to_bmc: u32,
}

impl Command for ActivateSession {
    const NAME: &'static str = "Activate Session";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x3A;
    type Reply = Activation;

    fn data(&self) -> Vec<u8> {
        [[MD5, OPERATOR].as_slice(), &self.challenge, &self.from_bmc.to_le_bytes()].concat()
    }

    fn reply(&self, data: &[u8]) -> Result<Activation, Malformed> {
        let mut reader = Reader::new(data);
        let authentication = reader.byte("authentication type")? & 0x0F;
        let session_id = reader.u32("session ID")?;
        let to_bmc = reader.u32("session sequence number")?;
        match session_id {
            0 => Err(Malformed::Field("session ID")),
            _ => Ok(Activation { is_authenticated: authentication == MD5, session_id, to_bmc }),
        }
    }
}
