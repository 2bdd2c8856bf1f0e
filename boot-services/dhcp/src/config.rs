//! Configuration of the service: the box's addresses and its networks.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::reservation::Prefix;

pub(crate) mod subnet;

use subnet::{Subnet, mistakes};

/// TCP port of the box's boot files and scripts (Tinkerbell's own).
pub const DEFAULT_HTTP_PORT: u16 = 7080;

/// Service mode. A network without service runs no service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Boot files for known machines; another server gives the addresses.
    Proxy,
    /// Addresses and boot files for machines with a reservation.
    Reserved,
    /// As [`Self::Reserved`], and addresses from a pool for all other machines.
    Pool,
}

/// Addresses and ports of the service, and of the other boot services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Interface to serve: nothing is read from or sent to any other.
    pub interface: String,
    /// The box's own address on that interface: server identifier (option 54), next server
    /// (`siaddr`), TFTP server, and the host of every URL handed out.
    pub server: Ipv4Addr,
    /// Service mode of this network.
    pub mode: Mode,
    /// Unknown machines may boot too (modes proxy and pool): they get the loader, then the script
    /// `/ipxe/script/<mac>/auto.ipxe`.
    pub enroll: bool,
    /// The networks of [`Mode::Pool`]: the box's own, and those behind relay agents.
    pub subnets: Vec<Subnet>,
    /// Ask the link whether an address is in use before it is offered for the first time: see
    /// [`crate::Output::Check`].
    pub conflict_checks: bool,
    /// TCP port of the URLs handed out.
    pub http_port: u16,
    /// Syslog server for machines (option 7).
    pub syslog: Option<Ipv4Addr>,
    /// Loader file by client architecture (option 93), before [`crate::BINARIES`].
    pub binaries: BTreeMap<u16, String>,
    /// Answer IPv6 router solicitations, so that iPXE does not wait for a router (16 s in the 2019
    /// build, 4 s in current ones). The advertisement makes the box no default router and, without
    /// a prefix, gives no address.
    pub router_advertisements: bool,
    /// A /64 to advertise for address autoconfiguration. `None` is enough to end iPXE's wait.
    pub ra_prefix: Option<Ipv6Addr>,
}

impl Config {
    /// Defaults for serving reservations on `interface`, on which the box has the address `server`.
    pub fn new(interface: impl Into<String>, server: Ipv4Addr) -> Self {
        Self {
            interface: interface.into(),
            server,
            mode: Mode::Reserved,
            enroll: false,
            subnets: Vec::new(),
            conflict_checks: false,
            http_port: DEFAULT_HTTP_PORT,
            syslog: None,
            binaries: BTreeMap::new(),
            router_advertisements: true,
            ra_prefix: None,
        }
    }

    /// Everything that is wrong, each as `path: what`; a service refuses to start with any.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = mistakes(&self.subnets);
        let pools = self.subnets.iter().any(|subnet| !subnet.ranges.is_empty());
        if self.mode == Mode::Pool && !pools {
            mistakes.push("subnets: mode pool needs a subnet with an address range".to_owned());
        }
        mistakes
    }

    /// The subnet of an address; of several the narrowest.
    pub(crate) fn subnet_of(&self, address: Ipv4Addr) -> Option<usize> {
        let prefixes = self.subnets.iter().map(|subnet| subnet.prefix).enumerate();
        prefixes
            .filter(|(_, prefix)| prefix.contains(address))
            .max_by_key(|(_, prefix): &(usize, Prefix)| prefix.length())
            .map(|(index, _)| index)
    }
}
