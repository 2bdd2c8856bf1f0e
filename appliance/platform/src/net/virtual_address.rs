//! Virtual IPv4 addresses: additional addresses of one host on an interface, which the box takes
//! for a service and may give back. A label marks them in the kernel, so that a later process finds
//! the addresses of an earlier one.

use std::net::{IpAddr, Ipv4Addr};

use futures_util::TryStreamExt as _;
use rtnetlink::packet_route::address::{AddressAttribute, AddressMessage};
use stdx::MacAddr;

use super::link::{self, Link};
use super::link_local::ArpSocket;
use super::netlink::Netlink;
use crate::Error;

/// Label of all virtual addresses (`IFA_LABEL`, at most 15 bytes).
const LABEL: &str = "tinbox-vip";
const PREFIX: u8 = 32;

/// Result of a request for a virtual address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The interface has the address.
    Held,
    /// Another machine uses the address, or probes it at this moment.
    InUse(MacAddr),
}

/// State of an address that the box took earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// The interface has the address, and no other machine answers for the address.
    Held,
    /// The interface lost the address.
    Gone,
    /// The interface has no carrier.
    NoCarrier,
    /// Another machine answers for the address.
    Conflict {
        /// MAC of the other machine in its ARP reply.
        mac: MacAddr,
        /// True if the other machine has the lower MAC. Of two boxes, the one with the lower MAC
        /// keeps the address, so that exactly one gives the address back.
        must_yield: bool,
    },
}

/// Virtual address on an interface.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VirtualAddress {
    /// Name of the interface.
    pub interface: String,
    /// Address, with the prefix length 32.
    pub address: Ipv4Addr,
}

impl VirtualAddress {
    /// Returns the virtual addresses of all Ethernet interfaces, including those of an earlier
    /// process.
    ///
    /// # Errors
    /// The kernel does not list the addresses.
    pub async fn all() -> Result<Vec<Self>, Error> {
        let links = link::links();
        let netlink = Netlink::open()?;
        let mut found = Vec::new();
        let mut all = netlink.0.address().get().execute();
        while let Some(message) = all.try_next().await.map_err(Error::netlink("list addresses"))? {
            let link = links.iter().find(|link| link.index == message.header.index);
            let (Some(link), true) = (link, is_virtual(&message)) else { continue };
            found.extend(message.attributes.iter().find_map(|attribute| match attribute {
                AddressAttribute::Address(IpAddr::V4(address)) => {
                    Some(Self { interface: link.name.clone(), address: *address })
                }
                _ => None,
            }));
        }
        Ok(found)
    }

    /// Adds the address to its interface and announces it, unless another machine answers an ARP
    /// probe for the address. Probes take five seconds. An address that the interface already has
    /// is only announced.
    ///
    /// # Errors
    /// The interface does not exist or has no carrier, ARP cannot be sent, or the kernel refuses
    /// the address.
    pub async fn take(&self) -> Result<Claim, Error> {
        let link = self.link()?;
        // A probe without a carrier gets no response, so each address would look unused.
        if !link::has_carrier(&link.name) {
            return Err(Error::NoAddress {
                reason: format!("network interface {} has no carrier", link.name),
            });
        }
        let mut wire = ArpSocket::open(&link)?;
        if !Self::all().await?.contains(self) {
            if let Some(mac) = wire.holder(self.address).await? {
                return Ok(Claim::InUse(mac));
            }
            let what = format!("set the virtual address {} on {}", self.address, link.name);
            let added = Netlink::open()?.add_labeled(link.index, self.address, LABEL).await;
            added.map_err(Error::netlink(what))?;
        }
        wire.announce(self.address).await?;
        Ok(Claim::Held)
    }

    /// Checks a taken address: the carrier, the addresses of the interface, and the answers to one
    /// ARP probe within a second. Announces the address again if `announce` is set
    /// (RFC 5227 section 2.3 requires two announcements), or if this box wins a conflict.
    ///
    /// # Errors
    /// The kernel does not list the addresses, or ARP cannot be sent.
    pub async fn confirm(&self, announce: bool) -> Result<Confirmation, Error> {
        let Ok(link) = self.link() else { return Ok(Confirmation::Gone) };
        if !link::has_carrier(&link.name) {
            return Ok(Confirmation::NoCarrier);
        }
        if !Self::all().await?.contains(self) {
            return Ok(Confirmation::Gone);
        }
        // The kernel answers on each interface of the same network for all addresses of the box.
        let own: Vec<MacAddr> = link::links().into_iter().map(|link| link.mac).collect();
        let mut wire = ArpSocket::open(&link)?;
        let other = wire.other_user(self.address, &own).await?;
        let confirmation = other.map_or(Confirmation::Held, |mac| Confirmation::Conflict {
            mac,
            must_yield: mac < link.mac,
        });
        let must_yield = matches!(confirmation, Confirmation::Conflict { must_yield: true, .. });
        // The neighbors may have learned the MAC of the other machine.
        if !must_yield && (announce || confirmation != Confirmation::Held) {
            wire.announce(self.address).await?;
        }
        Ok(confirmation)
    }

    /// Removes the address from its interface. Succeeds if the interface no longer exists.
    ///
    /// # Errors
    /// The kernel refuses the change.
    pub async fn give_back(&self) -> Result<(), Error> {
        let Ok(link) = self.link() else { return Ok(()) };
        let what = format!("remove the virtual address {} from {}", self.address, link.name);
        let removed = Netlink::open()?.remove_address(link.index, (self.address, PREFIX)).await;
        removed.map_err(Error::netlink(what))
    }

    fn link(&self) -> Result<Link, Error> {
        let found = link::links().into_iter().find(|link| link.name == self.interface);
        found.ok_or_else(|| Error::NoAddress {
            reason: format!("network interface {} does not exist", self.interface),
        })
    }
}

/// Returns true for an address with the label of virtual addresses.
pub(super) fn is_virtual(message: &AddressMessage) -> bool {
    let is_label = |it: &AddressAttribute| matches!(it, AddressAttribute::Label(it) if it == LABEL);
    message.header.prefix_len == PREFIX && message.attributes.iter().any(is_label)
}
