//! Decoding of a client's message, with checks of all values that an answer depends on.

use std::net::Ipv4Addr;

use stdx::MacAddr;

use crate::messages::client::Client;
use crate::messages::options::{Options, code};

/// Offset of the options: after 236 bytes of BOOTP header (RFC 951) and RFC 2131 §3's cookie.
pub(crate) const OPTIONS_AT: usize = 240;
pub(crate) const COOKIE: [u8; 4] = [99, 130, 83, 99];
pub(crate) const BOOTREQUEST: u8 = 1;
const ETHERNET: [u8; 2] = [1, 6];

/// Maximum bytes of a client identifier or relay information to echo; an option holds 255.
const MAX_ECHO: usize = 255;

/// Sub-option "link selection" of option 82 (RFC 3527 §3).
const LINK_SELECTION: u8 = 5;

/// Reason why a datagram is not a client's DHCP message over Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The datagram is shorter than header and cookie.
    #[error("the message has {0} bytes, too few for a DHCP header")]
    Short(usize),
    /// The first byte is not 1 (BOOTREQUEST): a server's message, or another protocol.
    #[error("the message is not from a client (op {0})")]
    NotRequest(u8),
    /// The hardware address is not a 6-byte Ethernet address, or is zero or a group address.
    #[error("the message has no Ethernet address")]
    Hardware,
    /// The magic cookie is missing: plain BOOTP, or another protocol.
    #[error("the message has no DHCP cookie")]
    Cookie,
    /// The length of this option is not valid.
    #[error("option {0} of the message has an invalid length")]
    Option(u8),
    /// Option 53 is missing, unknown, or a server's message type.
    #[error("the message has no message type of a client")]
    Kind,
}

/// Message type of a client (option 53).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Discover,
    Request,
    Decline,
    Release,
    Inform,
}

impl Kind {
    fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Discover),
            3 => Some(Self::Request),
            4 => Some(Self::Decline),
            7 => Some(Self::Release),
            8 => Some(Self::Inform),
            _ => None,
        }
    }
}

/// Decoded message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub kind: Kind,
    pub xid: [u8; 4],
    /// Flags as received, copied to the answer; bit 15 requests broadcast replies.
    pub flags: u16,
    /// Address that the client already uses, or 0.0.0.0.
    pub ciaddr: Ipv4Addr,
    /// Address of the relay agent, or 0.0.0.0.
    pub giaddr: Ipv4Addr,
    pub mac: MacAddr,
    /// Requested address (option 50).
    pub requested: Option<Ipv4Addr>,
    /// Server identifier (option 54).
    pub server_id: Option<Ipv4Addr>,
    /// Maximum message size (option 57).
    pub max_size: Option<u16>,
    /// Client identifier (option 61), echoed (RFC 6842).
    pub client_id: Option<Vec<u8>>,
    /// Relay agent information (option 82), echoed (RFC 3046 §2.2).
    pub relay_agent: Option<Vec<u8>>,
    /// Address in the client's network, from the relay's link selection (option 82.5, RFC 3527).
    pub link_selection: Option<Ipv4Addr>,
    /// Subnet that the client selects (option 118, RFC 3011), echoed.
    pub subnet_selection: Option<Ipv4Addr>,
    requested_options: Codes,
    pub client: Client,
}

impl Request {
    /// Decodes one UDP payload.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; OPTIONS_AT] = bytes.first_chunk().ok_or(Malformed::Short(bytes.len()))?;
        if header[0] != BOOTREQUEST {
            return Err(Malformed::NotRequest(header[0]));
        }
        if header[1..3] != ETHERNET {
            return Err(Malformed::Hardware);
        }
        if header[236..] != COOKIE {
            return Err(Malformed::Cookie);
        }
        let mac = interface_address(header)?;
        let options = Options::read(&bytes[OPTIONS_AT..], &header[108..236], &header[44..108])?;
        let kind = options
            .array::<1>(code::MESSAGE_TYPE)?
            .and_then(|[code]| Kind::from_code(code))
            .ok_or(Malformed::Kind)?;
        let echo =
            |code| options.get(code).filter(|value| value.len() <= MAX_ECHO).map(<[u8]>::to_vec);
        Ok(Self {
            kind,
            xid: field(header, 4),
            flags: u16::from_be_bytes(field(header, 10)),
            ciaddr: field(header, 12).into(),
            giaddr: field(header, 24).into(),
            mac,
            requested: options.address(code::REQUESTED_ADDRESS)?,
            server_id: options.address(code::SERVER_ID)?,
            max_size: options.number(code::MAX_SIZE)?,
            client_id: echo(code::CLIENT_ID),
            relay_agent: echo(code::RELAY_AGENT),
            link_selection: options
                .get(code::RELAY_AGENT)
                .and_then(Options::encapsulated)
                .and_then(|relay| relay.address(LINK_SELECTION).ok()?),
            subnet_selection: options.address(code::SUBNET_SELECTION)?,
            requested_options: Codes::of(options.get(code::PARAMETER_LIST).unwrap_or_default()),
            client: Client::read(&options, mac),
        })
    }

    /// Returns true if the client requests this option (option 55).
    pub fn wants(&self, code: u8) -> bool {
        self.requested_options.0[usize::from(code / 64)] & (1 << (code % 64)) != 0
    }

    /// Returns true if the client needs broadcasts until it has its address (flags bit 15).
    pub fn wants_broadcast(&self) -> bool {
        self.flags & 0x8000 != 0
    }
}

/// A set of option codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Codes([u64; 4]);

impl Codes {
    fn of(list: &[u8]) -> Self {
        let mut codes = [0; 4];
        for code in list {
            codes[usize::from(code / 64)] |= 1 << (code % 64);
        }
        Self(codes)
    }
}

/// Returns `N` bytes of the header. Callers pass only constant offsets inside the header.
fn field<const N: usize>(header: &[u8; OPTIONS_AT], at: usize) -> [u8; N] {
    std::array::from_fn(|index| header[at + index])
}

fn interface_address(header: &[u8; OPTIONS_AT]) -> Result<MacAddr, Malformed> {
    let mac: [u8; 6] = field(header, 28);
    let group = mac[0] & 1 != 0;
    if group || mac == [0; 6] { Err(Malformed::Hardware) } else { Ok(MacAddr(mac)) }
}

#[cfg(test)]
mod tests;
