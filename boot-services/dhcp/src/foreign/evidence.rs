//! Evidence of other DHCP servers in a frame.

use std::net::Ipv4Addr;

use smoltcp::wire::{EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, UdpPacket};
use stdx::MacAddr;

use crate::messages::options::{Options, code};
use crate::messages::request::{BOOTREQUEST, COOKIE, OPTIONS_AT};

const CLIENT_PORT: u16 = 68;
const BOOTREPLY: u8 = 2;
/// Value of option 53 for a DHCPREQUEST.
const REQUEST: u8 = 3;

/// Addresses of the box's own servers, on this interface and its others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnServers {
    /// Server identifiers of the box.
    pub servers: Vec<Ipv4Addr>,
    /// MAC addresses of the box.
    pub macs: Vec<MacAddr>,
}

/// DHCP server that is not the box's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// Server identifier (option 54) of the server, or the source address of its message.
    pub server: Ipv4Addr,
    /// MAC of the station that sent the server's message; `None` if only a client named the server.
    pub mac: Option<MacAddr>,
    /// Address that the message offers, assigns or requests.
    pub offered: Option<Ipv4Addr>,
}

/// Returns the foreign server that an Ethernet frame reveals.
///
/// Evidence is any message to a client's port 68 from a foreign station, or a client's broadcast
/// REQUEST that names another server. Checksums are not verified: a virtual interface leaves them
/// unfinished, and a server with a wrong checksum may still reach its clients.
pub fn sighting(frame: &[u8], own: &OwnServers) -> Option<Sighting> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    if frame.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    if packet.next_header() != IpProtocol::Udp || packet.more_frags() || packet.frag_offset() != 0 {
        return None;
    }
    let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
    let message: &[u8] = datagram.payload();
    let header: &[u8; OPTIONS_AT] = message.first_chunk()?;
    let station = MacAddr(frame.src_addr().0);
    if own.macs.contains(&station) {
        return None;
    }
    match header[0] {
        BOOTREPLY if datagram.dst_port() == CLIENT_PORT => {
            reply(header, message, packet.src_addr(), station, own)
        }
        BOOTREQUEST if packet.dst_addr().is_broadcast() => request(header, message, own),
        _ => None,
    }
}

/// Returns the server that sent a message to a client. Any type counts, even a malformed message.
fn reply(
    header: &[u8; OPTIONS_AT],
    message: &[u8],
    from: Ipv4Addr,
    station: MacAddr,
    own: &OwnServers,
) -> Option<Sighting> {
    let server = options(header, message).and_then(|options| server_id(&options)).unwrap_or(from);
    // Our own answer comes from another station only when a relay repeats it.
    let relayed = address(header, 24).is_some();
    if relayed && own.servers.contains(&server) {
        return None;
    }
    Some(Sighting { server, mac: Some(station), offered: address(header, 16) })
}

/// Returns the server that a client's REQUEST names. A client that has not moved between networks
/// names the server whose offer it accepts (RFC 2131 §4.3.2, SELECTING). The named server may be on
/// this network, even if its answers do not reach this interface.
fn request(header: &[u8; OPTIONS_AT], message: &[u8], own: &OwnServers) -> Option<Sighting> {
    if address(header, 24).is_some() {
        return None;
    }
    let options = options(header, message)?;
    if options.get(code::MESSAGE_TYPE) != Some(&[REQUEST]) {
        return None;
    }
    let server = server_id(&options).filter(|server| !own.servers.contains(server))?;
    let offered = options.address(code::REQUESTED_ADDRESS).ok().flatten();
    Some(Sighting { server, mac: None, offered })
}

fn options(header: &[u8; OPTIONS_AT], message: &[u8]) -> Option<Options> {
    let has_cookie = header[236..] == COOKIE;
    let read = || Options::read(&message[OPTIONS_AT..], &header[108..236], &header[44..108]).ok();
    has_cookie.then(read).flatten()
}

fn server_id(options: &Options) -> Option<Ipv4Addr> {
    options.address(code::SERVER_ID).ok().flatten().filter(|server| !server.is_unspecified())
}

/// Returns the IPv4 address at an offset of the header; `None` for 0.0.0.0.
fn address(header: &[u8; OPTIONS_AT], at: usize) -> Option<Ipv4Addr> {
    let octets: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
    Some(Ipv4Addr::from(octets)).filter(|address| !address.is_unspecified())
}

#[cfg(test)]
pub(super) mod tests;
