//! DHCPv6 for machines that the box knows: fixed addresses (RFC 8415, stateful) and the boot file
//! URL (RFC 5970) for UEFI's PXE and HTTP Boot clients, and iPXE.
//!
//! Firmware sends requests whether or not a router advertises. iPXE does so only after an
//! advertisement with the M or O flag, and uses IPv4 otherwise.
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

/// Addresses and ports of the service, and of the other boot services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Interface to serve: nothing is read from or sent to any other.
    pub interface: String,
    /// The box's address in every URL, one that clients reach with the addresses they are given.
    pub server: Ipv6Addr,
    /// TCP port of the URLs.
    pub http_port: u16,
    /// Loader file by client architecture (option 61), before [`crate::BINARIES`].
    pub binaries: BTreeMap<u16, String>,
}

/// Lookup of machines. Called once per packet from the network, so it must answer from memory.
pub trait Directory: Send + Sync + 'static {
    /// Reservation of a known machine; `None` if this identity is unknown.
    fn find(&self, identity: Identity) -> Option<Reservation>;
}

/// One network interface of one known machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The interface's hardware address; it stands in URLs.
    pub mac: MacAddr,
    /// The address it gets, always the same.
    pub address: Ipv6Addr,
    /// Preferred and valid lifetime, in seconds; 0 is read as [`crate::DEFAULT_LEASE_SECS`].
    pub lease_secs: u32,
    /// Option 23, in order of preference.
    pub name_servers: Vec<Ipv6Addr>,
    /// Permission to boot from the network.
    pub netboot: Netboot,
    /// Loader file for this machine, whatever its architecture.
    pub ipxe_binary: Option<String>,
}

impl Reservation {
    /// An address and nothing else: netboot not allowed, a day's lease.
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

/// Receiver of events. Called from the service's only task: it must not block.
pub trait Observer: Send + Sync + 'static {
    /// Receives an event, in the order of the wire.
    fn observe(&self, event: Event);
}

/// An event on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An unknown machine sent a request; its best identity. It got no answer. Each is reported
    /// once a minute at most.
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
    /// The machine got its address, or a confirmation of it.
    Replied {
        /// MAC of the client.
        mac: MacAddr,
        /// Kind of the client program.
        stage: Stage,
        /// URL of the boot file.
        url: Option<String>,
    },
    /// The machine returned its address, or found another station using it.
    Ended {
        /// MAC of the client.
        mac: MacAddr,
        /// True if another station uses the address.
        declined: bool,
    },
}
