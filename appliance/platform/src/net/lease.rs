//! Getting an address and keeping it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use stdx::{Backoff, MacAddr};
use tokio::net::UdpSocket;

use super::dhcp::{self, Client, Heard, Lease, Say};
use super::link::{self, Link};
use super::netlink::Netlink;
use super::{Address, Addressing, Caller, NAME_MAX, Wanted, Which};
use crate::Error;

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
    address: Address,
    /// Of a server; `None` when the address was written down.
    lease: Option<(Lease, Caller)>,
}

impl Configured {
    /// The interface's hardware address.
    pub fn mac(&self) -> MacAddr {
        self.link.mac
    }

    /// The address.
    pub fn address(&self) -> Ipv4Addr {
        self.address.address
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.link.name
    }

    /// Who tells the time here, says the DHCP server.
    pub fn time_servers(&self) -> &[Ipv4Addr] {
        self.lease.as_ref().map_or(&[], |(lease, _)| &lease.time_servers)
    }
}

/// Bring up the interface that is wanted and give it its address.
///
/// # Errors
/// When there is no such interface, none has a link, or nobody gives it an address.
pub async fn configure(wanted: Wanted) -> Result<Configured, Error> {
    let netlink = Netlink::open()?;
    let mut link = link::choose(&netlink, &wanted.interface).await?;
    if let Some(id) = wanted.vlan {
        link.name = vlan_name(&link.name, id);
        link.index = netlink.vlan(&link.name, link.index, id).await?;
    }
    let (address, lease) = match wanted.addressing {
        Addressing::Fixed(address) => (address, None),
        Addressing::Dhcp => {
            let lease = obtain(&link, &wanted.caller, PATIENCE).await?;
            (lease.address.clone(), Some(lease))
        }
    };
    forget_others(&netlink, &link, address.address).await;
    apply(&netlink, &link, &address).await?;
    let (interface, mac) = (&link.name, link.mac);
    let server = lease.as_ref().map(|lease| tracing::field::display(lease.server));
    let shown = format!("{}/{}", address.address, address.prefix);
    tracing::info!(interface, %mac, address = shown, server, "network is up");
    Ok(Configured { link, address, lease: lease.map(|lease| (lease, wanted.caller)) })
}

/// Removes the addresses that a former process left on the interface: their leases may have ended,
/// and nothing renews them.
async fn forget_others(netlink: &Netlink, link: &Link, given: Ipv4Addr) {
    let seen = super::look().await.unwrap_or_default();
    let seen = seen.into_iter().find(|seen| seen.link.index == link.index);
    for other in left_over(&seen.map(|seen| seen.addresses).unwrap_or_default(), given) {
        let (interface, address) = (&link.name, other.0);
        tracing::info!(interface, %address, "removing a former address");
        if let Err(error) = netlink.remove_address(link.index, other).await {
            tracing::warn!(interface, %address, reason = %error, "a former address stays");
        }
    }
}

/// The IPv4 addresses that are not the given one. A link-local address is of `link_local`.
fn left_over(addresses: &[(IpAddr, u8)], given: Ipv4Addr) -> Vec<(Ipv4Addr, u8)> {
    let all = addresses.iter().filter_map(|(address, prefix)| match address {
        IpAddr::V4(address) => Some((*address, *prefix)),
        IpAddr::V6(_) => None,
    });
    all.filter(|(address, _)| *address != given && !address.is_link_local()).collect()
}

/// Gives the interface of this name an address that is written down, whether or not a cable is in.
///
/// # Errors
/// When there is no such interface, or the kernel refuses.
pub async fn assign(name: &str, address: &Address) -> Result<(), Error> {
    let found = link::links().into_iter().find(|link| link.name == name);
    let link = found.ok_or_else(|| Error::NoAddress {
        reason: format!("there is no {}", Which::Name(name.to_owned())),
    })?;
    let netlink = Netlink::open()?;
    netlink.up(link.index).await?;
    apply(&netlink, &link, address).await
}

