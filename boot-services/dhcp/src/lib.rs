//! DHCPv4 for machines that boot from the network. Addresses come from reservations, or from pools
//! by durable leases, or from another server that the box adds boot files to. Options lead firmware
//! (PXE, HTTP Boot, iPXE) to the box's loader and script. Router advertisements keep iPXE from
//! waiting for an IPv6 router.
//!
//! Never: one address to two machines; a refusal to a client of another server; a lease promised
//! before it is durable; a panic, a growing table or an unbounded reply because of a packet; a
//! second server on a network: [`foreign`] watches, the caller closes the [`Gate`].
//!
//! Enter at [`Service`] (sockets) or at [`Engine`] (bytes in, bytes and destinations out, for tests
//! and simulation). Inside: `options` and `request` validate bytes, `client` classifies the
//! program, `bootfile` chooses its boot file. `decide` answers for reservations, `engine` for pools
//! and proxies. `table` and `pool` choose addresses, `lease` defines leases, `lease_file` stores
//! them, and `promises` holds answers until they are stored. `reply` encodes, `rate_limiter` limits
//! rates. [`arp`] checks that an address is free, [`v6`] is the service for DHCPv6.

pub mod arp;
mod bootfile;
mod checks;
mod client;
mod config;
mod decide;
mod engine;
mod error;
pub mod foreign;
mod frame;
mod lease;
mod lease_file;
mod options;
#[cfg(test)]
mod oracle;
mod packet;
mod pool;
mod promises;
mod ra;
mod rate_limiter;
mod reply;
mod request;
mod reservation;
mod seen;
mod server;
mod socket;
mod subnet;
mod table;
pub mod v6;
#[cfg(test)]
mod vectors;

pub use bootfile::{BINARIES, NOT_ALLOWED_FILE};
pub use client::Stage;
pub use config::{Config, DEFAULT_HTTP_PORT, Mode};
pub use engine::{Destination, Engine, Gate, Outgoing, Output, Sizes};
pub use error::Error;
pub use lease::{Bound, Change, Lease, LeaseClock, LeaseState, LeaseStore};
pub use lease_file::LeaseFile;
pub use request::Malformed;
pub use reservation::{
    DEFAULT_LEASE_SECS, Directory, Fixed, InvalidPrefix, Netboot, Prefix, Reservation, Route,
};
pub use seen::{Observer, Seen, Silence};
pub use server::{Checked, Checker, Service};
pub use subnet::{DEFAULT_POOL_LEASE_SECS, MAX_POOL_ADDRESSES, MAX_SUBNETS, Range, Subnet};
