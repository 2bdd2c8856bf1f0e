//! TFTP packets (RFC 1350 section 5, options RFC 2347), from and to bytes.

use std::fmt::Write as _;

/// The longest file name that is looked at; ROMs are handed theirs by DHCP in 128 bytes.
const MAX_NAME: usize = 255;
/// Options in one request that are looked at.
const MAX_OPTIONS: usize = 16;

/// RFC 1350 section 5: error codes, and RFC 2347's 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Code {
    /// See the text.
    Undefined = 0,
    /// No such file.
    NotFound = 1,
    /// Access violation: writes.
    Access = 2,
    /// Illegal operation.
    Illegal = 4,
    /// Unknown transfer.
    UnknownTransfer = 5,
    /// Options refused.
    Options = 8,
}

/// A packet, its text borrowed from the datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet<'a> {
    /// RRQ.
    Read(Request<'a>),
    /// WRQ.
    Write,
    /// DATA.
    Data {
        /// Its number, modulo 65536.
        block: u16,
        /// Up to the block size.
        payload: &'a [u8],
    },
    /// ACK of a block and all before it.
    Ack(u16),
    /// ERROR.
    Error {
        /// See [`Code`].
        code: u16,
        /// What went wrong, in English.
        message: &'a str,
    },
    /// OACK.
    OptionAck(Options),
}

/// A read request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// The name as sent.
    pub file: &'a str,
    /// Whether bytes are wanted as they are (`octet`).
    pub octet: bool,
    /// What it proposes.
    pub options: Options,
}

/// The options this server knows, each absent unless it was said with a lawful value: RFC 2347
/// has a server leave out what it does not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Bytes in a block, 8 to 65464 (RFC 2348).
    pub blksize: Option<u16>,
    /// Size of the file, 0 when asked (RFC 2349).
    pub tsize: Option<u64>,
    /// Seconds between retransmissions, 1 to 255 (RFC 2349).
    pub timeout: Option<u8>,
    /// Blocks in a window, 1 to 65535 (RFC 7440).
    pub windowsize: Option<u16>,
}

/// A datagram that is no TFTP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than the shortest packet of its kind.
    #[error("the packet ends too early")]
    Short,
    /// An operation code that RFC 1350 and 2347 do not have.
    #[error("{0} is no TFTP operation")]
    Operation(u16),
    /// Text without its zero byte, too long, or not UTF-8.
    #[error("the packet's text cannot be read")]
    Text,
}

impl<'a> Packet<'a> {
    /// Reads one datagram.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (operation, rest) = number(bytes)?;
        match operation {
            1 => Request::parse(rest).map(Self::Read),
            2 => Ok(Self::Write),
            3 => number(rest).map(|(block, payload)| Self::Data { block, payload }),
            4 => number(rest).map(|(block, _)| Self::Ack(block)),
            5 => {
                let (code, rest) = number(rest)?;
                // Some ROMs forget the zero byte, some the text: neither makes the error unsaid.
                let end = rest.iter().position(|&b| b == 0).unwrap_or(rest.len());
                let message = std::str::from_utf8(&rest[..end]).unwrap_or("");
                Ok(Self::Error { code, message })
            }
            6 => Options::parse(rest).map(Self::OptionAck),
            other => Err(Malformed::Operation(other)),
        }
    }
}

impl<'a> Request<'a> {
    fn parse(rest: &'a [u8]) -> Result<Self, Malformed> {
        let (file, rest) = text(rest)?;
        let (mode, rest) = text(rest)?;
        if file.len() > MAX_NAME {
            return Err(Malformed::Text);
        }
        Ok(Self { file, octet: mode.eq_ignore_ascii_case("octet"), options: Options::parse(rest)? })
    }
}

impl Options {
    /// Reads name and value pairs. A value out of its range counts as not said. The first of two
    /// equal names counts. Bytes behind the last whole pair (some ROMs pad) are not looked at.
    fn parse(mut rest: &[u8]) -> Result<Self, Malformed> {
        let mut options = Self::default();
        for _ in 0..MAX_OPTIONS {
            let Ok((name, after)) = text(rest) else { break };
            let Ok((value, after)) = text(after) else { break };
            rest = after;
            let number = value.parse::<u64>().ok();
            let within = |low, high| number.filter(|n| (low..=high).contains(n));
            if name.eq_ignore_ascii_case("blksize") {
                options.blksize =
                    options.blksize.or(within(8, 65464).and_then(|n| n.try_into().ok()));
            } else if name.eq_ignore_ascii_case("tsize") {
                options.tsize = options.tsize.or(number);
            } else if name.eq_ignore_ascii_case("timeout") {
                options.timeout =
                    options.timeout.or(within(1, 255).and_then(|n| n.try_into().ok()));
            } else if name.eq_ignore_ascii_case("windowsize") {
                options.windowsize =
                    options.windowsize.or(within(1, 65535).and_then(|n| n.try_into().ok()));
            }
        }
        Ok(options)
    }

    /// Whether anything is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// An OACK that says these.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut text = String::new();
        let mut say = |name: &str, value: Option<u64>| {
            if let Some(value) = value {
                // Writing to a String cannot fail.
                let _ = write!(text, "{name}\0{value}\0");
            }
        };
        say("blksize", self.blksize.map(u64::from));
        say("tsize", self.tsize);
        say("timeout", self.timeout.map(u64::from));
        say("windowsize", self.windowsize.map(u64::from));
        [&6_u16.to_be_bytes(), text.as_bytes()].concat()
    }
}

/// What stands before a DATA packet's payload.
pub fn data_head(block: u64) -> [u8; 4] {
    let [_, _, _, _, _, _, high, low] = block.to_be_bytes();
    [0, 3, high, low]
}

/// The bytes of an ERROR packet.
pub fn error(code: Code, message: &str) -> Vec<u8> {
    let code = (code as u16).to_be_bytes();
    [&5_u16.to_be_bytes(), &code[..], message.as_bytes(), &[0]].concat()
}

fn number(bytes: &[u8]) -> Result<(u16, &[u8]), Malformed> {
    let (head, rest) = bytes.split_first_chunk::<2>().ok_or(Malformed::Short)?;
    Ok((u16::from_be_bytes(*head), rest))
}

fn text(bytes: &[u8]) -> Result<(&str, &[u8]), Malformed> {
    let end = bytes.iter().position(|&b| b == 0).ok_or(Malformed::Text)?;
    let text = std::str::from_utf8(&bytes[..end]).map_err(|_| Malformed::Text)?;
    Ok((text, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests;
