//! rtnetlink requests: link up, address, default route (`linux/rtnetlink.h`). Bytes out, an errno
//! back; no unsafe code, no ioctl.

use std::io::{self, Read as _};
use std::net::Ipv4Addr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// The kernel answers at once; this only keeps a surprise from hanging the boot.
const ANSWER: Duration = Duration::from_secs(5);
const HEADER: usize = 16;

const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;

const AF_INET: u8 = 2;
const IFF_UP: u32 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_DHCP: u8 = 16;
const RTN_UNICAST: u8 = 1;

pub(super) fn link_up(index: u32) -> io::Result<()> {
    // ifinfomsg: family, pad, type, index, flags, change.
    let mut body = vec![0; 4];
    body.extend(index.to_ne_bytes());
    body.extend(IFF_UP.to_ne_bytes());
    body.extend(IFF_UP.to_ne_bytes());
    request(RTM_NEWLINK, 0, &body)
}

pub(super) fn add_address(index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
    request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &address_body(index, address, prefix))
}

pub(super) fn remove_address(index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
    request(RTM_DELADDR, 0, &address_body(index, address, prefix))
}

fn address_body(index: u32, address: Ipv4Addr, prefix: u8) -> Vec<u8> {
    // ifaddrmsg: family, prefix length, flags, scope, index.
    let mut body = vec![AF_INET, prefix, 0, 0];
    body.extend(index.to_ne_bytes());
    attribute(&mut body, IFA_LOCAL, &address.octets());
    attribute(&mut body, IFA_ADDRESS, &address.octets());
    body
}

pub(super) fn set_default_route(index: u32, gateway: Ipv4Addr) -> io::Result<()> {
    // rtmsg: family, two prefix lengths, tos, table, protocol, scope, type, flags.
    let mut body = vec![AF_INET, 0, 0, 0, RT_TABLE_MAIN, RTPROT_DHCP, 0, RTN_UNICAST, 0, 0, 0, 0];
    attribute(&mut body, RTA_GATEWAY, &gateway.octets());
    attribute(&mut body, RTA_OIF, &index.to_ne_bytes());
    request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &body)
}

/// A four-byte attribute, which needs no padding.
fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8; 4]) {
    body.extend(8_u16.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
}

fn request(kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((NLM_F_REQUEST | NLM_F_ACK | flags).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);

    let route = Protocol::from(libc::NETLINK_ROUTE);
    let mut socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(route))?;
    socket.set_read_timeout(Some(ANSWER))?;
    socket.send(&message)?;
    let mut answer = [0; 1024];
    let count = socket.read(&mut answer)?;
    acknowledged(&answer[..count])
}

/// nlmsghdr and the errno after it; 0 acknowledges.
fn acknowledged(answer: &[u8]) -> io::Result<()> {
    let short = || io::Error::new(io::ErrorKind::InvalidData, "netlink answered too briefly");
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).ok_or_else(short)?;
    let errno = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).ok_or_else(short)?;
    match (u16::from_ne_bytes(kind), i32::from_ne_bytes(errno)) {
        (NLMSG_ERROR, 0) => Ok(()),
        (NLMSG_ERROR, errno) => Err(io::Error::from_raw_os_error(-errno)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "netlink answered something else")),
    }
}
