//! Watch for other DHCP servers: probes a network before leases are given, and always listens.
//!
//! Rules: a network is probed before it is served. A foreign server that answers stops leases at
//! once, and only a person resumes them. A foreign server that only a client names suspends leases
//! until a probe ends without an answer. An unplugged cable makes the network unknown. In proxy
//! mode ([`Role::Proxy`]) another server is expected, and only reported.
//!
//! Enter at [`watch`] (sockets). Inside: `evidence` reads frames, `probe` sends DISCOVERs, `state`
//! is the state table, `watcher` handles time, `record` survives a restart, `carrier` is the link.

mod carrier;
mod evidence;
mod probe;
mod record;
mod sockets;
mod state;
mod watcher;

use std::net::Ipv4Addr;
use std::path::PathBuf;

use stdx::MacAddr;

pub(crate) use carrier::Monitor;
pub use evidence::{OwnServers, Sighting, sighting};
pub use sockets::watch;
pub use state::{Event, Foreign, Hold, Neighbor, Permit, State};

/// Configuration of the watch of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Name of the interface, which needs no IP address. Must be a bridge itself, not one of its
    /// ports, because the ports of a bridge receive nothing.
    pub interface: String,
    /// Role of the box on the network.
    pub role: Role,
    /// Start condition: a restart of the program, or a person's request.
    pub start: Start,
    /// Server identifiers (IPv4 addresses) of the box, on this interface and its others.
    pub servers: Vec<Ipv4Addr>,
    /// MAC addresses of the box's other interfaces, which may lead to the same network. This
    /// interface's MAC address is added automatically.
    pub macs: Vec<MacAddr>,
    /// File for the state that survives a restart, one for each interface, in an existing folder.
    /// `None`: every start probes first, and a stop ends with the process.
    pub record: Option<PathBuf>,
}

/// Role of the box on a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The box assigns addresses (modes `reserved` and `pool`).
    Leases,
    /// The box adds boot files to another server's leases (mode `proxy`).
    Proxy,
}

/// Start condition of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The program restarts: a stop stays in effect. The box serves during the next probe if a
    /// probe found no server in the last 10 minutes and the cable was not unplugged since.
    Resume,
    /// A person resumes the interface or changes its mode: the network is probed in any case.
    Arm,
}
