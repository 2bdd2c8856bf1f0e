//! Commands that find out about a session, set its privilege and close it (IPMI 2.0 §22).

use super::{APP, Command, Malformed, Reader};

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
        // The channel this arrives on, IPMI payloads, listed by suite.
        vec![0x0E, 0x00, 0x80 | (self.slice & 0x3F)]
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