/// The usual name of a VLAN's interface, within [`NAME_MAX`].
pub(super) fn vlan_name(parent: &str, id: u16) -> String {
    let room = NAME_MAX - 1 - id.to_string().len();
    format!("{}.{id}", &parent[..parent.floor_char_boundary(room)])
}

/// Renew the lease for ever; take a new address when the old one is lost. Returns when there is
/// nothing to renew.
///
/// An address whose lease has ended is given up, whoever it is needed by: the server may have given
/// it to another machine (RFC 2131 section 4.4.5).
pub async fn keep(configured: Configured) {
    let Configured { link, lease: Some((mut lease, caller)), .. } = configured else { return };
    let mut begun = Instant::now();
    loop {
        let length = Duration::from_secs(lease.seconds.into());
        tokio::time::sleep(length / 3).await;
        let asked = Instant::now();
        let next = match renew(&link, &caller, &lease, length / 3).await {
            Ok(Some(next)) => Some(next),
            // Nobody answered for a third of the lease: ask everybody, as long as it lasts.
            Err(_) => obtain(&link, &caller, length.saturating_sub(begun.elapsed())).await.ok(),
            // Refused: from now on the address is another machine's.
            Ok(None) => None,
        };
        let (next, since) = match next {
            Some(next) => (next, asked),
            None => {
                give_up(&link, &lease.address).await;
                (obtain_at_last(&link, &caller).await, Instant::now())
            }
        };
        if let Err(error) = change(&link, &lease.address, &next.address).await {
            tracing::warn!(reason = %stdx::chain(&error), "cannot apply the renewed lease");
        }
        (lease, begun) = (next, since);
    }
}

async fn give_up(link: &Link, address: &Address) {
    let (interface, address) = (&link.name, (address.address, address.prefix));
    tracing::error!(interface, address = %address.0, "the lease has ended: no address");
    let removed = match Netlink::open() {
        Ok(netlink) => {
            let failed = Error::netlink(format!("remove {} from {interface}", address.0));
            netlink.remove_address(link.index, address).await.map_err(failed)
        }
        Err(error) => Err(error),
    };
    if let Err(error) = removed {
        tracing::warn!(reason = %stdx::chain(&error), "the address stays on the interface");
    }
}

/// Asks until a server gives an address.
async fn obtain_at_last(link: &Link, caller: &Caller) -> Lease {
    loop {
        match obtain(link, caller, PATIENCE).await {
            Ok(lease) => return lease,
            Err(error) => tracing::warn!(reason = %stdx::chain(&error), "no address"),
        }
        tokio::time::sleep(LONGEST_ANSWER).await;
    }
}

async fn change(link: &Link, old: &Address, new: &Address) -> Result<(), Error> {
    let netlink = Netlink::open()?;
    if new.address != old.address {
        tracing::warn!(old = %old.address, new = %new.address, "the address has changed");
        let removed = netlink.remove_address(link.index, (old.address, old.prefix)).await;
        if let Err(error) = removed {
            tracing::debug!(reason = %error, "the old address was gone already");
        }
    }
    apply(&netlink, link, new).await
}

pub(super) async fn apply(netlink: &Netlink, link: &Link, given: &Address) -> Result<(), Error> {
    let what = |what: String| Error::netlink(format!("{what} on {}", link.name));
    netlink
        .add_address(link.index, (given.address, given.prefix))
        .await
        .map_err(what(format!("set the address {}", given.address)))?;
    if let Some(router) = given.router {
        netlink
            .set_default_route(link.index, router)
            .await
            .map_err(what(format!("set the default route by {router}")))?;
    }
    if !given.name_servers.is_empty() {
        let lines: String =
            given.name_servers.iter().map(|server| format!("nameserver {server}\n")).collect();
        if let Err(error) = std::fs::write(RESOLV_CONF, lines) {
            tracing::warn!(reason = %error, "cannot write the name servers");
        }
    }
    Ok(())
}

