//! Host that already answers for the endpoint of a new cluster.
//!
//! Later, a machine of the control plane itself answers, for example with kube-vip. So only a new
//! cluster is checked: one whose Cluster has no endpoint yet. Cluster API writes the endpoint as
//! soon as the infrastructure is ready, and `clusterctl move` keeps it.

use std::net::IpAddr;

use api::network::control_plane_endpoint::network_of;
use api::network::{NETWORK, Network, NetworkPlan};
use objects::{ObjectError, read};

use super::TinkerbellClusterReconciler;
use super::observe::Observed;
use super::provided;

/// Host with the address of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveHost {
    /// MAC in the ARP reply of the host.
    pub mac: String,
    /// Interface of the box on which the host answered.
    pub interface: String,
}

impl TinkerbellClusterReconciler {
    /// Returns the host that answers for the endpoint of a new cluster. An endpoint of the box is
    /// checked when the box takes its address.
    pub(super) async fn live_host(
        &self,
        observed: &Observed,
        address: IpAddr,
    ) -> Result<Option<LiveHost>, ObjectError> {
        let IpAddr::V4(address) = address else { return Ok(None) };
        let cluster = observed.owner.as_ref().map(|owner| &owner.spec.control_plane_endpoint);
        let is_new = cluster.is_some_and(|it| it.as_ref().is_none_or(|it| it.host.is_empty()));
        if !is_new || provided::is_requested(observed) || observed.is_own_address {
            return Ok(None);
        }
        let networks = self.hardware.list(NETWORK, None).await?;
        let networks = networks.into_iter().filter_map(|it| read::<Network>(it).ok());
        let plans: Vec<NetworkPlan> = networks.filter_map(|it| it.spec.plan().ok()).collect();
        let Some(network) = network_of(address, &plans) else { return Ok(None) };
        let mac = self.addresses.other_host(&network.interface, address).await;
        let interface = network.interface.clone();
        Ok(mac.map(|mac| LiveHost { mac: mac.to_string(), interface }))
    }
}
