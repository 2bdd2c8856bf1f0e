//! Configuration of the DHCPv4 service: addresses of the box, and its networks.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::reservation::Prefix;

pub(crate) mod subnet;

use subnet::{Subnet, mistakes};

/// Default TCP port of the box's boot files and scripts; the same as Tinkerbell's.
pub const DEFAULT_HTTP_PORT: u16 = 7080;

/// DHCP mode of a network. A network without DHCP has no mode, because no service runs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Known machines get boot files; another DHCP server assigns the addresses.
    Proxy,
    /// Machines with a reservation get addresses and boot files.
    Reserved,
    /// Like [`Self::Reserved`]; all other machines get addresses from a pool.
    Pool,
}

/// Configuration of the DHCPv4 service, with the addresses and ports of other boot services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Name of the interface to serve. The service reads from and sends to no other interface.
    pub interface: String,
    /// The box's IPv4 address on `interface`. Answers have it as server identifier (option 54),
    /// next server (`siaddr`), TFTP server, and host of every URL.
    pub server: Ipv4Addr,
    /// DHCP mode of this network.
    pub mode: Mode,
    /// True if unknown machines may boot too (modes proxy and pool). The machines get the loader,
    /// then the script `/ipxe/script/<mac>/auto.ipxe`.
    pub enroll: bool,
    /// Networks of [`Mode::Pool`]: the box's own network, and the networks behind relay agents.
    pub subnets: Vec<Subnet>,
    /// True if an address is checked by ARP before its first offer: see [`crate::Output::Check`].
    pub conflict_checks: bool,
    /// TCP port of the URLs in answers.
    pub http_port: u16,
    /// Syslog server for machines (option 7); `None` omits the option.
    pub syslog: Option<Ipv4Addr>,
    /// Loader file by client architecture (option 93); takes precedence over [`crate::BINARIES`].
    pub binaries: BTreeMap<u16, String>,
    /// True if the box answers IPv6 router solicitations, so that iPXE does not wait for a router
    /// (16 s in the 2019 build, 4 s in current ones). The advertisement does not make the box a
    /// default router and, without a prefix, assigns no address.
    pub router_advertisements: bool,
    /// Prefix (/64) to advertise for address autoconfiguration. `None` advertises no prefix; the
    /// advertisement still ends iPXE's wait.
    pub ra_prefix: Option<Ipv6Addr>,
}

impl Config {
    /// Creates a configuration with defaults, for mode [`Mode::Reserved`] and the box's address.
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

    /// Returns all mistakes, each as `path: what`. A service does not start with a mistake.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = mistakes(&self.subnets);
        let pools = self.subnets.iter().any(|subnet| !subnet.ranges.is_empty());
        if self.mode == Mode::Pool && !pools {
            mistakes.push("subnets: mode pool needs a subnet with an address range".to_owned());
        }
        mistakes
    }

    /// Returns the index of the subnet that contains the address; the narrowest if there are
    /// several. `None` if no subnet contains the address.
    pub(crate) fn subnet_of(&self, address: Ipv4Addr) -> Option<usize> {
        let prefixes = self.subnets.iter().map(|subnet| subnet.prefix).enumerate();
        prefixes
            .filter(|(_, prefix)| prefix.contains(address))
            .max_by_key(|(_, prefix): &(usize, Prefix)| prefix.length())
            .map(|(index, _)| index)
    }
}
