//! An address for a link where nobody gives one (RFC 3927), so that a box can be found with a cable
//! and nothing else.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use stdx::MacAddr;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, timeout_at};

use super::arp::Said;
use super::link::{self, Link};
use super::netlink::Netlink;
use super::{Address, Which, lease};
use crate::{Error, sys};

/// How long a server may take to give an address before the box takes one of these.
const SERVER_FIRST: Duration = Duration::from_secs(10);
/// Probes, and from each to the next (RFC 3927 section 9: PROBE_NUM, PROBE_MIN to PROBE_MAX).
const PROBES: u32 = 3;
const PROBE_EVERY: Duration = Duration::from_millis(1500);
/// After the last probe (ANNOUNCE_WAIT).
const LISTEN: Duration = Duration::from_secs(2);
/// Announcements and what lies between them (ANNOUNCE_NUM, ANNOUNCE_INTERVAL).
const ANNOUNCEMENTS: u32 = 2;
const ANNOUNCE_EVERY: Duration = Duration::from_secs(2);
/// A second claim within this time is not answered but obeyed (DEFEND_INTERVAL).
const DEFEND: Duration = Duration::from_secs(10);
/// Addresses tried in haste, and how long to wait for each after them (MAX_CONFLICTS,
/// RATE_LIMIT_INTERVAL).
const HASTE: u32 = 10;
const SLOWLY: Duration = Duration::from_secs(60);
/// Between two looks for a link.
const RETRY: Duration = Duration::from_secs(2);
const PREFIX: u8 = 16;
/// The longest ARP frame with Ethernet's padding.
const FRAME_MAX: usize = 64;

/// Stands in for a server on this interface: once no address has come for a while, takes one of
/// 169.254.0.0/16 that nobody has, and defends it. Never ends by itself; [`leave`] takes the
/// address away.
pub async fn stand_in(interface: Which) -> Infallible {
    let mut told = false;
    loop {
        if let Err(error) = hold(&interface).await
            && !std::mem::replace(&mut told, true)
        {
            tracing::info!(reason = %stdx::chain(&error), "no link-local address yet");
        }
        sleep(RETRY).await;
    }
}

/// Takes the link-local addresses of this interface away: it has a better one.
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

async fn hold(interface: &Which) -> Result<Infallible, Error> {
    let netlink = Netlink::open()?;
    let link = link::choose(&netlink, interface).await?;
    sleep(SERVER_FIRST).await;
    let mut wire = Wire::open(&link)?;
    for attempt in 0_u32.. {
        if attempt >= HASTE {
            sleep(SLOWLY).await;
        }
        let address = candidate(link.mac, attempt);
        if !wire.is_free(address).await? {
            continue;
        }
        let given = Address { address, prefix: PREFIX, router: None, name_servers: Vec::new() };
        lease::apply(&netlink, &link, &given).await?;
        tracing::info!(interface = link.name, %address, "nobody gives an address: took this one");
        wire.defend(address).await?;
        tracing::warn!(interface = link.name, %address, "another machine insists on our address");
        // It may be gone with its link.
        let _ = netlink.remove_address(link.index, (address, PREFIX)).await;
    }
    Err(Error::NoAddress { reason: format!("every link-local address of {} is taken", link.name) })
}

/// The address to try: the same for the same machine, so that it is found where it was (RFC 3927
/// section 2.1). The first and the last 256 are reserved.
fn candidate(mac: MacAddr, attempt: u32) -> Ipv4Addr {
    let digest = Sha256::new().chain_update(mac.0).chain_update(attempt.to_be_bytes()).finalize();
    let chance = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    let first = u32::from(Ipv4Addr::new(169, 254, 1, 0));
    Ipv4Addr::from(first + chance % (254 << 8))
}

/// ARP on one link.
struct Wire {
    mac: MacAddr,
    name: String,
    socket: UdpSocket,
}

impl Wire {
    fn open(link: &Link) -> Result<Self, Error> {
        let failed = |error: io::Error| {
            Error::io::<io::Error>(format!("listen for ARP on {}", link.name))(error)
        };
        let socket = sys::arp_socket(link.index).map_err(failed)?;
        // Not UDP; but it is sent to and received from as every socket of datagrams.
        let socket = UdpSocket::from_std(socket.into()).map_err(failed)?;
        Ok(Self { mac: link.mac, name: link.name.clone(), socket })
    }

    /// Whether nobody has the address.
    async fn is_free(&mut self, address: Ipv4Addr) -> Result<bool, Error> {
        let contests = |said: &Said, mac| said.contests(address, mac);
        for probe in 1..=PROBES {
            self.say(Said::probe(self.mac, address)).await?;
            let wait = if probe == PROBES { LISTEN } else { PROBE_EVERY };
            if self.hears(Instant::now() + wait, contests).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Announces the address and insists on it once; returns when somebody else insists twice.
    async fn defend(&mut self, address: Ipv4Addr) -> Result<(), Error> {
        let ours = Said::announcement(self.mac, address);
        let takes = |said: &Said, mac| said.takes(address, mac);
        for _ in 0..ANNOUNCEMENTS {
            self.say(ours).await?;
            if self.hears(Instant::now() + ANNOUNCE_EVERY, takes).await? {
                break;
            }
        }
        let mut defended: Option<Instant> = None;
        loop {
            let far = Instant::now() + SLOWLY;
            if !self.hears(far, takes).await? {
                continue;
            }
            if defended.is_some_and(|last| last.elapsed() < DEFEND) {
                return Ok(());
            }
            defended = Some(Instant::now());
            self.say(ours).await?;
        }
    }

    async fn say(&self, said: Said) -> Result<(), Error> {
        let sent = self.socket.send(&said.encode()).await;
        let what = format!("speak ARP on {}", self.name);
        sent.map(drop).map_err(Error::io::<io::Error>(what))
    }

    /// Whether something `wanted` is said before `until`.
    async fn hears(
        &self,
        until: Instant,
        wanted: impl Fn(&Said, MacAddr) -> bool,
    ) -> Result<bool, Error> {
        let heard = async {
            let mut frame = [0; FRAME_MAX];
            loop {
                let count = self.socket.recv(&mut frame).await?;
                let said = Said::decode(frame.get(..count).unwrap_or_default());
                if said.is_some_and(|said| wanted(&said, self.mac)) {
                    return Ok(());
                }
            }
        };
        match timeout_at(until, heard).await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(error)) => {
                Err(Error::io::<io::Error>(format!("hear ARP on {}", self.name))(error))
            }
            Err(_) => Ok(false),
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
