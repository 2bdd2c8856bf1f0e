//! Metadata of one machine.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ipnet::IpNet;
use stdx::{MacAddr, Secret};

/// Metadata of a machine for its own operating system. Fields have the values of Tinkerbell's
/// Hardware, empty if absent (`tootles/internal/backend`); the methods substitute other values for
/// empty fields.
#[derive(Debug, Clone, Default)]
pub struct Instance {
    /// Instance id of the machine: `spec.metadata.instance.id`.
    pub id: String,
    /// `namespace/name` of the hardware, for logs; never served.
    pub hardware: String,
    /// Name of the hardware: `{{ ds.meta_data.name }}`.
    pub name: String,
    /// UID of the hardware object: `{{ ds.meta_data.uuid }}`.
    pub uuid: String,
    /// Provider id of a Node of this machine, its `spec.providerID`: `tinkerbell://default/nuc-1`.
    pub provider_id: String,
    /// Host name of the machine: `spec.metadata.instance.hostname`.
    pub hostname: String,
    /// SSH public keys, one line each, without the line end.
    pub public_keys: Vec<String>,
    /// User data of the machine: `spec.userData`, byte for byte.
    pub user_data: Option<Secret>,
    /// Vendor data of the machine: `spec.vendorData`.
    pub vendor_data: Option<Secret>,
    /// Interfaces of the machine. The first has the address by which the machine was found.
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
    /// Additional metadata keys from the owner. They never replace one of the box's keys.
    pub extra: BTreeMap<String, String>,
    /// Progress of the machine's installation.
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
    /// Name of an image build.
    pub image_tag: String,
}

/// Progress of a machine's installation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Provisioning {
    /// No workflow run is recorded: another tool installed the machine, or the record was deleted.
    #[default]
    Unrecorded,
    /// A workflow run waits or is in progress.
    Underway,
    /// The last workflow run succeeded.
    Ended {
        /// Time since the end of the run.
        ago: Duration,
    },
}

/// Network interface of a machine, from its reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// MAC address of the interface.
    pub mac: MacAddr,
    /// Name in the installed system (`iface_name`). Empty: the system chooses the name.
    pub name: String,
    /// Host name of the interface; empty if there is none.
    pub hostname: String,
    /// Reserved address of the interface, with the prefix length of its network.
    pub address: Option<IpNet>,
    /// Default gateway, if any.
    pub gateway: Option<IpAddr>,
    /// DNS servers, in order of preference.
    pub name_servers: Vec<IpAddr>,
    /// DNS search domain for short names; empty if there is none.
    pub domain: String,
    /// Static routes, without the default route to `gateway`.
    pub routes: Vec<Route>,
    /// ID of the tagged VLAN that has the address, 1 to 4094; `None` if untagged.
    pub vlan: Option<u16>,
    /// True if a DHCP server serves the interface.
    pub dhcp: bool,
}

impl Interface {
    /// Creates an interface with only a MAC address, in a network with DHCP.
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

    /// Returns the interface's address if it is IPv4.
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
    /// Returns the instance id, or else the UID of the hardware object.
    pub(crate) fn id(&self) -> &str {
        first([&self.id, &self.uuid])
    }

    /// Returns the host name: `hostname`, else the one of the first interface's reservation, else
    /// the name of the hardware.
    pub(crate) fn hostname(&self) -> &str {
        let reserved = self.interfaces.first().map_or("", |interface| &interface.hostname);
        first([&self.hostname, reserved, &self.name])
    }

    /// Returns the local IPv4 address: the one in `instance.ips`, else the reserved one; empty if
    /// there is neither.
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

/// Reason why no machine matches a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmatched {
    /// No machine has this address.
    UnknownAddress,
    /// The address belongs to a machine, but another NIC on the link uses it.
    OtherNic {
        /// `namespace/name` of the hardware that has the address.
        hardware: String,
        /// MAC address of the NIC that uses the address, from the kernel's neighbor table.
        mac: MacAddr,
    },
}

/// Lookup of machines. Implementations must answer from memory: cloud-init sends about thirty
/// requests per boot.
pub trait Instances: Send + Sync + 'static {
    /// Returns the machine that sent a request from this address.
    ///
    /// # Errors
    /// The address is not a machine's, or another NIC uses it.
    fn by_address(&self, address: IpAddr) -> Result<Instance, Unmatched>;

    /// Returns the machine with this [`Instance::id`]; `None` if no machine or several machines
    /// have it. Called only if [`crate::Config::instance_endpoint`] is set.
    fn by_instance_id(&self, id: &str) -> Option<Instance>;
}
