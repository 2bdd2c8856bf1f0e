//! Router advertisements (RFC 4861), for iPXE.
//!
//! iPXE configures IPv6 besides IPv4 and waits for a router's answer: 16 s in the build of 2019, 4
//! s in current builds. Any advertisement with the M and O flags clear ends the wait. With a flag
//! set, iPXE would start a DHCPv6 exchange without a server.
//!
//! The advertisement has lifetime 0, which means "not a default router", and normally no prefix. It
//! goes to the soliciting node only, so other hosts never receive it. With a prefix, the
//! advertisement is also sent to all nodes every [`PERIOD`], so that their addresses stay valid.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::unix::AsyncFd;
use tokio::time::MissedTickBehavior;

use crate::sockets::udp::{interface_index, watched};

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
const SOLICITATION: u8 = 133;
const ADVERTISEMENT: u8 = 134;
/// Hop limit: receivers drop neighbor discovery from beyond a router (RFC 4861 §6.1.2).
const HOPS: u32 = 255;
/// Time between unsolicited advertisements (default of RFC 4861 §6.2.1).
const PERIOD: Duration = Duration::from_secs(600);
/// Lifetime of the prefix in seconds, which outlasts two lost advertisements.
const PREFIX_SECS: u32 = 1800;
/// Minimum time between two advertisements to all nodes (RFC 4861 §6.2.6).
const MULTICAST_GAP: Duration = Duration::from_secs(3);
/// Maximum answers to single nodes within [`MULTICAST_GAP`], enough for a rack that is switched on.
const MAX_UNICASTS: u32 = 256;

