//! What the service needs to know about the box.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// TCP port of the box's boot files and scripts (Tinkerbell's own).
pub const DEFAULT_HTTP_PORT: u16 = 7080;

/// Where to serve, and where clients find the other boot services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Interface to serve: nothing is read from or sent to any other.
    pub interface: String,
    /// The box's own address on that interface: server identifier (option 54), next server
    /// (`siaddr`), TFTP server, and the host of every URL handed out.
    pub server: Ipv4Addr,
    /// TCP port of the URLs handed out.
    pub http_port: u16,
    /// Where machines should send syslog (option 7).
    pub syslog: Option<Ipv4Addr>,
    /// Loader file by client architecture (option 93), before [`crate::BINARIES`].
    pub binaries: BTreeMap<u16, String>,
    /// Answer IPv6 router solicitations, so that iPXE does not wait for a router (16 s in the 2019
    /// build, 4 s in current ones). The advertisement makes the box nobody's router and, without a
    /// prefix, gives nobody an address.
    pub router_advertisements: bool,
    /// A /64 to advertise for address autoconfiguration. `None` is enough to end iPXE's wait.
    pub ra_prefix: Option<Ipv6Addr>,
}

impl Config {
    /// Defaults for serving `interface`, on which the box has the address `server`.
    pub fn new(interface: impl Into<String>, server: Ipv4Addr) -> Self {
        Self {
            interface: interface.into(),
            server,
            http_port: DEFAULT_HTTP_PORT,
            syslog: None,
            binaries: BTreeMap::new(),
            router_advertisements: true,
            ra_prefix: None,
        }
    }
}
