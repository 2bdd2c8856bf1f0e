//! Group `tinbox.dev/v1alpha1`: kind ControlPlaneEndpoint, a virtual address of the box with a TCP
//! port, which forwards connections to the control plane of a cluster.
//!
//! The name of an object is its address, so that only one cluster can have an address. The box
//! creates the object for a TinkerbellCluster, and needs only the object to forward: a box without
//! connection to the management cluster continues after a restart.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::NetworkPlan;
use crate::meta::{Object, ObjectKey, Resource};

/// Resource of the kind ControlPlaneEndpoint.
pub const CONTROL_PLANE_ENDPOINT: Resource = Resource {
    group: "tinbox.dev",
    version: "v1alpha1",
    kind: "ControlPlaneEndpoint",
    plural: "controlplaneendpoints",
};

/// Definition of the kind ControlPlaneEndpoint, as JSON of its CustomResourceDefinition.
pub const CONTROL_PLANE_ENDPOINTS: &str = include_str!("controlplaneendpoints.json");

/// Virtual address that forwards to a control plane.
pub type ControlPlaneEndpoint = Object<ControlPlaneEndpointSpec, ControlPlaneEndpointStatus>;

/// Address, port and machines of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlPlaneEndpointSpec {
    /// IPv4 address, also the name of the object.
    pub address: String,
    /// TCP port of the endpoint and of the machines.
    pub port: u16,
    /// TinkerbellCluster of the endpoint.
    pub cluster_ref: EndpointCluster,
    /// Machines of the control plane that have an address.
    pub backends: Vec<Backend>,
}

/// Reference to a TinkerbellCluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointCluster {
    /// Unique ID of the management cluster with the object; empty for the box's own API.
    #[serde(rename = "managementClusterUID", skip_serializing_if = "String::is_empty")]
    pub cluster_uid: String,
    /// Namespace of the TinkerbellCluster.
    pub namespace: String,
    /// Name of the TinkerbellCluster.
    pub name: String,
    /// True if the TinkerbellCluster was deleted while its machines continued to run, as
    /// `clusterctl move` does. Another management cluster may then take over the endpoint.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

/// Machine of a control plane.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Backend {
    /// IPv4 address of the machine.
    pub address: String,
    /// Hardware of the machine; `None` for a machine of another box.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<ObjectKey>,
    /// Name of the TinkerbellMachine; empty in an object of an earlier version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine: String,
}

/// State of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlPlaneEndpointStatus {
    /// True while the box has the address and listens on the port.
    pub held: bool,
    /// Interface with the address; empty without the address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interface: String,
    /// Reason of the state in upper camel case, as in a condition.
    pub reason: String,
    /// Description of the state for a person.
    pub message: String,
    /// Number of machines to which the box forwards.
    pub healthy: u32,
    /// Number of machines in the spec.
    pub total: u32,
}

/// Returns the network whose interface can have the virtual address `address`: the network to which
/// the interface is attached contains it, as an address that is neither the box's nor the router's.
pub fn network_of(address: Ipv4Addr, networks: &[NetworkPlan]) -> Option<&NetworkPlan> {
    networks.iter().find(|network| {
        network.subnets.first().is_some_and(|subnet| {
            let ends = [subnet.network, subnet.network | !subnet.netmask()];
            let is_free = !ends.contains(&address) && subnet.gateway != Some(address);
            subnet.contains(address) && is_free && network.address != address
        })
    })
}

impl EndpointCluster {
    /// Returns the key of the TinkerbellCluster.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}
