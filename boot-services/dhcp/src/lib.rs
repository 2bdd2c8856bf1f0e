//! DHCPv4 for machines the box knows: fixed addresses from reservations, and the boot options that
//! take a firmware (PXE, HTTP Boot, iPXE) to the box's loader and script. Beside it, the router
//! advertisements that keep iPXE from waiting for an IPv6 router.
//!
//! Never: an answer to a hardware address the [`Directory`] does not know; an address from a pool;
//! a panic, a growing table or an unbounded reply because of what a packet says. Whether the box
//! may serve a network at all is decided elsewhere: this crate serves when [`run`] is called.
//!
//! Enter at [`run`] (sockets) or at [`Engine`] (bytes in, bytes and places out, for tests and
//! simulation). Inside: `options` and `request` check bytes, `client` says what kind of program
//! asks, `bootfile` chooses what it should load, `decide` answers, `reply` encodes, `guard` limits.

mod bootfile;
mod client;
mod config;
mod decide;
mod engine;
mod error;
mod frame;
mod guard;
mod options;
mod ra;
mod reply;
mod request;
mod reservation;
mod seen;
mod server;
mod socket;
#[cfg(test)]
mod vectors;

pub use bootfile::{BINARIES, NOT_ALLOWED_FILE};
pub use client::Stage;
pub use config::{Config, DEFAULT_HTTP_PORT};
pub use engine::{Destination, Engine, Outgoing};
pub use error::Error;
pub use request::Malformed;
pub use reservation::{
    DEFAULT_LEASE_SECS, Directory, InvalidPrefix, Netboot, Prefix, Reservation, Route,
};
pub use seen::{Observer, Seen, Silence};
pub use server::run;
