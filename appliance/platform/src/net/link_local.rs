//! IPv4 link-local address (RFC 3927) for a network without a DHCP server. A person can then find
//! the box with only a cable.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use stdx::MacAddr;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, timeout_at};

use super::arp::ArpMessage;
use super::link::{self, Link};
use super::netlink::Netlink;
use super::{Address, InterfaceSelector, lease};
use crate::{Error, sys};

/// Time for a DHCP server to respond before the box takes a link-local address.
const SERVER_FIRST: Duration = Duration::from_secs(10);
/// Number of probes and interval between them (RFC 3927 section 9: PROBE_NUM, PROBE_MIN to
/// PROBE_MAX).
const PROBES: u32 = 3;
const PROBE_EVERY: Duration = Duration::from_millis(1500);
/// Wait for the response to the probe of an address that this machine uses.
const CONFLICT_WAIT: Duration = Duration::from_secs(1);
/// Wait after the last probe (ANNOUNCE_WAIT).
const LISTEN: Duration = Duration::from_secs(2);
/// Number of announcements and interval between them (ANNOUNCE_NUM, ANNOUNCE_INTERVAL).
const ANNOUNCEMENTS: u32 = 2;
const ANNOUNCE_EVERY: Duration = Duration::from_secs(2);
/// Period in which a second conflict makes the box give up its address (DEFEND_INTERVAL).
const DEFEND: Duration = Duration::from_secs(10);
/// Number of addresses tried without delay, and the delay before each later address (MAX_CONFLICTS,
/// RATE_LIMIT_INTERVAL).
const HASTE: u32 = 10;
const SLOWLY: Duration = Duration::from_secs(60);
/// Wait before the next attempt after an error.
const RETRY: Duration = Duration::from_secs(2);
const PREFIX: u8 = 16;
/// Maximum length of an ARP frame with Ethernet padding, in bytes.
const FRAME_MAX: usize = 64;

/// Configures a link-local address on this interface if no DHCP server responds. Takes an unused
/// address of 169.254.0.0/16 and defends it. Never returns. [`leave`] removes the address.
pub async fn stand_in(interface: InterfaceSelector) -> Infallible {
    let mut is_logged = false;
    loop {
        if let Err(error) = hold(&interface).await
            && !std::mem::replace(&mut is_logged, true)
        {
            tracing::info!(reason = %stdx::chain(&error), "no link-local address yet");
        }
        sleep(RETRY).await;
    }
}

/// Removes the link-local addresses of this interface after it got a better address.
pub async fn leave(interface: &str) {
    let Ok(all) = super::look().await else { return };
    let Some(seen) = all.into_iter().find(|seen| seen.link.name == interface) else { return };
    for (address, prefix) in seen.addresses {
        let std::net::IpAddr::V4(address) = address else { continue };
        if !address.is_link_local() {
            continue;
        }
        let removed = match Netlink::open() {
            Ok(netlink) => netlink.remove_address(seen.link.index, (address, prefix)).await.is_ok(),
            Err(_) => false,
        };
        tracing::info!(interface, %address, removed, "the link-local address is not needed");
    }
}

async fn hold(interface: &InterfaceSelector) -> Result<Infallible, Error> {
    let netlink = Netlink::open()?;
    let link = link::choose(&netlink, interface).await?;
    sleep(SERVER_FIRST).await;
    let mut wire = ArpSocket::open(&link)?;
    for attempt in 0_u32.. {
        if attempt >= HASTE {
            sleep(SLOWLY).await;
        }
        let address = candidate(link.mac, attempt);
        if wire.holder(address).await?.is_some() {
            continue;
        }
        let given = Address { address, prefix: PREFIX, router: None, name_servers: Vec::new() };
        lease::apply(&netlink, &link, &given).await?;
        tracing::info!(interface = link.name, %address, "no DHCP reply: using this address");
        wire.defend(address).await?;
        tracing::warn!(interface = link.name, %address, "another machine uses our address");
        // The address may already be gone if the link is gone.
        let _ = netlink.remove_address(link.index, (address, PREFIX)).await;
    }
    Err(Error::NoAddress { reason: format!("every link-local address of {} is in use", link.name) })
}

/// Returns the address to try, derived from the hardware address and `attempt`, so that a machine
/// keeps its address over restarts (RFC 3927 section 2.1). The first and the last 256 are reserved.
fn candidate(mac: MacAddr, attempt: u32) -> Ipv4Addr {
    let digest = Sha256::new().chain_update(mac.0).chain_update(attempt.to_be_bytes()).finalize();
    let chance = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    let first = u32::from(Ipv4Addr::new(169, 254, 1, 0));
    Ipv4Addr::from(first + chance % (254 << 8))
}

/// Packet socket for the ARP messages of one interface.
pub(super) struct ArpSocket {
    mac: MacAddr,
    name: String,
    socket: UdpSocket,
}

