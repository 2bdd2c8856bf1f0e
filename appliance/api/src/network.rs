//! Group `tinbox.dev/v1alpha1`: Network, one of the box's interfaces and what it serves there.
//!
//! The box makes one for each interface of its configuration, named after it. [`NetworkSpec::plan`]
//! is the one reading of a spec, for the configuration file and the API alike.

mod plan;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::meta::{Object, Resource};

pub use plan::{NetworkPlan, Problem, SubnetPlan};

/// Networks.
pub const NETWORK: Resource =
    Resource { group: "tinbox.dev", version: "v1alpha1", kind: "Network", plural: "networks" };

/// One interface of the box and what it serves there.
pub type Network = Object<NetworkSpec, NetworkStatus>;

/// What DHCP clients of a network are answered (`appliance-ux` NW-1 to NW-4, in rising trust).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nothing.
    #[default]
    Off,
    /// What to boot, beside another server that gives the addresses.
    Proxy,
    /// Known machines get the address of their record.
    Reserved,
    /// As reserved, and everybody else an address from a pool.
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

/// What the box is to do on one interface. Addresses are text, as people write them; what is wrong
/// with them is told by [`NetworkSpec::plan`], all at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkSpec {
    /// The interface's name: `eth1`.
    pub interface: String,
    /// The box's own address there, with the length of the network's prefix: `10.77.0.1/24`.
    pub address: String,
    /// What DHCP clients are answered.
    pub mode: Mode,
    /// Answer machines nobody registered too: they start the agent and become known.
    pub enroll: bool,
    /// Addresses to give away on the interface's own network.
    #[serde(flatten)]
    pub own: SubnetSettings,
    /// Networks behind relay agents.
    pub relayed: Vec<RelayedSubnet>,
    /// Loader file by client architecture (DHCP option 93), instead of the built-in table.
    pub loaders: BTreeMap<String, String>,
    /// Answer IPv6 router solicitations, so that iPXE does not wait for a router; unset means yes.
    pub router_advertisements: Option<bool>,
    /// Serve DHCPv6 to known machines.
    pub ipv6: bool,
    /// The last four hexadecimal digits of the interface's hardware address: whoever gives away
    /// addresses on the interface with the default route says that way that it is meant (NW-4).
    pub confirm: String,
    /// Any new value serves again after another server was heard (NW-6).
    pub rearm: String,
}

/// What the clients of one network are told, and which addresses they may get.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubnetSettings {
    /// Ranges, each `first-last` or one address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<String>,
    /// The router; empty: none is told, as on a rack without a way out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gateway: String,
    /// Resolvers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub name_servers: Vec<String>,
    /// NTP servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub time_servers: Vec<String>,
    /// Domain name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// How long an address from the pool is given, in seconds; 0 means
    /// [`SubnetSettings::DEFAULT_LEASE_SECS`].
    #[serde(skip_serializing_if = "is_zero")]
    pub lease_seconds: u32,
}

impl SubnetSettings {
    /// How long an address from a pool is given when nothing else is said: an hour.
    pub const DEFAULT_LEASE_SECS: u32 = 3600;
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A network behind a relay agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RelayedSubnet {
    /// The network: `10.78.0.0/24`.
    pub subnet: String,
    /// Its pool and what its clients are told.
    #[serde(flatten)]
    pub settings: SubnetSettings,
}

/// Whether the box serves the network, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Phase {
    /// Nothing is answered, as the spec says.
    #[default]
    Off,
    /// Looking for other servers before the first answer (NW-5).
    Probing,
    /// Answering.
    Serving,
    /// Another server was heard; a person must say that it is gone (NW-6).
    Stopped,
    /// It cannot be served as the spec says.
    Failed,
}

/// How it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkStatus {
    /// In one word.
    pub phase: Phase,
    /// In a sentence, with what to do about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The spec this is about.
    pub observed_generation: i64,
    /// The other server that was heard last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_server: Option<ForeignServer>,
    /// Addresses of the pools that are given away now.
    pub leased: u32,
    /// Addresses of the pools that are free.
    pub free: u32,
}

/// A DHCP server that is not this box.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ForeignServer {
    /// Its address (option 54, else the packet's source).
    pub address: String,
    /// Its hardware address, or that of the relay in front of it.
    pub mac: String,
    /// The first address it was heard to offer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub offered: String,
    /// When it was heard first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}