/// Answers router solicitations on `interface` forever.
///
/// # Errors
/// The interface has no IPv6, or was removed.
pub(crate) async fn advertise(interface: &str, prefix: Option<Ipv6Addr>) -> io::Result<()> {
    let (socket, index) = open(interface)?;
    let message = advertisement(prefix);
    let mut pace = Pace::new(Instant::now());
    let mut period = tokio::time::interval(PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut buffer = [0; 1500];
    loop {
        let to = tokio::select! {
            received = receive(&socket, &mut buffer) => {
                let (length, from) = received?;
                match solicitor(&buffer[..length], from) {
                    Some(to) => to,
                    None => continue,
                }
            }
            _ = period.tick(), if prefix.is_some() => ALL_NODES,
        };
        if !pace.allows(to, Instant::now()) {
            continue;
        }
        let to_scope = SocketAddrV6::new(to, 0, 0, index);
        // Fails while the interface's own address is being verified; the node then solicits again.
        if let Err(error) = rustix::net::sendto(&socket, &message, SendFlags::DONTWAIT, &to_scope) {
            tracing::debug!(interface, %to, %error, "cannot send a router advertisement");
        }
    }
}

fn open(interface: &str) -> io::Result<(AsyncFd<OwnedFd>, u32)> {
    let index = interface_index(interface)?;
    let socket = Socket::new(Domain::IPV6, Type::RAW.nonblocking(), Some(Protocol::ICMPV6))?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.join_multicast_v6(&ALL_ROUTERS, index)?;
    socket.set_multicast_if_v6(index)?;
    socket.set_multicast_loop_v6(false)?;
    socket.set_multicast_hops_v6(HOPS)?;
    socket.set_unicast_hops_v6(HOPS)?;
    Ok((watched(socket.into())?, index))
}

async fn receive(socket: &AsyncFd<OwnedFd>, buffer: &mut [u8]) -> io::Result<(usize, Ipv6Addr)> {
    loop {
        let mut ready = socket.readable().await?;
        let received = ready.try_io(|fd| {
            let (length, _, from) = rustix::net::recvfrom(fd, &mut *buffer, RecvFlags::DONTWAIT)?;
            Ok((length, from))
        });
        match received {
            Ok(Ok((length, from))) => {
                match from.and_then(|address| SocketAddr::try_from(address).ok()) {
                    Some(SocketAddr::V6(from)) => return Ok((length, *from.ip())),
                    _ => continue,
                }
            }
            // The kernel reports an interface that goes down once; the interface may come back.
            Ok(Err(error)) if error.kind() == io::ErrorKind::NetworkDown => {}
            Ok(Err(error)) => return Err(error),
            Err(_would_block) => {}
        }
    }
}

/// Returns the destination of the answer to a solicitation; `None` for other messages.
///
/// The kernel has verified the checksum. A solicitation must come from a link-local address, or
/// from the unspecified address (RFC 4861 §4.1), which is answered to all nodes.
fn solicitor(message: &[u8], from: Ipv6Addr) -> Option<Ipv6Addr> {
    let solicits = message.len() >= 8 && message[0] == SOLICITATION && message[1] == 0;
    match solicits {
        true if from.is_unspecified() => Some(ALL_NODES),
        true if from.is_unicast_link_local() => Some(from),
        _ => None,
    }
}

/// Returns the advertisement without its checksum, which the kernel adds. Hop limit and timers are
/// unspecified, M = O = 0, and the router lifetime is 0. The prefix (RFC 4861 §4.6.2) is for
/// autoconfiguration.
fn advertisement(prefix: Option<Ipv6Addr>) -> Vec<u8> {
    let mut message = vec![0; 16];
    message[0] = ADVERTISEMENT;
    if let Some(prefix) = prefix {
        // Type 3, 4 units of 8 bytes, 64 bits, on link and autonomous; valid; preferred.
        message.extend([3, 4, 64, 0xc0]);
        message.extend(PREFIX_SECS.to_be_bytes());
        message.extend(PREFIX_SECS.to_be_bytes());
        message.extend([0; 4]);
        message.extend(&prefix.octets()[..8]);
        message.extend([0; 8]);
    }
    message
}

/// Rate limit of advertisements, for single nodes and for all nodes.
struct Pace {
    since: Instant,
    unicasts: u32,
    multicast: Option<Instant>,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { since: now, unicasts: 0, multicast: None }
    }

    fn allows(&mut self, to: Ipv6Addr, now: Instant) -> bool {
        let past = |at| now.saturating_duration_since(at) >= MULTICAST_GAP;
        if to == ALL_NODES {
            let allowed = self.multicast.is_none_or(past);
            if allowed {
                self.multicast = Some(now);
            }
            return allowed;
        }
        if past(self.since) {
            *self = Self { since: now, unicasts: 0, multicast: self.multicast };
        }
        self.unicasts += 1;
        self.unicasts <= MAX_UNICASTS
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL_NODES, MAX_UNICASTS, MULTICAST_GAP, Pace, advertisement, solicitor};
    use std::net::Ipv6Addr;
    use std::time::Instant;

    #[test]
    fn the_advertisement_makes_nobody_a_router() {
        let message = advertisement(None);
        assert_eq!(message, [134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let message = advertisement(Some("fd77::".parse().unwrap()));
        assert_eq!(message.len(), 48);
        assert_eq!(message[16..20], [3, 4, 64, 0xc0]);
        assert_eq!(message[32..40], [0xfd, 0x77, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn only_solicitations_from_the_link_are_answered() {
        let node: Ipv6Addr = "fe80::5054:ff:fe77:1".parse().unwrap();
        let solicitation = [133, 0, 0x7b, 0xb7, 0, 0, 0, 0];
        assert_eq!(solicitor(&solicitation, node), Some(node));
        assert_eq!(solicitor(&solicitation, Ipv6Addr::UNSPECIFIED), Some(ALL_NODES));
        assert_eq!(solicitor(&solicitation, "2001:db8::1".parse().unwrap()), None);
        assert_eq!(solicitor(&solicitation[..7], node), None);
        assert_eq!(solicitor(&[134, 0, 0, 0, 0, 0, 0, 0], node), None);
    }

    #[test]
    fn a_flood_of_solicitations_is_not_answered_in_kind() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        let node: Ipv6Addr = "fe80::1".parse().unwrap();
        let answered = (0..1000).filter(|_| pace.allows(node, now)).count();
        assert_eq!(answered, MAX_UNICASTS as usize);
        let answered = (0..1000).filter(|_| pace.allows(ALL_NODES, now)).count();
        assert_eq!(answered, 1);
        assert!(pace.allows(node, now + MULTICAST_GAP));
        assert!(pace.allows(ALL_NODES, now + MULTICAST_GAP));
    }
}
