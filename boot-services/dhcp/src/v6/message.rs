//! Encoding of DHCPv6 messages, relay headers and options (RFC 8415 §8, §9, §21.1).

use std::net::Ipv6Addr;

/// Option codes, as RFC 8415 §24 and RFC 5970 name them.
pub(super) mod code {
    pub const CLIENT_ID: u16 = 1;
    pub const SERVER_ID: u16 = 2;
    pub const IA_NA: u16 = 3;
    pub const IA_TA: u16 = 4;
    pub const IA_ADDRESS: u16 = 5;
    pub const REQUESTED: u16 = 6;
    pub const PREFERENCE: u16 = 7;
    pub const RELAYED: u16 = 9;
    pub const STATUS: u16 = 13;
    pub const RAPID_COMMIT: u16 = 14;
    pub const USER_CLASS: u16 = 15;
    pub const VENDOR_CLASS: u16 = 16;
    pub const INTERFACE_ID: u16 = 18;
    /// DNS servers (RFC 3646).
    pub const NAME_SERVERS: u16 = 23;
    pub const IA_PD: u16 = 25;
    /// Boot file URL (RFC 5970 §3.1).
    pub const BOOT_FILE_URL: u16 = 59;
    /// Client architecture (RFC 5970 §3.3).
    pub const ARCHITECTURE: u16 = 61;
    /// Client link-layer address (RFC 6939).
    pub const LINK_LAYER: u16 = 79;
}

pub(super) const RELAY_FORWARD: u8 = 12;
pub(super) const RELAY_REPLY: u8 = 13;
/// Maximum relay headers of a message: `HOP_COUNT_LIMIT` (RFC 8415 §7.6).
const RELAYS_MAX: usize = 8;
/// Maximum bytes of a DUID: the type and 128 bytes (RFC 8415 §11.1).
const DUID_MAX: usize = 130;
/// Maximum bytes of an interface identifier that is echoed to a relay.
const INTERFACE_ID_MAX: usize = 128;

/// Reason why a datagram is not a client's DHCPv6 message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The message is shorter than its header.
    #[error("the message has {0} bytes, too few for a DHCPv6 header")]
    Short(usize),
    /// The message type is a server's, or unknown.
    #[error("the message is not from a client (type {0})")]
    Kind(u8),
    /// The length of this option is not valid.
    #[error("option {0} of the message has an invalid length")]
    Option(u16),
    /// The relay message has no inner message, or too many relays.
    #[error("a relay-forward message has no inner message, or too many relays")]
    Relay,
    /// The client identifier is missing; only an INFORMATION-REQUEST may omit it.
    #[error("the message has no client identifier")]
    Anonymous,
}

/// Message type of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Solicit,
    Request,
    Confirm,
    Renew,
    Rebind,
    Release,
    Decline,
    Information,
}

impl Kind {
    fn from_code(code: u8) -> Result<Self, Malformed> {
        Ok(match code {
            1 => Self::Solicit,
            3 => Self::Request,
            4 => Self::Confirm,
            5 => Self::Renew,
            6 => Self::Rebind,
            8 => Self::Release,
            9 => Self::Decline,
            11 => Self::Information,
            other => return Err(Malformed::Kind(other)),
        })
    }
}

/// Options of a message; all lengths were checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options<'a>(&'a [u8]);

impl<'a> Options<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = bytes;
        while let Some(first) = First::of(rest)? {
            rest = first.rest;
        }
        Ok(Self(bytes))
    }

    pub fn iter(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let first = First::of(rest).ok().flatten()?;
            rest = first.rest;
            Some((first.code, first.value))
        })
    }

    pub fn all(self, kind: u16) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(code, _)| *code == kind).map(|(_, value)| value)
    }

    pub fn get(self, kind: u16) -> Option<&'a [u8]> {
        self.all(kind).next()
    }
}

/// First option of some bytes, and the bytes after it.
struct First<'a> {
    code: u16,
    value: &'a [u8],
    rest: &'a [u8],
}