/// Discover, offer, request, acknowledge.
async fn obtain(link: &Link, caller: &Caller, patience: Duration) -> Result<Lease, Error> {
    let mut exchange = Exchange::new(link, caller, patience)?;
    loop {
        let Heard::Offer(offer) =
            exchange.ask(Say::Discover, |heard| matches!(heard, Heard::Offer(_))).await?
        else {
            continue;
        };
        let say = Say::Request { address: offer.address.address, server: offer.server };
        match exchange.ask(say, |heard| !matches!(heard, Heard::Offer(_))).await? {
            Heard::Ack(lease) => return Ok(lease),
            _ => tracing::warn!(server = %offer.server, "the server withdrew its offer"),
        }
    }
}

/// `None` when the server refuses.
async fn renew(
    link: &Link,
    caller: &Caller,
    lease: &Lease,
    patience: Duration,
) -> Result<Option<Lease>, Error> {
    let mut exchange = Exchange::new(link, caller, patience)?;
    let say = Say::Renew { address: lease.address.address };
    match exchange.ask(say, |heard| !matches!(heard, Heard::Offer(_))).await? {
        Heard::Ack(next) => Ok(Some(next)),
        _ => Ok(None),
    }
}

struct Exchange<'a> {
    link: &'a Link,
    socket: UdpSocket,
    client: Client<'a>,
    begun: Instant,
    patience: Duration,
}

impl<'a> Exchange<'a> {
    fn new(link: &'a Link, caller: &'a Caller, patience: Duration) -> Result<Self, Error> {
        let socket = open(&link.name)
            .map_err(Error::io(format!("open port {CLIENT_PORT} on {}", link.name)))?;
        // A random id, so that machines started by one switch do not share answers.
        let id = u32::from_str_radix(&stdx::random_hex(4), 16).unwrap_or_default();
        let client = Client { id, mac: link.mac, caller };
        Ok(Self { link, socket, client, begun: Instant::now(), patience })
    }

    /// Say it, and again with longer waits, until a wanted answer comes.
    async fn ask(&mut self, say: Say, wanted: fn(&Heard) -> bool) -> Result<Heard, Error> {
        let mut wait = Backoff::new(FIRST_ANSWER, LONGEST_ANSWER);
        let everybody = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::BROADCAST, SERVER_PORT));
        while self.begun.elapsed() < self.patience {
            let elapsed = u16::try_from(self.begun.elapsed().as_secs()).unwrap_or(u16::MAX);
            let message = dhcp::encode(say, self.client, elapsed);
            if let Err(error) = self.socket.send_to(&message, everybody).await {
                tracing::warn!(reason = %error, "cannot send a DHCP message");
            }
            let answer = tokio::time::timeout(wait.next_wait(), self.answer(wanted)).await;
            if let Ok(heard) = answer {
                return Ok(heard);
            }
        }
        Err(no_answer(&self.link.name, self.patience))
    }

    async fn answer(&self, wanted: fn(&Heard) -> bool) -> Heard {
        let mut buffer = [0; LONGEST_MESSAGE];
        loop {
            let Ok(count) = self.socket.recv(&mut buffer).await else { continue };
            match dhcp::decode(&buffer[..count], self.client.id, self.client.mac) {
                Some(heard) if wanted(&heard) => return heard,
                _ => {}
            }
        }
    }
}

fn no_answer(interface: &str, patience: Duration) -> Error {
    let seconds = patience.as_secs();
    Error::NoAddress { reason: format!("no DHCP server answered on {interface} for {seconds} s") }
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

#[cfg(test)]
mod tests {
    use super::left_over;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn the_address_of_a_former_lease_is_removed() {
        let given = Ipv4Addr::new(10, 0, 0, 9);
        let all = ["10.0.0.9", "10.0.0.5", "169.254.7.7", "fe80::1", "192.168.1.4"];
        let all: Vec<(IpAddr, u8)> = all.iter().map(|it| (it.parse().unwrap(), 24)).collect();
        let former = [([10, 0, 0, 5].into(), 24), ([192, 168, 1, 4].into(), 24)];
        assert_eq!(left_over(&all, given), former);
        assert_eq!(left_over(&all[..1], given), []);
    }
}
