//! DHCP client that obtains and renews the lease of an interface, and setup of fixed addresses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use stdx::{Backoff, MacAddr};
use tokio::net::UdpSocket;

use super::dhcp::{self, Client, ClientMessage, Lease, ServerResponse};
use super::link::{self, Link};
use super::netlink::Netlink;
use super::{Address, Addressing, ClientIdentity, InterfaceConfig, InterfaceSelector, NAME_MAX};
use crate::Error;

const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;
/// Wait for a response to the first message; doubled for each retry. RFC 2131 section 4.1 begins
/// with 4 s, which is too long on a local switch.
const FIRST_ANSWER: Duration = Duration::from_secs(1);
/// Maximum wait for a response.
const LONGEST_ANSWER: Duration = Duration::from_secs(8);
/// Time without a lease after which the client returns an error.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum length of a received message in bytes.
const LONGEST_MESSAGE: usize = 1500;
/// Configuration file of the resolver, which gets the name servers.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Interface with a configured address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredInterface {
    link: Link,
    address: Address,
    /// DHCP lease and identity of the client, or `None` for a fixed address.
    lease: Option<(Lease, ClientIdentity)>,
}

impl ConfiguredInterface {
    /// Returns the hardware address of the interface.
    pub fn mac(&self) -> MacAddr {
        self.link.mac
    }

    /// Returns the IPv4 address of the interface.
    pub fn address(&self) -> Ipv4Addr {
        self.address.address
    }

    /// Returns the name of the interface.
    pub fn interface(&self) -> &str {
        &self.link.name
    }

    /// Returns the NTP servers from the DHCP lease. Empty for a fixed address.
    pub fn time_servers(&self) -> &[Ipv4Addr] {
        self.lease.as_ref().map_or(&[], |(lease, _)| &lease.time_servers)
    }
}

/// Brings up an interface and configures its address. Waits at most 60 s for a DHCP server.
///
/// # Errors
/// The interface does not exist or has no link, or no DHCP server responds.
pub async fn configure(wanted: InterfaceConfig) -> Result<ConfiguredInterface, Error> {
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
    Ok(ConfiguredInterface { link, address, lease: lease.map(|lease| (lease, wanted.caller)) })
}

/// Removes the addresses that an earlier process left on the interface. Their leases may have
/// ended, and no process renews them.
async fn forget_others(netlink: &Netlink, link: &Link, given: Ipv4Addr) {
    let seen = super::look().await.unwrap_or_default();
    let seen = seen.into_iter().find(|seen| seen.link.index == link.index);
    for other in left_over(&seen.map(|seen| seen.addresses).unwrap_or_default(), given) {
        let (interface, address) = (&link.name, other.0);
        tracing::info!(interface, %address, "removing an old address");
        if let Err(error) = netlink.remove_address(link.index, other).await {
            tracing::warn!(interface, %address, reason = %error, "cannot remove an old address");
        }
    }
}

/// Returns the IPv4 addresses other than `given`. Link-local addresses are skipped, because
/// `link_local` removes them.
fn left_over(addresses: &[(IpAddr, u8)], given: Ipv4Addr) -> Vec<(Ipv4Addr, u8)> {
    let all = addresses.iter().filter_map(|(address, prefix)| match address {
        IpAddr::V4(address) => Some((*address, *prefix)),
        IpAddr::V6(_) => None,
    });
    all.filter(|(address, _)| *address != given && !address.is_link_local()).collect()
}

/// Sets a fixed address on the interface `name`, with or without a link.
///
/// # Errors
/// The interface does not exist, or the kernel refuses the address.
pub async fn assign(name: &str, address: &Address) -> Result<(), Error> {
    let found = link::links().into_iter().find(|link| link.name == name);
    let link = found.ok_or_else(|| Error::NoAddress {
        reason: format!("{} does not exist", InterfaceSelector::Name(name.to_owned())),
    })?;
    let netlink = Netlink::open()?;
    netlink.up(link.index).await?;
    apply(&netlink, &link, address).await
}

/// Returns the name `<parent>.<id>` of a VLAN interface. The parent's part is cut at [`NAME_MAX`].
pub(super) fn vlan_name(parent: &str, id: u16) -> String {
    let room = NAME_MAX - 1 - id.to_string().len();
    format!("{}.{id}", &parent[..parent.floor_char_boundary(room)])
}

