//! Data of one machine.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ipnet::IpNet;
use stdx::{MacAddr, Secret};

/// Data of a machine for its own operating system. Fields of Tinkerbell's Hardware are here as they
/// stand there, empty if absent (`tootles/internal/backend`); the methods choose substitutes for
/// empty fields.
#[derive(Debug, Clone, Default)]
pub struct Instance {
    /// Instance id of the machine: `spec.metadata.instance.id`.
    pub id: String,
    /// `namespace/name` of the hardware, for logs; never served.
    pub hardware: String,
    /// Name of the hardware: `{{ ds.meta_data.name }}`.
    pub name: String,
    /// Uid of the hardware: `{{ ds.meta_data.uuid }}`.
    pub uuid: String,
    /// Provider id of a Node of this machine, its `spec.providerID`: `tinkerbell://default/nuc-1`.
    pub provider_id: String,
    /// Host name of the machine: `spec.metadata.instance.hostname`.
    pub hostname: String,
    /// SSH public keys, one line each, without the line end.
    pub public_keys: Vec<String>,
    /// `spec.userData`, byte for byte.
    pub user_data: Option<Secret>,
    /// Vendor data of the machine: `spec.vendorData`.
    pub vendor_data: Option<Secret>,
    /// Its interfaces; first the one that holds the address it was found by.
    pub interfaces: Vec<Interface>,
    /// Tags of the machine: `spec.metadata.instance.tags`.
    pub tags: Vec<String>,
    /// Plan of the machine: `spec.metadata.facility.plan_slug`.
    pub plan: String,
    /// Facility of the machine: `spec.metadata.facility.facility_code`.
    pub facility: String,
    /// First public IPv4 address of `instance.ips`.
    pub public_ipv4: String,
    /// First IPv4 address of `instance.ips` that is not public.
    pub local_ipv4: String,
    /// First IPv6 address of `instance.ips`.
    pub public_ipv6: String,
    /// Operating system of the machine: `instance.operating_system`.
    pub operating_system: OperatingSystem,
    /// Storage layout for rootio: `instance.storage`.
    pub storage: Option<serde_json::Value>,
    /// More keys that its owner wants it to know. One of the box's own names is never replaced.
    pub extra: BTreeMap<String, String>,
    /// Progress of its installation.
    pub provisioning: Provisioning,
}

/// Operating system of a machine: `spec.metadata.instance.operating_system`.
#[derive(Debug, Clone, Default)]
pub struct OperatingSystem {
    /// Short name, such as `debian_12`.
    pub slug: String,
    /// Distribution, such as `debian`.
    pub distro: String,
    /// Version number, such as `12`.
    pub version: String,
    /// Name of a build.
    pub image_tag: String,
}

/// Progress of a machine's installation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Provisioning {
    /// No run is recorded: another tool installed the machine, or the record is gone.
    #[default]
    Unrecorded,
    /// A run waits or works.
    Underway,
    /// The last run ended well.
    Ended {
        /// Time since the end.
        ago: Duration,
    },
}

/// One interface, as its reservation describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// MAC address of the interface.
    pub mac: MacAddr,
    /// Name in the installed system (`iface_name`); empty: the system's choice.
    pub name: String,
    /// Its host name; empty: none.
    pub hostname: String,
    /// Its reserved address and the network that is on.
    pub address: Option<IpNet>,
    /// Default gateway, if any.
    pub gateway: Option<IpAddr>,
    /// DNS servers, best first.
    pub name_servers: Vec<IpAddr>,
    /// The domain to search for short names; empty: none.
    pub domain: String,
    /// Routes beside that to the router.
    pub routes: Vec<Route>,
    /// The VLAN its address is in, tagged, 1 to 4094.
    pub vlan: Option<u16>,
    /// True if this network has a DHCP server for the interface.
    pub dhcp: bool,
}

impl Interface {
    /// One of which nothing but the hardware address is known, in a network with DHCP.
    pub fn new(mac: MacAddr) -> Self {
        Self {
            mac,
            name: String::new(),
            hostname: String::new(),
            address: None,
            gateway: None,
            name_servers: Vec::new(),
            domain: String::new(),
            routes: Vec::new(),
            vlan: None,
            dhcp: true,
        }
    }

    /// Its address, when that is one of IPv4.
    pub(crate) fn ipv4(&self) -> Option<Ipv4Addr> {
        match self.address?.addr() {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        }
    }
}

/// A static route of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Destination network of the route.
    pub to: IpNet,
    /// Address of the router.
    pub via: IpAddr,
}

impl Instance {
    /// Its id: the one it was given, else the uid of its hardware.
    pub(crate) fn id(&self) -> &str {
        first([&self.id, &self.uuid])
    }

    /// Its host name: the one it was given, else that of its reservation, else its hardware's.
    pub(crate) fn hostname(&self) -> &str {
        let reserved = self.interfaces.first().map_or("", |interface| &interface.hostname);
        first([&self.hostname, reserved, &self.name])
    }

    /// Local address: that of `instance.ips`, else the reserved one; empty if none.
    pub(crate) fn local_ipv4(&self) -> String {
        let reserved = self.interfaces.first().and_then(Interface::ipv4);
        match reserved {
            Some(address) if self.local_ipv4.is_empty() => address.to_string(),
            _ => self.local_ipv4.clone(),
        }
    }
}

fn first<const N: usize>(texts: [&str; N]) -> &str {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// Reason why a request is of no machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmatched {
    /// No machine holds the address.
    UnknownAddress,
    /// The address belongs to a machine, and another NIC uses it on the link.
    OtherNic {
        /// `namespace/name` of the hardware that holds the address.
        hardware: String,
        /// The NIC that uses it, by the kernel's neighbor table.
        mac: MacAddr,
    },
}

/// Lookup of machines. Must answer from memory: cloud-init sends about thirty requests per boot.
pub trait Instances: Send + Sync + 'static {
    /// Returns the machine that a request from this address is of.
    ///
    /// # Errors
    /// When the address is not a machine's, or its sender is not that machine.
    fn by_address(&self, address: IpAddr) -> Result<Instance, Unmatched>;

    /// Machine with this [`Instance::id`]; `None` if none or several have it. Called only if
    /// [`crate::Config::instance_endpoint`] is set.
    fn by_instance_id(&self, id: &str) -> Option<Instance>;
}
