//! Never a second DHCP server on a network: other servers are looked for before leases are given,
//! and listened for all the time.
//!
//! Rules, in short: a network is probed before it is served; a server that is heard stops leases at
//! once, and only a person lets them begin again; a server that only a client names holds leases
//! until a probe has looked for it; a cable that was out makes the network unknown.
//! Where the box only adds boot files to another's leases ([`Role::Proxy`]) that other is expected,
//! and told about instead.
//!
//! Enter at [`watch`] (sockets). Inside: `evidence` reads frames, `probe` asks, `state` is the
//! table of what follows, `watcher` has the clocks, `record` is what outlives a restart, `carrier`
//! is the cable.

mod carrier;
mod edge;
mod evidence;
mod probe;
mod record;
mod state;
mod watcher;

use std::net::Ipv4Addr;
use std::path::PathBuf;

use stdx::MacAddr;

pub(crate) use carrier::Monitor;
pub use edge::watch;
pub use evidence::{Own, Sighting, sighting};
pub use state::{Event, Foreign, Hold, Neighbour, Permit, State};

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The interface. It needs no address. Of a bridge's ports nothing is heard: name the bridge.
    pub interface: String,
    /// What the box does there.
    pub role: Role,
    /// Whether a person has just asked for it.
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

/// What the box does on a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It gives addresses (modes `reserved` and `pool`).
    Leases,
    /// It adds boot files to another server's leases (mode `proxy`).
    Proxy,
}

/// What a watch begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The program starts again: a stop holds, and after a probe in the last 10 minutes, with the
    /// cable in since, serving goes on while the next one runs.
    Resume,
    /// A person arms the interface or changes its mode: nothing known before counts, it is probed.
    Arm,
}
