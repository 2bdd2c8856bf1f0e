//! What is known about one machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use stdx::{MacAddr, Secret};

/// A machine as its own operating system sees it. Field sources are those of Tinkerbell's Hardware
/// (`tootles/internal/backend`).
#[derive(Debug, Clone, Default)]
pub struct Instance {
    /// `spec.metadata.instance.id`.
    pub id: String,
    /// `namespace/name` of the hardware, for logs; never served.
    pub hardware: String,
    /// `spec.metadata.instance.hostname`, or whatever names the machine when that is empty.
    pub hostname: String,
    /// SSH public keys, one line each, without the line end.
    pub public_keys: Vec<String>,
    /// `spec.userData`, byte for byte.
    pub user_data: Option<Secret>,
    /// `spec.vendorData`.
    pub vendor_data: Option<Secret>,
    /// The interface with the reserved address.
    pub network: Option<Network>,
    /// `spec.metadata.instance.tags`.
    pub tags: Vec<String>,
    /// `spec.metadata.facility.plan_slug`.
    pub plan: String,
    /// `spec.metadata.facility.facility_code`.
    pub facility: String,
    /// First public IPv4 address of `instance.ips`.
    pub public_ipv4: Option<Ipv4Addr>,
    /// First IPv4 address of `instance.ips` that is not public; the reserved one stands in.
    pub local_ipv4: Option<Ipv4Addr>,
    /// First IPv6 address of `instance.ips`.
    pub public_ipv6: Option<Ipv6Addr>,
    /// `instance.operating_system`.
    pub operating_system: OperatingSystem,
    /// `instance.storage`, for rootio.
    pub storage: Option<serde_json::Value>,
}

/// `spec.metadata.instance.operating_system`.
#[derive(Debug, Clone, Default)]
pub struct OperatingSystem {
    /// `debian_12`.
    pub slug: String,
    /// `debian`.
    pub distro: String,
    /// `12`.
    pub version: String,
    /// A build's name.
    pub image_tag: String,
}

/// One interface's reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The interface.
    pub mac: MacAddr,
    /// Its reserved address.
    pub address: Ipv4Addr,
    /// Length of the network's prefix, 0 to 32.
    pub prefix: u8,
    /// The router.
    pub gateway: Option<Ipv4Addr>,
    /// Resolvers.
    pub name_servers: Vec<Ipv4Addr>,
}

impl Instance {
    /// The local address: what `instance.ips` says, else the reserved one.
    pub(crate) fn local_ipv4(&self) -> Option<Ipv4Addr> {
        self.local_ipv4.or(self.network.as_ref().map(|network| network.address))
    }
}

/// Knows the machines. Must answer from memory: cloud-init asks some thirty times a boot.
pub trait Instances: Send + Sync + 'static {
    /// The machine that holds this address; `None` when nobody does.
    fn by_address(&self, address: IpAddr) -> Option<Instance>;
}