impl ArpSocket {
    pub(super) fn open(link: &Link) -> Result<Self, Error> {
        let failed = |error: io::Error| {
            Error::io::<io::Error>(format!("listen for ARP on {}", link.name))(error)
        };
        let socket = sys::arp_socket(link.index).map_err(failed)?;
        // The packet socket is wrapped as a UDP socket, because send and receive work in the same
        // way.
        let socket = UdpSocket::from_std(socket.into()).map_err(failed)?;
        Ok(Self { mac: link.mac, name: link.name.clone(), socket })
    }

    /// Probes an address. Returns the machine that uses or probes it; `None` for a free address.
    pub(super) async fn holder(&mut self, address: Ipv4Addr) -> Result<Option<MacAddr>, Error> {
        let contests = |message: &ArpMessage, mac| message.contests(address, mac);
        for probe in 1..=PROBES {
            self.send(ArpMessage::probe(self.mac, address)).await?;
            let wait = if probe == PROBES { LISTEN } else { PROBE_EVERY };
            if let Some(mac) = self.hears(Instant::now() + wait, contests).await? {
                return Ok(Some(mac));
            }
        }
        Ok(None)
    }

    /// Probes an address that this machine uses. Returns another machine that answers for the
    /// address. A probe of another machine is not an answer. `own` has the MACs of this machine.
    pub(super) async fn other_user(
        &mut self,
        address: Ipv4Addr,
        own: &[MacAddr],
    ) -> Result<Option<MacAddr>, Error> {
        self.send(ArpMessage::probe(self.mac, address)).await?;
        let uses =
            |message: &ArpMessage, mac| message.takes(address, mac) && !own.contains(&message.mac);
        self.hears(Instant::now() + CONFLICT_WAIT, uses).await
    }

    /// Announces the address and defends it once. Returns after a second conflict within
    /// [`DEFEND`].
    async fn defend(&mut self, address: Ipv4Addr) -> Result<(), Error> {
        let ours = ArpMessage::announcement(self.mac, address);
        let takes = |message: &ArpMessage, mac| message.takes(address, mac);
        for _ in 0..ANNOUNCEMENTS {
            self.send(ours).await?;
            if self.hears(Instant::now() + ANNOUNCE_EVERY, takes).await?.is_some() {
                break;
            }
        }
        let mut defended: Option<Instant> = None;
        loop {
            let far = Instant::now() + SLOWLY;
            if self.hears(far, takes).await?.is_none() {
                continue;
            }
            if defended.is_some_and(|last| last.elapsed() < DEFEND) {
                return Ok(());
            }
            defended = Some(Instant::now());
            self.send(ours).await?;
        }
    }

    async fn send(&self, message: ArpMessage) -> Result<(), Error> {
        let sent = self.socket.send(&message.encode()).await;
        let what = format!("send ARP on {}", self.name);
        sent.map(drop).map_err(Error::io::<io::Error>(what))
    }

    /// Announces `address` once (RFC 5227 section 3), so that neighbors update their ARP tables.
    pub(super) async fn announce(&self, address: Ipv4Addr) -> Result<(), Error> {
        self.send(ArpMessage::announcement(self.mac, address)).await
    }

    /// Returns the sender of a message that matches `wanted` and arrives before `until`.
    async fn hears(
        &self,
        until: Instant,
        wanted: impl Fn(&ArpMessage, MacAddr) -> bool,
    ) -> Result<Option<MacAddr>, Error> {
        let matching = async {
            let mut frame = [0; FRAME_MAX];
            loop {
                let count = self.socket.recv(&mut frame).await?;
                let message = ArpMessage::decode(frame.get(..count).unwrap_or_default());
                if let Some(message) = message.filter(|message| wanted(message, self.mac)) {
                    return Ok(message.mac);
                }
            }
        };
        match timeout_at(until, matching).await {
            Ok(Ok(mac)) => Ok(Some(mac)),
            Ok(Err(error)) => {
                Err(Error::io::<io::Error>(format!("receive ARP on {}", self.name))(error))
            }
            Err(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_tries_the_same_addresses_each_time() {
        let mac = MacAddr([0x52, 0x54, 0, 1, 2, 3]);
        let tried: Vec<_> = (0..1000).map(|attempt| candidate(mac, attempt)).collect();
        assert_eq!(tried[..10], (0..10).map(|at| candidate(mac, at)).collect::<Vec<_>>()[..]);
        assert_ne!(tried[0], tried[1]);
        assert_ne!(tried[0], candidate(MacAddr([0x52, 0x54, 0, 1, 2, 4]), 0));
        for address in tried {
            assert!(address.is_link_local(), "{address}");
            assert!((1..=254).contains(&address.octets()[2]), "{address} is reserved");
        }
    }
}
