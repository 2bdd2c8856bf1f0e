//! DHCP messages and the decisions of a client (RFC 2131). The module uses no socket and no clock.

use std::net::Ipv4Addr;

use dhcproto::Encodable as _;
use dhcproto::v4::{DhcpOption, Flags, Message, MessageType, Opcode, OptionCode, borrowed};
use stdx::MacAddr;

use super::{Address, ClientIdentity, NAME_SERVERS, TIME_SERVERS, prefix_of};

/// Length of an Ethernet address in bytes (`hlen`).
const ETHERNET: u8 = 6;
/// Minimum length of a sent message in bytes, which every relay and server accepts (RFC 951).
const SHORTEST: usize = 300;
/// Lease time in seconds if the server sends none.
const DEFAULT_LEASE: u32 = 3600;
/// Minimum accepted lease time in seconds. A server that sends 0 must not make the client loop.
const SHORTEST_LEASE: u32 = 60;

/// Message of a DHCP client before encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientMessage {
    /// DISCOVER: requests an offer from any server.
    Discover,
    /// REQUEST of an offered address.
    Request {
        /// Address from the server's offer.
        address: Ipv4Addr,
        /// Identifier of the offering server.
        server: Ipv4Addr,
    },
    /// REQUEST that renews an address in use (RFC 2131 section 4.3.2, RENEWING).
    Renew {
        /// Address that the client uses.
        address: Ipv4Addr,
    },
}

/// Response of a DHCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerResponse {
    /// OFFER of an address.
    Offer(Lease),
    /// ACK: the address is leased to the client.
    Ack(Lease),
    /// NAK: the client starts over with a DISCOVER.
    Nak,
}

/// Lease of an IPv4 address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Address, prefix, router and name servers.
    pub address: Address,
    /// Identifier of the server that granted the lease.
    pub server: Ipv4Addr,
    /// Lease time in seconds.
    pub seconds: u32,
    /// NTP servers, at most [`TIME_SERVERS`].
    pub time_servers: Vec<Ipv4Addr>,
}

/// Client fields of every message in one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client<'a> {
    /// Transaction ID of the exchange (`xid`).
    pub id: u32,
    /// Hardware address of the interface.
    pub mac: MacAddr,
    /// Vendor class and host name.
    pub caller: &'a ClientIdentity,
}

/// Encodes a client message. `elapsed_secs` is the time since the exchange began. The message
/// requests a broadcast reply, because the client may have no address yet.
pub fn encode(say: ClientMessage, client: Client<'_>, elapsed_secs: u16) -> Vec<u8> {
    let Client { id, mac, caller } = client;
    let none = Ipv4Addr::UNSPECIFIED;
    let own = if let ClientMessage::Renew { address } = say { address } else { none };
    let mut message = Message::new_with_id(id, own, none, none, none, &mac.0);
    message.set_secs(elapsed_secs).set_flags(Flags::default().set_broadcast());
    let kind =
        if say == ClientMessage::Discover { MessageType::Discover } else { MessageType::Request };
    let options = message.opts_mut();
    options.insert(DhcpOption::MessageType(kind));
    if let ClientMessage::Request { address, server } = say {
        options.insert(DhcpOption::RequestedIpAddress(address));
        options.insert(DhcpOption::ServerIdentifier(server));
    }
    options.insert(DhcpOption::ParameterRequestList(vec![
        OptionCode::SubnetMask,
        OptionCode::Router,
        OptionCode::DomainNameServer,
        OptionCode::AddressLeaseTime,
        OptionCode::NtpServers,
    ]));
    options.insert(DhcpOption::ClassIdentifier(caller.class.as_bytes().to_vec()));
    if !caller.name.is_empty() {
        options.insert(DhcpOption::Hostname(caller.name.clone()));
    }
    let mut bytes = message.to_vec().expect("these options have a wire form");
    bytes.resize(bytes.len().max(SHORTEST), 0);
    bytes
}

/// Decodes a response to the exchange `id` of `mac`. Returns `None` for any other message.
///
/// Options are read as bytes: the typed decoder of dhcproto drops all options after a malformed
/// one.
pub fn decode(bytes: &[u8], id: u32, mac: MacAddr) -> Option<ServerResponse> {
    let message = borrowed::Message::new(bytes).ok()?;
    let is_reply = message.opcode() == Opcode::BootReply && message.xid() == id;
    // The length is checked first, because `chaddr` does not check it.
    if !is_reply || message.hlen() != ETHERNET || message.chaddr() != mac.0 {
        return None;
    }
    let kind = option(&message, OptionCode::MessageType)?.first().copied()?.into();
    if kind == MessageType::Nak {
        return Some(ServerResponse::Nak);
    }
    let address = message.yiaddr();
    let usable = !address.is_unspecified() && !address.is_broadcast() && !address.is_multicast();
    let lease = usable.then(|| lease(&message)).flatten()?;
    match kind {
        MessageType::Offer => Some(ServerResponse::Offer(lease)),
        MessageType::Ack => Some(ServerResponse::Ack(lease)),
        _ => None,
    }
}

fn lease(message: &borrowed::Message<'_>) -> Option<Lease> {
    let option = |code| option(message, code);
    let first = |code| option(code).and_then(|value| addresses(&value).next());
    let several = |code| option(code).unwrap_or_default();
    let mask = first(OptionCode::SubnetMask).unwrap_or(Ipv4Addr::new(255, 255, 255, 0));
    let seconds = option(OptionCode::AddressLeaseTime).and_then(|value| value.try_into().ok());
    let address = Address {
        address: message.yiaddr(),
        prefix: prefix_of(mask)?,
        router: first(OptionCode::Router),
        name_servers: addresses(&several(OptionCode::DomainNameServer))
            .take(NAME_SERVERS)
            .collect(),
    };
    Some(Lease {
        address,
        server: first(OptionCode::ServerIdentifier)?,
        seconds: seconds.map_or(DEFAULT_LEASE, u32::from_be_bytes).max(SHORTEST_LEASE),
        time_servers: addresses(&several(OptionCode::NtpServers)).take(TIME_SERVERS).collect(),
    })
}

fn addresses(value: &[u8]) -> impl Iterator<Item = Ipv4Addr> {
    value.chunks_exact(4).map(|part| Ipv4Addr::new(part[0], part[1], part[2], part[3]))
}

/// Returns the bytes of the first option with this code.
fn option(message: &borrowed::Message<'_>, code: OptionCode) -> Option<Vec<u8>> {
    let found = message.opts().find(|option| option.code() == code)?;
    Some(found.data().to_vec())
}

#[cfg(test)]
mod tests;
