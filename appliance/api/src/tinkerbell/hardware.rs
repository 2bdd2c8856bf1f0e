//! Kind Hardware: one machine, its boot settings and its instance metadata.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stdx::MacAddr;

use crate::meta::Object;

/// Hardware object of one machine.
pub type Hardware = Object<HardwareSpec, HardwareStatus>;

/// Identity, boot settings and metadata of a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HardwareSpec {
    /// Agent ID of the machine; the MAC of the first interface when unset.
    #[serde(rename = "agentID")]
    pub agent_id: Option<String>,
    /// Permissions for automatic actions on the machine.
    pub auto: Auto,
    /// Network interfaces. The machine boots from the first, or from that of a boot request.
    pub interfaces: Vec<Interface>,
    /// Disks, in the owner's order.
    pub disks: Vec<Disk>,
    /// Reference to the `bmc.tinkerbell.org` Machine of the management controller.
    pub bmc_ref: Option<ObjectRef>,
    /// Instance metadata in the shape of Equinix Metal.
    pub metadata: Option<HardwareMetadata>,
    /// User data for cloud-init.
    pub user_data: Option<String>,
    /// Vendor data for cloud-init.
    pub vendor_data: Option<String>,
}

/// Permissions for automatic actions on a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Auto {
    /// True if a rule set may create a Workflow after a report of the machine's agent.
    pub enrollment_enabled: bool,
}

/// Status of a Hardware. Upstream never writes this status.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HardwareStatus {
    /// State: `Error` or `Ready`.
    pub state: Option<String>,
}

/// Disk, identified by its device path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    /// Device path, such as `/dev/sda`.
    pub device: String,
}

/// Reference to an object in the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// Group of the object.
    pub api_group: Option<String>,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
}

/// Network interface with its boot settings and DHCP reservation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Interface {
    /// Disables DHCP answers for this interface.
    pub disable_dhcp: bool,
    /// Permission and settings of network boot.
    pub netboot: Option<Netboot>,
    /// DHCP reservation of the interface.
    pub dhcp: Option<Dhcp>,
}

/// Network boot of one interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Netboot {
    /// Permission for network boot; absent means false.
    #[serde(rename = "allowPXE")]
    pub allow_pxe: Option<bool>,
    /// Custom iPXE binary or script.
    pub ipxe: Option<Ipxe>,
    /// Agent OS that replaces the box's own.
    pub osie: Option<Osie>,
}

/// Custom iPXE binary or script of one interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ipxe {
    /// URL of a script that iPXE chains to.
    pub url: String,
    /// Text of an iPXE script that the box serves.
    pub contents: String,
    /// Name of the iPXE binary that the box serves.
    pub binary: String,
}

/// Source of an agent OS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Osie {
    /// URL of the folder with kernel and initramfs.
    #[serde(rename = "baseURL")]
    pub base_url: String,
    /// Kernel file name below `base_url`.
    pub kernel: String,
    /// Initramfs file name below `base_url`.
    pub initrd: String,
    /// Kernel arguments in addition to the box's own.
    pub kernel_params: Vec<String>,
}

/// DHCP reservation of one interface. Upstream's JSON names of these fields are in snake case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dhcp {
    /// MAC address, lower case with colons.
    pub mac: Option<MacAddr>,
    /// Host name, DHCP option 12.
    pub hostname: String,
    /// Domain name, DHCP option 15.
    pub domain_name: String,
    /// Lease time in seconds, DHCP option 51; 0 means unset.
    pub lease_time: i64,
    /// DNS servers, DHCP option 6.
    pub name_servers: Vec<String>,
    /// NTP servers, DHCP option 42.
    pub time_servers: Vec<String>,
    /// CPU architecture: `x86_64` or `aarch64`.
    pub arch: String,
    /// True if the machine boots in UEFI mode; one-time boot devices then get the EFI bit.
    pub uefi: bool,
    /// Name of the interface in the installed system.
    pub iface_name: String,
    /// Reserved address with its network.
    pub ip: Option<Ip>,
    /// VLAN ID of the agent OS.
    pub vlan_id: String,
    /// Classless static routes, DHCP option 121.
    pub classless_static_routes: Vec<StaticRoute>,
    /// TFTP server name, DHCP option 66; with `boot_file_name`, replaces the box's boot options.
    pub tftp_server_name: String,
    /// Boot file name, DHCP option 67.
    pub boot_file_name: String,
}

