//! Group `tinbox.dev/v1alpha1`: kind Network, an interface of the box and its services.
//!
//! The box creates a Network for each interface of its configuration, with the interface's name.
//! [`NetworkSpec::plan`] is the only parser of a spec, for the configuration file and the API.

pub mod control_plane_endpoint;
mod plan;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::meta::{Object, Resource};

pub use plan::{NetworkPlan, Problem, SubnetPlan};

/// Resource of the kind Network.
pub const NETWORK: Resource =
    Resource { group: "tinbox.dev", version: "v1alpha1", kind: "Network", plural: "networks" };

/// Interface of the box and the services on it.
pub type Network = Object<NetworkSpec, NetworkStatus>;

/// DHCP serving mode of a network (`appliance-ux` NW-1 to NW-4), from least to most service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The box answers no DHCP client.
    #[default]
    Off,
    /// The box sends boot options only (proxy DHCP); another DHCP server assigns the addresses.
    Proxy,
    /// The box assigns to each known machine the address of its Hardware, and no other addresses.
    Reserved,
    /// The box assigns as in [`Mode::Reserved`], and unknown machines get an address from a pool.
    Pool,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Proxy => "proxy",
            Self::Reserved => "reserved",
            Self::Pool => "pool",
        })
    }
}

/// Settings of one interface. Addresses are text, as people write them. [`NetworkSpec::plan`]
/// reports all invalid values at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkSpec {
    /// Linux name of the interface, such as `eth1`.
    pub interface: String,
    /// Address of the box on the interface, with prefix length: `10.77.0.1/24`.
    pub address: String,
    /// DHCP serving mode of the interface.
    pub mode: Mode,
    /// Lets unknown machines boot from the network. They start the agent and become known.
    pub enroll: bool,
    /// DHCP settings for clients of the network that the interface is attached to.
    #[serde(flatten)]
    pub own: SubnetSettings,
    /// Networks behind DHCP relay agents.
    pub relayed: Vec<RelayedSubnet>,
    /// Loader file by client architecture (DHCP option 93); replaces the built-in table.
    pub loaders: BTreeMap<String, String>,
    /// True (default) to answer IPv6 router solicitations, so that iPXE does not wait for a router.
    pub router_advertisements: Option<bool>,
    /// Serves DHCPv6 to known machines.
    pub ipv6: bool,
    /// Last four hexadecimal digits of the interface's hardware address. This confirmation is
    /// required to assign addresses on the interface with the default route (NW-4).
    pub confirm: String,
    /// Token of a resume request: any new value resumes service after another DHCP server was
    /// detected (NW-6).
    pub rearm: String,
}

/// DHCP options and address pool for the clients of one network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubnetSettings {
    /// Address ranges, each `first-last` or a single address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<String>,
    /// Address of the router. Empty means that clients receive no router, as on an isolated rack.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gateway: String,
    /// Addresses of DNS servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub name_servers: Vec<String>,
    /// Addresses of NTP servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub time_servers: Vec<String>,
    /// Domain name for the clients.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// Lease time of a pool address in seconds; 0 means [`SubnetSettings::DEFAULT_LEASE_SECS`].
    #[serde(skip_serializing_if = "is_zero")]
    pub lease_seconds: u32,
}

impl SubnetSettings {
    /// Default lease time of a pool address in seconds: one hour.
    pub const DEFAULT_LEASE_SECS: u32 = 3600;
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Network behind a DHCP relay agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RelayedSubnet {
    /// Address of the network with prefix length, such as `10.78.0.0/24`.
    pub subnet: String,
    /// DHCP options and address pool of the network.
    #[serde(flatten)]
    pub settings: SubnetSettings,
}

/// Serving state of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Phase {
    /// The spec disables all DHCP answers.
    #[default]
    Off,
    /// The box searches for other DHCP servers before its first answer (NW-5).
    Probing,
    /// The box answers DHCP clients.
    Serving,
    /// Another DHCP server was detected, and the box stopped. A person must confirm that the other
    /// server is gone (NW-6).
    Stopped,
    /// The spec is invalid, or the box cannot apply the spec.
    Failed,
}

/// Serving state and pool usage of a network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkStatus {
    /// Serving state of the network.
    pub phase: Phase,
    /// Sentence about the state for display, with the action that a person should take.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Generation of the spec that this status belongs to.
    pub observed_generation: i64,
    /// DHCP server of another device that the box detected last; `None` before a detection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_server: Option<ForeignServer>,
    /// Number of bound DHCP leases, including leases from an earlier pool.
    pub leased: u32,
    /// Number of free addresses in the current pools.
    pub free: u32,
}

/// DHCP server other than this box.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ForeignServer {
    /// Address of the server (DHCP option 54, else the source of the packet).
    pub address: String,
    /// Hardware address of the server or of the relay agent in front of it.
    pub mac: String,
    /// First address that the server offered to a client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub offered: String,
    /// Time at which the box first detected the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}