/// Renews the lease until the process ends, and obtains a new lease when the old one is lost.
/// Returns immediately for a fixed address.
///
/// The address of an expired lease is removed even if connections use it. The server may have given
/// the address to another machine (RFC 2131 section 4.4.5).
pub async fn keep(configured: ConfiguredInterface) {
    let ConfiguredInterface { link, lease: Some((mut lease, caller)), .. } = configured else {
        return;
    };
    let mut begun = Instant::now();
    loop {
        let length = Duration::from_secs(lease.seconds.into());
        tokio::time::sleep(length / 3).await;
        let asked = Instant::now();
        let next = match renew(&link, &caller, &lease, length / 3).await {
            Ok(Some(next)) => Some(next),
            // No response for a third of the lease time. The client broadcasts a DISCOVER until the
            // lease ends.
            Err(_) => obtain(&link, &caller, length.saturating_sub(begun.elapsed())).await.ok(),
            // The server refused (NAK). The address may belong to another machine.
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
        tracing::warn!(reason = %stdx::chain(&error), "cannot remove the address");
    }
}

/// Repeats the request for a lease until a server grants a lease.
async fn obtain_at_last(link: &Link, caller: &ClientIdentity) -> Lease {
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
            tracing::debug!(reason = %error, "the old address was already removed");
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

/// Runs the exchange of DISCOVER, OFFER, REQUEST and ACK.
async fn obtain(
    link: &Link,
    caller: &ClientIdentity,
    wait_limit: Duration,
) -> Result<Lease, Error> {
    let mut exchange = Exchange::new(link, caller, wait_limit)?;
    loop {
        let ServerResponse::Offer(offer) = exchange
            .ask(ClientMessage::Discover, |response| matches!(response, ServerResponse::Offer(_)))
            .await?
        else {
            continue;
        };
        let say = ClientMessage::Request { address: offer.address.address, server: offer.server };
        match exchange.ask(say, |response| !matches!(response, ServerResponse::Offer(_))).await? {
            ServerResponse::Ack(lease) => return Ok(lease),
            _ => tracing::warn!(server = %offer.server, "the server withdrew its offer"),
        }
    }
}

/// Renews a lease. Returns `None` if the server refuses.
async fn renew(
    link: &Link,
    caller: &ClientIdentity,
    lease: &Lease,
    wait_limit: Duration,
) -> Result<Option<Lease>, Error> {
    let mut exchange = Exchange::new(link, caller, wait_limit)?;
    let say = ClientMessage::Renew { address: lease.address.address };
    match exchange.ask(say, |response| !matches!(response, ServerResponse::Offer(_))).await? {
        ServerResponse::Ack(next) => Ok(Some(next)),
        _ => Ok(None),
    }
}

struct Exchange<'a> {
    link: &'a Link,
    socket: UdpSocket,
    client: Client<'a>,
    begun: Instant,
    wait_limit: Duration,
}

impl<'a> Exchange<'a> {
    fn new(
        link: &'a Link,
        caller: &'a ClientIdentity,
        wait_limit: Duration,
    ) -> Result<Self, Error> {
        let socket = open(&link.name)
            .map_err(Error::io(format!("open port {CLIENT_PORT} on {}", link.name)))?;
        // A random ID, so that machines that start at the same time do not accept each other's
        // responses.
        let id = u32::from_str_radix(&stdx::random_hex(4), 16).unwrap_or_default();
        let client = Client { id, mac: link.mac, caller };
        Ok(Self { link, socket, client, begun: Instant::now(), wait_limit })
    }

    /// Sends a message until a response matches `wanted`. The waits between repetitions double.
    async fn ask(
        &mut self,
        say: ClientMessage,
        wanted: fn(&ServerResponse) -> bool,
    ) -> Result<ServerResponse, Error> {
        let mut wait = Backoff::new(FIRST_ANSWER, LONGEST_ANSWER);
        let everybody = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::BROADCAST, SERVER_PORT));
        while self.begun.elapsed() < self.wait_limit {
            let elapsed = u16::try_from(self.begun.elapsed().as_secs()).unwrap_or(u16::MAX);
            let message = dhcp::encode(say, self.client, elapsed);
            if let Err(error) = self.socket.send_to(&message, everybody).await {
                tracing::warn!(reason = %error, "cannot send a DHCP message");
            }
            let answer = tokio::time::timeout(wait.next_wait(), self.answer(wanted)).await;
            if let Ok(response) = answer {
                return Ok(response);
            }
        }
        Err(no_answer(&self.link.name, self.wait_limit))
    }

    async fn answer(&self, wanted: fn(&ServerResponse) -> bool) -> ServerResponse {
        let mut buffer = [0; LONGEST_MESSAGE];
        loop {
            let Ok(count) = self.socket.recv(&mut buffer).await else { continue };
            match dhcp::decode(&buffer[..count], self.client.id, self.client.mac) {
                Some(response) if wanted(&response) => return response,
                _ => {}
            }
        }
    }
}

fn no_answer(interface: &str, wait_limit: Duration) -> Error {
    let seconds = wait_limit.as_secs();
    Error::NoAddress { reason: format!("no DHCP server answered on {interface} for {seconds} s") }
}

/// Opens a socket that works on one interface before the interface has an address.
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
