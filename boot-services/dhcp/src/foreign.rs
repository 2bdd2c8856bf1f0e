//! Watches for other DHCP servers: probes a network before leases are given, and listens all the
//! time.
//!
//! Rules: a network is probed before it is served. A server that answers stops leases at once, and
//! only a person resumes them. A server that only a client names holds leases until a probe has
//! looked for it. An unplugged cable makes the network unknown. Where the box only adds boot files
//! to another server's leases ([`Role::Proxy`]), that server is expected, and reported.
//!
//! Enter at [`watch`] (sockets). Inside: `evidence` reads frames, `probe` sends DISCOVERs, `state`
//! is the state table, `watcher` has the clocks, `record` survives a restart, `carrier` watches the
//! link.

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

/// Configuration of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Name of the interface. It needs no address. Ports of a bridge receive nothing: name the
    /// bridge.
    pub interface: String,
    /// Role of the box on the network.
    pub role: Role,
    /// Start condition: fresh, or after a person resumed the service.
    pub start: Start,
    /// Server identifiers of the box, on this interface and its others.
    pub servers: Vec<Ipv4Addr>,
    /// Hardware addresses of the box's other interfaces, which may lead to the same network; this
    /// interface's own is known.
    pub macs: Vec<MacAddr>,
    /// A file for what must outlive a restart: one for each interface, in a folder that exists.
    /// `None`: every start probes first, and a stop does not outlive the process.
    pub record: Option<PathBuf>,
}

/// Role of the box on a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The box gives addresses (modes `reserved` and `pool`).
    Leases,
    /// The box adds boot files to another server's leases (mode `proxy`).
    Proxy,
}

/// Start condition of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The program starts again: a stop stays in effect. If a probe was clean in the last 10
    /// minutes, and the cable was not unplugged since, the box serves during the next probe.
    Resume,
    /// A person arms the interface or changes its mode: earlier results do not count, and the
    /// network is probed.
    Arm,
}
