//! Parses and writes TFTP packets (RFC 1350 section 5, options RFC 2347).

use std::fmt::Write as _;

/// Longest file name that is accepted, in bytes. DHCP's `file` field has 128 bytes.
const MAX_NAME: usize = 255;
/// Maximum options of a request that are parsed; further ones are ignored.
const MAX_OPTIONS: usize = 16;

/// TFTP error codes: RFC 1350 section 5, and code 8 of RFC 2347.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Code {
    /// Error without a code of its own; the message text has the reason.
    Undefined = 0,
    /// File not found (RFC 1350).
    NotFound = 1,
    /// Access violation (RFC 1350): the answer to every write request.
    Access = 2,
    /// Illegal TFTP operation (RFC 1350): a request that could not be parsed.
    Illegal = 4,
    /// Unknown transfer ID (RFC 1350): a packet for a transfer that does not exist.
    UnknownTransfer = 5,
    /// Option negotiation failed (RFC 2347).
    Options = 8,
}

/// TFTP packet; its text is borrowed from the datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Read request (RRQ, opcode 1).
    Read(Request<'a>),
    /// Write request (WRQ, opcode 2). File name and options are not parsed: every write is refused.
    Write,
    /// Data block (DATA, opcode 3).
    Data {
        /// Block number, modulo 65536.
        block: u16,
        /// File bytes, at most the block size.
        payload: &'a [u8],
    },
    /// Acknowledgment (ACK, opcode 4) of a block and of all blocks before it.
    Ack(u16),
    /// Error report (ERROR, opcode 5), which ends the transfer.
    Error {
        /// Error code, see [`Code`]; clients also send codes that [`Code`] does not list.
        code: u16,
        /// Error text in English; empty when the datagram has none or the text is not UTF-8.
        message: &'a str,
    },
    /// Option acknowledgment (OACK, opcode 6, RFC 2347).
    OptionAck(Options),
}

/// Read request (RRQ) of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// File name as sent, not normalized.
    pub file: &'a str,
    /// True for the mode `octet`; the server refuses every other mode.
    pub octet: bool,
    /// Options that the client proposes (RFC 2347).
    pub options: Options,
}

/// TFTP options that this server supports. An option is absent unless the packet has a valid value
/// for it: a server leaves out options that it does not accept (RFC 2347).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Block size in bytes, 8 to 65464 (RFC 2348).
    pub blksize: Option<u16>,
    /// File size in bytes; 0 in a request (RFC 2349).
    pub tsize: Option<u64>,
    /// Seconds between retransmissions, 1 to 255 (RFC 2349).
    pub timeout: Option<u8>,
    /// Blocks in a window, 1 to 65535 (RFC 7440).
    pub windowsize: Option<u16>,
}

/// Datagram that is not a valid TFTP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The datagram is shorter than the shortest packet of its opcode.
    #[error("the packet ends too early")]
    Short,
    /// The opcode is defined by neither RFC 1350 nor RFC 2347.
    #[error("{0} is not a TFTP opcode")]
    Operation(u16),
    /// A text has no terminating zero byte, exceeds 255 bytes, or is not UTF-8.
    #[error("a string of the packet has no terminating zero byte, is not UTF-8, or is too long")]
    Text,
}

impl<'a> Packet<'a> {
    /// Parses one datagram. Bytes after the packet's last field are ignored.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (operation, rest) = number(bytes)?;
        match operation {
            1 => Request::parse(rest).map(Self::Read),
            2 => Ok(Self::Write),
            3 => number(rest).map(|(block, payload)| Self::Data { block, payload }),
            4 => number(rest).map(|(block, _)| Self::Ack(block)),
            5 => {
                let (code, rest) = number(rest)?;
                // Some ROMs omit the zero byte, others the text. The packet still counts as an
                // ERROR.
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
    /// Parses name and value pairs. A value out of range counts as absent. Of two options with the
    /// same name, the first counts. Bytes after the last complete pair are ignored, because some
    /// ROMs pad.
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

    /// True if the packet has no supported option.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the bytes of an OACK packet with these options.
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

/// Returns the four header bytes of a DATA packet: opcode 3 and the block number modulo 65536.
pub fn data_head(block: u64) -> [u8; 4] {
    let [_, _, _, _, _, _, high, low] = block.to_be_bytes();
    [0, 3, high, low]
}

/// Returns the bytes of an ERROR packet.
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
