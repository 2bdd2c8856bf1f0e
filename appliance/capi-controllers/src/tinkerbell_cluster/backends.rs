//! Machines of the control plane to which an endpoint forwards.

use std::net::Ipv4Addr;

use api::infrastructure::TinkerbellMachine;
use api::infrastructure::cluster_api::{CLUSTER_NAME, CONTROL_PLANE};
use api::network::control_plane_endpoint::Backend;
use api::tinkerbell::Hardware;

use super::TinkerbellClusterReconciler;
use super::observe::Observed;

/// Maximum number of machines of an endpoint, the limit in the definition of the kind.
const BACKENDS_MAX: usize = 32;

impl TinkerbellClusterReconciler {
    /// Returns the machines of the control plane that have an address: that of their Hardware on
    /// this box, or that in their status, which another box wrote.
    pub(super) fn backends(
        &self,
        observed: &Observed,
        machines: &[TinkerbellMachine],
    ) -> Vec<Backend> {
        let cluster = observed.owner.as_ref().map(|owner| &owner.metadata.name);
        let is_member = |it: &&TinkerbellMachine| {
            let labels = &it.metadata.labels;
            labels.contains_key(CONTROL_PLANE) && labels.get(CLUSTER_NAME) == cluster
        };
        let members = machines.iter().filter(is_member).filter(|_| cluster.is_some());
        let mut backends: Vec<_> = members
            .filter_map(|machine| {
                let is_owned = |host: &&Hardware| {
                    host.metadata.name == machine.spec.hardware_name && self.has(machine, host)
                };
                backend(machine, observed.hosts.iter().find(is_owned))
            })
            .collect();
        backends.sort_unstable();
        backends.truncate(BACKENDS_MAX);
        backends
    }
}

/// Returns the machine with the address of its Hardware `host`, or with that in its status.
fn backend(machine: &TinkerbellMachine, host: Option<&Hardware>) -> Option<Backend> {
    let name = machine.metadata.name.clone();
    let own = host.and_then(|host| host.spec.addresses().find(|it| it.to_canonical().is_ipv4()));
    if let (Some(host), Some(own)) = (host, own) {
        let address = own.to_canonical().to_string();
        return Some(Backend { address, hardware: Some(host.key()), machine: name });
    }
    let addresses = machine.status.addresses.iter().filter(|it| it.kind == "InternalIP");
    let mut addresses = addresses.filter(|it| it.address.parse::<Ipv4Addr>().is_ok());
    let other = addresses.next()?;
    Some(Backend { address: other.address.clone(), hardware: None, machine: name })
}
