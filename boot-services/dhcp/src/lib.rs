//! DHCPv4 server for machines that boot from the network. Addresses come from reservations, from
//! pools by durable leases, or from another server, to whose leases the box adds boot files.
//! Options direct firmware (PXE, HTTP Boot, iPXE) to the box's loader and script. Router
//! advertisements keep iPXE from waiting for an IPv6 router.
//!
//! Never: one address to two machines; a refusal to a client of another server; a lease promised
//! before it is durable; a panic, a growing table or an unbounded reply because of a packet; a
//! second server on a network: [`foreign`] watches, the caller sets the [`ServeMode`].
//!
//! Enter at [`Service`] (sockets) or at [`Engine`] (bytes in, bytes and destinations out, for tests
//! and simulation). Inside: `messages` checks requests, classifies the client program and encodes
//! replies. `engine` decides for reservations, pools and proxies, chooses the boot file, and limits
//! rates. `leases` has the address table, the pools and the file. `server` delays answers until
//! leases are stored. [`arp`] checks that an address is free, [`v6`] is the DHCPv6 service.

pub mod arp;
mod config;
mod engine;
mod error;
mod events;
pub mod foreign;
mod leases;
mod messages;
mod reservation;
mod server;
mod sockets;
pub mod v6;
#[cfg(test)]
mod vectors;

pub use config::subnet::{DEFAULT_POOL_LEASE_SECS, MAX_POOL_ADDRESSES, MAX_SUBNETS, Range, Subnet};
pub use config::{Config, DEFAULT_HTTP_PORT, Mode};
pub use engine::bootfile::{BINARIES, NOT_ALLOWED_FILE};
pub use engine::{Destination, Engine, Outgoing, Output, ServeMode, Sizes};
pub use error::Error;
pub use events::{DhcpEvent, DropReason, Observer};
pub use leases::file::LeaseFile;
pub use leases::{Change, Lease, LeaseClock, LeaseCounts, LeaseState, LeaseStore};
pub use messages::client::Stage;
pub use messages::request::Malformed;
pub use reservation::{
    DEFAULT_LEASE_SECS, Directory, FixedAddress, InvalidPrefix, Netboot, Prefix, Reservation, Route,
};
pub use server::{CheckResult, Checker, Service};
