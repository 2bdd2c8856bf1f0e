//! DHCPv6 for machines that the box knows: fixed addresses (RFC 8415, stateful) and the boot file
//! URL (RFC 5970) for UEFI's PXE and HTTP Boot clients, and iPXE.
//!
//! Firmware sends requests even if no router advertises. iPXE sends requests only after an
//! advertisement with the M or O flag, and otherwise uses IPv4.
//!
//! Never: an answer to a machine that the [`Directory`] does not know. Enter at [`run`] (sockets)
//! or [`Engine`] (bytes). Inside: `message` checks bytes, `client` identifies and classifies the
//! client, `engine` answers.

mod client;
mod engine;
mod message;
mod service;

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use stdx::MacAddr;

use crate::messages::client::Stage;
use crate::reservation::{DEFAULT_LEASE_SECS, Netboot};

pub use client::Identity;
pub use engine::Engine;
pub use message::Malformed;
pub use service::run;

/// Configuration of the DHCPv6 service, with the addresses and ports of other boot services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Name of the interface to serve. The service reads from and sends to no other interface.
    pub interface: String,
    /// The box's IPv6 address in every URL. Clients must reach it with the addresses that they get.
    pub server: Ipv6Addr,
    /// TCP port of the URLs in answers.
    pub http_port: u16,
    /// Loader file by client architecture (option 61); takes precedence over [`crate::BINARIES`].
    pub binaries: BTreeMap<u16, String>,
}

/// Lookup of machines. The service calls it once for each packet, so it must answer from memory.
pub trait Directory: Send + Sync + 'static {
    /// Returns the reservation of a known machine; `None` if this identity is unknown.
    fn find(&self, identity: Identity) -> Option<Reservation>;
}

/// Reservation for one network interface of a known machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// MAC address of the interface, which is part of the URLs.
    pub mac: MacAddr,
    /// Reserved IPv6 address of the interface.
    pub address: Ipv6Addr,
    /// Preferred and valid lifetime of the address, in seconds; 0 means
    /// [`crate::DEFAULT_LEASE_SECS`].
    pub lease_secs: u32,
    /// DNS servers (option 23), in order of preference.
    pub name_servers: Vec<Ipv6Addr>,
    /// Permission to boot from the network.
    pub netboot: Netboot,
    /// Loader file for this machine, for any architecture; `None`: the architecture decides.
    pub ipxe_binary: Option<String>,
}

impl Reservation {
    /// Creates a reservation of an address only: netboot not allowed, a day's lease.
    pub fn new(mac: MacAddr, address: Ipv6Addr) -> Self {
        Self {
            mac,
            address,
            lease_secs: DEFAULT_LEASE_SECS,
            name_servers: Vec::new(),
            netboot: Netboot::NotAllowed,
            ipxe_binary: None,
        }
    }
}

/// Receiver of events. The service calls it from its only task, so it must not block.
pub trait Observer: Send + Sync + 'static {
    /// Receives an event; events arrive in the order of the packets.
    fn observe(&self, event: Event);
}

/// DHCPv6 exchange with a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An unknown machine sent a request and got no answer. Each machine whose MAC address is known
    /// is reported once a minute at most.
    Unknown {
        /// MAC of the client.
        mac: MacAddr,
    },
    /// A known machine was offered its address.
    Offered {
        /// MAC of the client.
        mac: MacAddr,
        /// Kind of the client program.
        stage: Stage,
    },
    /// The machine got its address, or a confirmation that the address is right.
    Replied {
        /// MAC of the client.
        mac: MacAddr,
        /// Kind of the client program.
        stage: Stage,
        /// URL of the boot file.
        url: Option<String>,
    },
    /// The machine released its address, or declined it because another station uses it.
    Ended {
        /// MAC of the client.
        mac: MacAddr,
        /// True if another station uses the address.
        declined: bool,
    },
}