impl<'a> First<'a> {
    /// Parses the first option; `None` if there are no more bytes.
    fn of(bytes: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let Some(([a, b, c, d], rest)) = bytes.split_first_chunk::<4>() else {
            return if bytes.is_empty() { Ok(None) } else { Err(Malformed::Option(0)) };
        };
        let code = u16::from_be_bytes([*a, *b]);
        let length = usize::from(u16::from_be_bytes([*c, *d]));
        let (value, rest) = rest.split_at_checked(length).ok_or(Malformed::Option(code))?;
        Ok(Some(Self { code, value, rest }))
    }
}

/// Header of a relay's message, which the answer needs too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Relay<'a> {
    pub hops: u8,
    pub link: Ipv6Addr,
    pub peer: Ipv6Addr,
    pub options: Options<'a>,
}

/// Decoded message of a client.
#[derive(Debug, Clone)]
pub(super) struct Message<'a> {
    pub kind: Kind,
    pub xid: [u8; 3],
    pub options: Options<'a>,
    pub client_id: Option<&'a [u8]>,
    pub server_id: Option<&'a [u8]>,
    /// Relay headers, from the outermost to the one nearest to the client.
    pub relays: Vec<Relay<'a>>,
}

impl<'a> Message<'a> {
    /// Decodes one UDP payload.
    pub fn read(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut bytes = datagram;
        let mut relays = Vec::new();
        while bytes.first() == Some(&RELAY_FORWARD) {
            if relays.len() == RELAYS_MAX {
                return Err(Malformed::Relay);
            }
            let relay = relay(bytes)?;
            bytes = relay.options.get(code::RELAYED).ok_or(Malformed::Relay)?;
            relays.push(relay);
        }
        let short = Malformed::Short(bytes.len());
        let ([kind, xid @ ..], rest) = bytes.split_first_chunk::<4>().ok_or(short)?;
        let kind = Kind::from_code(*kind)?;
        let options = Options::read(rest)?;
        let client_id = options.get(code::CLIENT_ID);
        if client_id.is_some_and(|duid| duid.len() < 3 || duid.len() > DUID_MAX) {
            return Err(Malformed::Option(code::CLIENT_ID));
        }
        if client_id.is_none() && kind != Kind::Information {
            return Err(Malformed::Anonymous);
        }
        let server_id = options.get(code::SERVER_ID);
        Ok(Self { kind, xid: *xid, options, client_id, server_id, relays })
    }

    /// Wraps the `answer` in one relay-reply header for each relay of the request.
    pub fn wrap(&self, answer: Vec<u8>) -> Vec<u8> {
        self.relays.iter().rev().fold(answer, |inner, relay| {
            let mut outer = vec![RELAY_REPLY, relay.hops];
            outer.extend(relay.link.octets());
            outer.extend(relay.peer.octets());
            let interface = relay.options.get(code::INTERFACE_ID);
            if let Some(id) = interface.filter(|id| id.len() <= INTERFACE_ID_MAX) {
                put(&mut outer, code::INTERFACE_ID, id);
            }
            put(&mut outer, code::RELAYED, &inner);
            outer
        })
    }
}

fn relay(bytes: &[u8]) -> Result<Relay<'_>, Malformed> {
    let short = Malformed::Short(bytes.len());
    let (header, rest) = bytes.split_first_chunk::<34>().ok_or(short)?;
    let address = |at: usize| {
        let octets: [u8; 16] = std::array::from_fn(|index| header[at + index]);
        Ipv6Addr::from(octets)
    };
    let options = Options::read(rest)?;
    Ok(Relay { hops: header[1], link: address(2), peer: address(18), options })
}

/// Appends an option; omits it if the value exceeds 65535 bytes.
pub(super) fn put(message: &mut Vec<u8>, code: u16, value: &[u8]) {
    if let Ok(length) = u16::try_from(value.len()) {
        message.extend(code.to_be_bytes());
        message.extend(length.to_be_bytes());
        message.extend_from_slice(value);
    }
}
