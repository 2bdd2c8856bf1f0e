//! Getting an address and keeping it.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use stdx::{Backoff, MacAddr};
use tokio::net::UdpSocket;

use super::dhcp::{self, Heard, Lease, Say};
use super::link::{self, Link};
use super::netlink;
use crate::Error;
use crate::stream::blocking;

const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;
/// The wait for an answer to the first message; it doubles (RFC 2131 section 4.1 begins at 4 s,
/// which is a long time for a machine at a box's own switch).
const FIRST_ANSWER: Duration = Duration::from_secs(1);
/// The longest wait for an answer.
const LONGEST_ANSWER: Duration = Duration::from_secs(8);
/// How long to ask before saying that there is no address.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest message accepted.
const LONGEST_MESSAGE: usize = 1500;
/// Where name servers are written for the resolver.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// An interface with an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configured {
    link: Link,
    lease: Lease,
}

impl Configured {
    /// The interface's hardware address.
    pub fn mac(&self) -> MacAddr {
        self.link.mac
    }

    /// The address.
    pub fn address(&self) -> Ipv4Addr {
        self.lease.address
    }
}

/// Bring up the interface with this hardware address, or the first with a link, and configure it.
pub async fn configure(mac: Option<MacAddr>) -> Result<Configured, Error> {
    let link = blocking("choosing a network interface", move || link::choose(mac)).await?;
    let lease = obtain(&link, PATIENCE).await?;
    apply(&link, &lease)?;
    let (interface, mac, server) = (&link.name, link.mac, lease.server);
    let address = format!("{}/{}", lease.address, lease.prefix);
    tracing::info!(interface, %mac, address, %server, "network is up");
    Ok(Configured { link, lease })
}

/// Renew the lease for ever; take a new address when the old one is lost.
pub async fn keep(configured: Configured) {
    let Configured { link, mut lease } = configured;
    loop {
        let third = Duration::from_secs(u64::from(lease.seconds) / 3);
        tokio::time::sleep(third).await;
        let renewed = renew(&link, &lease, third).await;
        let next = match renewed {
            Ok(Some(next)) => next,
            // Refused, or nobody answered for a third of the lease: ask everybody.
            Ok(None) | Err(_) => match obtain(&link, third).await {
                Ok(next) => next,
                Err(error) => {
                    tracing::warn!(reason = %stdx::chain(&error), "the lease is not renewed");
                    continue;
                }
            },
        };
        if next.address != lease.address {
            tracing::warn!(old = %lease.address, new = %next.address, "the address has changed");
            let _ = netlink::remove_address(link.index, lease.address, lease.prefix);
        }
        if let Err(error) = apply(&link, &next) {
            tracing::warn!(reason = %stdx::chain(&error), "cannot apply the renewed lease");
        }
        lease = next;
    }
}

fn apply(link: &Link, lease: &Lease) -> Result<(), Error> {
    let what = |what: String| Error::io(format!("{what} on {}", link.name));
    netlink::add_address(link.index, lease.address, lease.prefix)
        .map_err(what(format!("set the address {}", lease.address)))?;
    if let Some(router) = lease.router {
        netlink::set_default_route(link.index, router)
            .map_err(what(format!("set the default route by {router}")))?;
    }
    if !lease.name_servers.is_empty() {
        let lines: String =
            lease.name_servers.iter().map(|server| format!("nameserver {server}\n")).collect();
        if let Err(error) = std::fs::write(RESOLV_CONF, lines) {
            tracing::warn!(reason = %error, "cannot write the name servers");
        }
    }
    Ok(())
}

/// Discover, offer, request, acknowledge.
async fn obtain(link: &Link, patience: Duration) -> Result<Lease, Error> {
    let mut exchange = Exchange::new(link, patience)?;
    loop {
        let Heard::Offer(offer) =
            exchange.ask(Say::Discover, |heard| matches!(heard, Heard::Offer(_))).await?
        else {
            continue;
        };
        let say = Say::Request { address: offer.address, server: offer.server };
        match exchange.ask(say, |heard| !matches!(heard, Heard::Offer(_))).await? {
            Heard::Ack(lease) => return Ok(lease),
            _ => tracing::warn!(server = %offer.server, "the server withdrew its offer"),
        }
    }
}

/// `None` when the server refuses.
async fn renew(link: &Link, lease: &Lease, patience: Duration) -> Result<Option<Lease>, Error> {
    let mut exchange = Exchange::new(link, patience)?;
    let say = Say::Renew { address: lease.address };
    match exchange.ask(say, |heard| !matches!(heard, Heard::Offer(_))).await? {
        Heard::Ack(next) => Ok(Some(next)),
        _ => Ok(None),
    }
}

struct Exchange<'a> {
    link: &'a Link,
    socket: UdpSocket,
    id: u32,
    begun: Instant,
    patience: Duration,
}

impl<'a> Exchange<'a> {
    fn new(link: &'a Link, patience: Duration) -> Result<Self, Error> {
        let socket = open(&link.name)
            .map_err(Error::io(format!("open port {CLIENT_PORT} on {}", link.name)))?;
        // A random id, so that machines started by one switch do not share answers.
        let id = u32::from_str_radix(&stdx::random_hex(4), 16).unwrap_or_default();
        Ok(Self { link, socket, id, begun: Instant::now(), patience })
    }

    /// Say it, and again with longer waits, until a wanted answer comes.
    async fn ask(&mut self, say: Say, wanted: fn(&Heard) -> bool) -> Result<Heard, Error> {
        let mut wait = Backoff::new(FIRST_ANSWER, LONGEST_ANSWER);
        let everybody = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::BROADCAST, SERVER_PORT));
        while self.begun.elapsed() < self.patience {
            let elapsed = u16::try_from(self.begun.elapsed().as_secs()).unwrap_or(u16::MAX);
            let message = dhcp::encode(say, self.id, self.link.mac, elapsed);
            if let Err(error) = self.socket.send_to(&message, everybody).await {
                tracing::warn!(reason = %error, "cannot send a DHCP message");
            }
            let answer = tokio::time::timeout(wait.next_wait(), self.answer(wanted)).await;
            if let Ok(heard) = answer {
                return Ok(heard);
            }
        }
        let seconds = self.patience.as_secs();
        let reason = format!("nobody answered on {} for {seconds} s", self.link.name);
        Err(Error::NoAddress { reason })
    }

    async fn answer(&self, wanted: fn(&Heard) -> bool) -> Heard {
        let mut buffer = [0; LONGEST_MESSAGE];
        loop {
            let Ok(count) = self.socket.recv(&mut buffer).await else { continue };
            match dhcp::decode(&buffer[..count], self.id, self.link.mac) {
                Some(heard) if wanted(&heard) => return heard,
                _ => {}
            }
        }
    }
}

/// A socket that works on one interface before that has an address.
fn open(interface: &str) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.set_broadcast(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, CLIENT_PORT)).into())?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket.into())
}
