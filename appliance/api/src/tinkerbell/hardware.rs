//! Hardware: one machine, how it boots and what it is told about itself.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stdx::MacAddr;

use crate::meta::Object;

/// One machine.
pub type Hardware = Object<HardwareSpec, HardwareStatus>;

/// What is known of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HardwareSpec {
    /// The id its agent goes by; its first MAC when unset.
    #[serde(rename = "agentID")]
    pub agent_id: Option<String>,
    /// What may be done without being asked for.
    pub auto: Auto,
    /// Network interfaces; the first is the one it boots from unless it asks by another.
    pub interfaces: Vec<Interface>,
    /// Disks, in the owner's order.
    pub disks: Vec<Disk>,
    /// Its management controller.
    pub bmc_ref: Option<ObjectRef>,
    /// Instance metadata, Equinix-shaped.
    pub metadata: Option<HardwareMetadata>,
    /// What cloud-init gets as user data.
    pub user_data: Option<String>,
    /// What cloud-init gets as vendor data.
    pub vendor_data: Option<String>,
}

/// What may happen to the machine without being asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Auto {
    /// Whether a rule set may make a workflow when its agent reports.
    pub enrollment_enabled: bool,
}

/// Status; nothing upstream writes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HardwareStatus {
    /// `Error` or `Ready`.
    pub state: Option<String>,
}

/// A disk by its device path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    /// `/dev/…`.
    pub device: String,
}

/// A reference to an object in the same namespace.
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

/// One network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Interface {
    /// No DHCP answer for this interface.
    pub disable_dhcp: bool,
    /// Whether and how it may boot from the network.
    pub netboot: Option<Netboot>,
    /// Its reservation.
    pub dhcp: Option<Dhcp>,
}

/// Network boot of one interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Netboot {
    /// Absent means no.
    #[serde(rename = "allowPXE")]
    pub allow_pxe: Option<bool>,
    /// Custom iPXE.
    pub ipxe: Option<Ipxe>,
    /// Another agent OS than the box's own.
    pub osie: Option<Osie>,
}

/// Custom iPXE of one interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ipxe {
    /// Chain to this URL.
    pub url: String,
    /// Serve this script.
    pub contents: String,
    /// Name of the iPXE binary to hand out.
    pub binary: String,
}

/// Where an agent OS comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Osie {
    /// Folder URL of kernel and initramfs.
    #[serde(rename = "baseURL")]
    pub base_url: String,
    /// Kernel file name.
    pub kernel: String,
    /// Initramfs file name.
    pub initrd: String,
    /// More kernel arguments.
    pub kernel_params: Vec<String>,
}

/// The reservation of one interface; upstream's JSON names are in snake case here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dhcp {
    /// Hardware address, lower case with colons.
    pub mac: Option<MacAddr>,
    /// Option 12.
    pub hostname: String,
    /// Option 15.
    pub domain_name: String,
    /// Option 51 in seconds; 0 means unset.
    pub lease_time: i64,
    /// Option 6.
    pub name_servers: Vec<String>,
    /// Option 42.
    pub time_servers: Vec<String>,
    /// `x86_64` or `aarch64`.
    pub arch: String,
    /// Boots by UEFI: the EFI bit of one-time boot devices.
    pub uefi: bool,
    /// Name of the interface in the installed system.
    pub iface_name: String,
    /// The address.
    pub ip: Option<Ip>,
    /// VLAN of the agent OS.
    pub vlan_id: String,
    /// Option 121.
    pub classless_static_routes: Vec<StaticRoute>,
    /// Option 66; with `boot_file_name` it replaces the box's own boot options.
    pub tftp_server_name: String,
    /// Option 67.
    pub boot_file_name: String,
}

/// An address with its network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ip {
    /// Address, v4 or v6.
    pub address: String,
    /// Mask, as `255.255.255.0`.
    pub netmask: String,
    /// Router.
    pub gateway: String,
    /// 4 or 6.
    pub family: i64,
}

/// One route of option 121.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StaticRoute {
    /// `10.0.0.0/8`.
    pub destination_descriptor: String,
    /// Next hop.
    pub router: String,
}

/// Instance metadata as upstream's legacy schema has it; only what is served is typed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HardwareMetadata {
    /// Facility and plan.
    pub facility: Facility,
    /// The instance.
    pub instance: Option<Instance>,
    /// Fields the box passes on untouched.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Where the machine stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facility {
    /// Facility code.
    pub facility_code: String,
    /// Plan.
    pub plan_slug: String,
    /// Fields the box passes on untouched.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Who the installed system is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instance {
    /// Instance id.
    pub id: String,
    /// Host name.
    pub hostname: String,
    /// Operating system.
    pub operating_system: Option<OperatingSystem>,
    /// Addresses.
    pub ips: Vec<InstanceIp>,
    /// Tags.
    pub tags: Vec<String>,
    /// Public keys in OpenSSH form.
    pub ssh_keys: Vec<String>,
    /// Partitioning of rootio.
    pub storage: Option<Value>,
    /// Fields the box passes on untouched.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Operating system of the instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatingSystem {
    /// Slug.
    pub slug: String,
    /// Distribution.
    pub distro: String,
    /// Version.
    pub version: String,
    /// Image tag.
    pub image_tag: String,
    /// Fields the box passes on untouched.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// One address of the instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceIp {
    /// Address.
    pub address: String,
    /// 4 or 6.
    pub family: i64,
    /// Reachable from outside.
    pub public: bool,
    /// Fields the box passes on untouched.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

impl HardwareSpec {
    /// The id its agent goes by: `agentID`, else the MAC of its first interface.
    pub fn agent_id(&self) -> Option<String> {
        match &self.agent_id {
            Some(id) if !id.is_empty() => Some(id.clone()),
            _ => self.macs().next().map(|mac| mac.to_string()),
        }
    }

    /// Hardware addresses, in order.
    pub fn macs(&self) -> impl Iterator<Item = MacAddr> {
        self.interfaces.iter().filter_map(|interface| interface.dhcp.as_ref()?.mac)
    }

    /// Reserved addresses, in order; unreadable ones are left out.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.interfaces
            .iter()
            .filter_map(|interface| interface.dhcp.as_ref()?.ip.as_ref()?.address.parse().ok())
    }

    /// The interface with this hardware address.
    pub fn interface(&self, mac: MacAddr) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.dhcp.as_ref().is_some_and(|dhcp| dhcp.mac == Some(mac)))
    }

    /// Any interface boots by UEFI.
    pub fn uefi(&self) -> bool {
        self.interfaces.iter().any(|interface| interface.dhcp.as_ref().is_some_and(|it| it.uefi))
    }
}