/// Address with its network mask and router.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ip {
    /// IPv4 or IPv6 address.
    pub address: String,
    /// Network mask, such as `255.255.255.0`.
    pub netmask: String,
    /// Address of the router.
    pub gateway: String,
    /// Address family: 4 or 6.
    pub family: i64,
}

/// Static route of DHCP option 121.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StaticRoute {
    /// Destination network, such as `10.0.0.0/8`.
    pub destination_descriptor: String,
    /// Address of the next hop.
    pub router: String,
}

/// Instance metadata in upstream's legacy schema; only fields that the box serves are typed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HardwareMetadata {
    /// Facility and plan of the machine.
    pub facility: Facility,
    /// Metadata of the installed system.
    pub instance: Option<Instance>,
    /// Other fields, which the box passes on unchanged.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Location of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facility {
    /// Facility code of the Equinix schema.
    pub facility_code: String,
    /// Plan slug of the Equinix schema.
    pub plan_slug: String,
    /// Other fields, which the box passes on unchanged.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Identity of the installed system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instance {
    /// Instance ID for cloud-init.
    pub id: String,
    /// Host name of the installed system.
    pub hostname: String,
    /// Operating system of the instance.
    pub operating_system: Option<OperatingSystem>,
    /// Addresses of the instance.
    pub ips: Vec<InstanceIp>,
    /// Tags of the instance.
    pub tags: Vec<String>,
    /// Public keys in OpenSSH form.
    pub ssh_keys: Vec<String>,
    /// Partitioning instructions for Tinkerbell's `rootio` action.
    pub storage: Option<Value>,
    /// Other fields, which the box passes on unchanged.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Operating system of the instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatingSystem {
    /// Slug of the operating system.
    pub slug: String,
    /// Distribution of the operating system.
    pub distro: String,
    /// Version of the operating system.
    pub version: String,
    /// Tag of the operating system image.
    pub image_tag: String,
    /// Other fields, which the box passes on unchanged.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// IP address of the instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceIp {
    /// IPv4 or IPv6 address.
    pub address: String,
    /// Address family: 4 or 6.
    pub family: i64,
    /// True if the address is reachable from outside the site.
    pub public: bool,
    /// Other fields, which the box passes on unchanged.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

impl HardwareSpec {
    /// Returns the agent ID of the machine: `agentID`, else the MAC of its first interface.
    pub fn agent_id(&self) -> Option<String> {
        match &self.agent_id {
            Some(id) if !id.is_empty() => Some(id.clone()),
            _ => self.macs().next().map(|mac| mac.to_string()),
        }
    }

    /// Returns the MAC addresses, in the order of the interfaces.
    pub fn macs(&self) -> impl Iterator<Item = MacAddr> {
        self.interfaces.iter().filter_map(|interface| interface.dhcp.as_ref()?.mac)
    }

    /// Returns true if an interface may boot from the network without a workflow.
    pub fn may_netboot(&self) -> bool {
        let mut netboots = self.interfaces.iter().filter_map(|it| it.netboot.as_ref());
        netboots.any(|netboot| netboot.allow_pxe == Some(true))
    }

    /// Returns the reserved addresses, in the order of the interfaces, without invalid addresses.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.interfaces
            .iter()
            .filter_map(|interface| interface.dhcp.as_ref()?.ip.as_ref()?.address.parse().ok())
    }

    /// Returns the interface with the MAC address `mac`.
    pub fn interface(&self, mac: MacAddr) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.dhcp.as_ref().is_some_and(|dhcp| dhcp.mac == Some(mac)))
    }

    /// Returns true if any interface boots in UEFI mode.
    pub fn uefi(&self) -> bool {
        self.interfaces.iter().any(|interface| interface.dhcp.as_ref().is_some_and(|it| it.uefi))
    }
}
