//! Endpoint that the box provides for a cluster, as a ControlPlaneEndpoint of the box.
//!
//! All that the box needs to forward is in this object, so that a box without connection to its
//! management cluster continues with the last known machines, also after a restart.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use api::infrastructure::{
    Endpoint, EndpointProvider, OWNER_NAME, OWNER_NAMESPACE, TINKERBELL_MACHINE,
    TinkerbellClusterStatus, TinkerbellMachine,
};
use api::meta::{ObjectKey, Resource};
use api::network::control_plane_endpoint::{
    Backend, CONTROL_PLANE_ENDPOINT, ControlPlaneEndpoint, ControlPlaneEndpointSpec,
    ControlPlaneEndpointStatus, EndpointCluster, network_of,
};
use api::network::{NETWORK, Network, NetworkPlan};
use api::tinkerbell::{HARDWARE, Hardware};
use objects::{ObjectError, Objects, find, gone_is_fine, read};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::TinkerbellClusterReconciler;
use super::decide::Step;
use super::endpoint::address;
use super::error::ClusterError;
use super::observe::Observed;
use crate::conditions::{ENDPOINT_READY, Finding, find as condition};
use controllers::runtime::Requeue;

/// TCP ports that the box serves on all addresses without `SO_REUSEPORT`: web page, boot server,
/// metadata, agents and serial consoles. The API port, 6443, has `SO_REUSEPORT`.
const BOX_PORTS: [u16; 8] = [80, 443, 2222, 7080, 7173, 7443, 42113, 50061];
/// Wait before the machines of a deleted cluster are checked again.
const RELEASE_WAIT: Duration = Duration::from_secs(60);

/// Objects of the box about provided endpoints.
#[derive(Debug, Clone, Default)]
pub struct Provided {
    /// Reference to the TinkerbellCluster in its endpoint.
    pub cluster_ref: EndpointCluster,
    /// Endpoints of all clusters.
    pub endpoints: Vec<ControlPlaneEndpoint>,
    /// Networks of the box.
    pub networks: Vec<NetworkPlan>,
    /// Machines of the control plane that have an address, sorted.
    pub backends: Vec<Backend>,
}

/// Decision about the endpoint of a cluster.
#[derive(Debug, Default)]
pub struct Provision {
    /// Changes of the endpoints of the box.
    pub steps: Vec<Step>,
    /// State of the endpoint; `None` if the box does not provide it.
    pub finding: Option<Finding>,
    /// Reason why the infrastructure is not provisioned yet.
    pub error: Option<ClusterError>,
    /// True while another cluster has the endpoint. After `clusterctl move`, that cluster releases
    /// the endpoint within seconds.
    pub is_moving: bool,
}

impl Provided {
    /// Returns true if the box has an endpoint with this address for the cluster.
    pub fn has(&self, address: &str) -> bool {
        self.own().any(|it| it.spec.address == address)
    }

    /// Returns true if the box has an endpoint with this address for any cluster.
    pub fn has_any(&self, address: &str) -> bool {
        self.endpoints.iter().any(|it| it.spec.address == address)
    }

    /// Returns the endpoints of the cluster.
    fn own(&self) -> impl Iterator<Item = &ControlPlaneEndpoint> {
        self.endpoints.iter().filter(|it| it.spec.cluster_ref == self.cluster_ref)
    }
}

/// Returns the steps for a cluster whose endpoint passed all checks that need no network.
pub fn decide(observed: &Observed, endpoint: &Endpoint) -> Provision {
    let provided = &observed.provided;
    let withdraw = |it: &ControlPlaneEndpoint| Step::Withdraw(it.metadata.name.clone());
    if !is_requested(observed) {
        return Provision { steps: provided.own().map(withdraw).collect(), ..Default::default() };
    }
    // An endpoint with another host is old. A Network that no longer matches may match again, and
    // the service of the endpoints gives back the address meanwhile.
    let name = ipv4(endpoint).map(|it| it.to_string()).unwrap_or_default();
    let old = provided.own().filter(|it| it.metadata.name != name);
    let mut steps: Vec<Step> = old.map(withdraw).collect();
    let spec = match check(observed, endpoint) {
        Ok(spec) => spec,
        Err(error) => return refused(observed, error, steps),
    };
    let current = provided.endpoints.iter().find(|it| it.metadata.name == spec.address);
    let is_new = current.is_none_or(|it| it.spec != spec);
    let current = current.filter(|it| it.spec.address == spec.address && it.spec.port == spec.port);
    if is_new {
        steps.push(Step::Provide(Box::new(spec)));
    }
    let box_name = observed.box_name.clone();
    let status = current.map(|it| &it.status);
    let finding = status.and_then(|status| finding(status, &box_name));
    let error = match status {
        Some(status) if status.held => None,
        Some(status) if !["", "Probing"].contains(&status.reason.as_str()) => {
            Some(ClusterError::NotTaken { why: status.message.clone(), box_name })
        }
        _ => Some(ClusterError::EndpointPending { box_name }),
    };
    let error = error.filter(|_| !observed.was_provisioned());
    Provision { steps, finding, error, is_moving: false }
}

/// Returns true if the cluster requests an endpoint of the box.
pub fn is_requested(observed: &Observed) -> bool {
    observed.cluster.spec.control_plane_endpoint_provider == Some(EndpointProvider::Box)
}

/// Returns the condition for the status of an endpoint; `None` before the first status.
fn finding(status: &ControlPlaneEndpointStatus, box_name: &str) -> Option<Finding> {
    (!status.reason.is_empty()).then(|| Finding {
        kind: ENDPOINT_READY,
        is_true: status.reason == "Forwarding",
        reason: reason(&status.reason),
        message: format!("{}{}", status.message, of_box(box_name)),
    })
}

/// Returns the result for a cluster that the box must not provide an endpoint for. The condition
/// of an earlier endpoint must not stay true. Another box may serve the network of the cluster, so
/// a box without the Network changes only its own condition.
fn refused(observed: &Observed, error: ClusterError, steps: Vec<Step>) -> Provision {
    let end = of_box(&observed.box_name);
    let old = condition(&observed.cluster.status.conditions, ENDPOINT_READY);
    let is_own = old.is_some_and(|it| it.message.ends_with(&end));
    let is_local = !matches!(error, ClusterError::NotServed { .. } | ClusterError::NotIpv4 { .. });
    let mut own = observed.provided.own().map(|it| &it.status);
    let finding = own.find(|it| !it.held).and_then(|it| finding(it, &observed.box_name));
    let finding = finding.or_else(|| {
        let text = error.to_string();
        let message = if text.ends_with(&end) { text } else { format!("{text}{end}") };
        let reason = error.reason();
        Some(Finding { kind: ENDPOINT_READY, is_true: false, reason, message })
    });
    let finding = finding.filter(|_| is_own || (is_local && observed.was_provisioned()));
    let is_moving = matches!(error, ClusterError::OtherCluster { .. });
    let error = (!observed.was_provisioned()).then_some(error);
    Provision { steps, finding, error, is_moving }
}

/// Returns the IPv4 address in the host of an endpoint; `None` for another host.
fn ipv4(endpoint: &Endpoint) -> Option<Ipv4Addr> {
    match address(&endpoint.host)? {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// Returns the endpoint that the box must have.
fn check(
    observed: &Observed,
    endpoint: &Endpoint,
) -> Result<ControlPlaneEndpointSpec, ClusterError> {
    let provided = &observed.provided;
    let (host, box_name) = (status::plain(&endpoint.host), observed.box_name.clone());
    let Some(address) = ipv4(endpoint) else { return Err(ClusterError::NotIpv4 { host }) };
    let name = address.to_string();
    let Some(network) = network_of(address, &provided.networks) else {
        return Err(ClusterError::NotServed { host, box_name });
    };
    if BOX_PORTS.contains(&endpoint.port) {
        return Err(ClusterError::BoxPort { host, port: endpoint.port, box_name });
    }
    let is_new = !provided.has_any(&name);
    if is_new && observed.is_own_address {
        return Err(ClusterError::BoxAddress { host, box_name });
    }
    // The checks of hosts before the infrastructure is provisioned permit machines of the cluster.
    let has_address = |it: &&Hardware| it.spec.addresses().any(|it| it.to_canonical() == address);
    let holder = observed.hosts.iter().filter(has_address).map(Hardware::key).min();
    if let Some(hardware) = holder.filter(|_| is_new) {
        return Err(ClusterError::HardwareAddress { host, hardware, box_name });
    }
    let mut pools = network.subnets.iter().flat_map(|subnet| &subnet.ranges);
    // A pool that is enlarged later does not take the endpoint away.
    if is_new && pools.any(|range| range.contains(&address)) {
        let interface = network.interface.clone();
        return Err(ClusterError::PoolAddress { host, interface, box_name });
    }
    let other = provided.endpoints.iter().find(|it| it.metadata.name == name);
    let other = other.map(|it| &it.spec.cluster_ref).filter(|it| **it != provided.cluster_ref);
    let cluster = &provided.cluster_ref;
    // A deleted cluster with running machines was moved to another management cluster.
    if let Some(other) = other.filter(|it| !it.deleted || it.key() != cluster.key()) {
        return Err(ClusterError::OtherCluster { host, cluster: other.key(), box_name });
    }
    Ok(ControlPlaneEndpointSpec {
        address: name,
        port: endpoint.port,
        cluster_ref: cluster.clone(),
        backends: provided.backends.clone(),
    })
}

/// Returns true if the condition may be written. The box without the address must not overwrite
/// the condition of the box with the address.
pub fn may_put(finding: &Finding, status: &TinkerbellClusterStatus, observed: &Observed) -> bool {
    let is_held = observed.provided.own().any(|it| it.status.held);
    let own = of_box(&observed.box_name);
    let old = condition(&status.conditions, finding.kind);
    is_held || old.is_none_or(|it| it.message.ends_with(&own))
}

/// Returns true for a reason of the condition `Ready` that only a box with the Network of the
/// endpoint reports.
pub fn is_of_network(reason: &str) -> bool {
    ["WaitingForEndpoint", "EndpointConflict"].contains(&reason)
}

fn of_box(box_name: &str) -> String {
    format!(" (box {box_name})")
}

/// Returns the reason of a condition for the reason of a status.
fn reason(of: &str) -> &'static str {
    const REASONS: [&str; 8] = [
        "Probing",
        "NotInNetwork",
        "TooManyEndpoints",
        "AddressInUse",
        "AddressFailed",
        "NoMachine",
        "NoHealthyMachine",
        "Forwarding",
    ];
    REASONS.into_iter().find(|it| *it == of).unwrap_or("Unknown")
}

/// Returns the TinkerbellClusters of an API for which the box has an endpoint; `None` is the API of
/// the box. A cluster may have been deleted while the box was not connected.
///
/// # Errors
/// The objects of the box cannot be read.
pub async fn clusters_with_endpoints(
    objects: &dyn Objects,
    cluster_uid: Option<&str>,
) -> Result<Vec<ObjectKey>, ObjectError> {
    let all: Vec<ControlPlaneEndpoint> = all(objects, CONTROL_PLANE_ENDPOINT, None).await?;
    let of = all.iter().map(|it| &it.spec.cluster_ref);
    let uid = cluster_uid.unwrap_or_default();
    Ok(of.filter(|it| it.cluster_uid == uid).map(EndpointCluster::key).collect())
}

/// Lists the readable objects of a kind.
pub(super) async fn all<T: DeserializeOwned>(
    objects: &dyn Objects,
    resource: Resource,
    namespace: Option<&str>,
) -> Result<Vec<T>, ObjectError> {
    let all = objects.list(resource, namespace).await?;
    Ok(all.into_iter().filter_map(|object| read(object).ok()).collect())
}

impl TinkerbellClusterReconciler {
    /// Returns the unique ID of the management cluster; empty for the box's own API.
    fn cluster_uid(&self) -> String {
        self.view.cluster.as_ref().map(|cluster| cluster.uid.clone()).unwrap_or_default()
    }

    /// Reads the objects about provided endpoints. The networks and machines are read only for a
    /// cluster that requests an endpoint.
    pub(super) async fn provided(&self, observed: &Observed) -> Result<Provided, ObjectError> {
        let boxes = self.hardware.as_ref();
        let metadata = &observed.cluster.metadata;
        let mut provided = Provided {
            cluster_ref: EndpointCluster {
                cluster_uid: self.cluster_uid(),
                namespace: metadata.namespace.clone(),
                name: metadata.name.clone(),
                deleted: false,
            },
            endpoints: all(boxes, CONTROL_PLANE_ENDPOINT, None).await?,
            ..Provided::default()
        };
        if observed.cluster.spec.control_plane_endpoint_provider.is_some() {
            let networks: Vec<Network> = all(boxes, NETWORK, None).await?;
            provided.networks = networks.iter().filter_map(|it| it.spec.plan().ok()).collect();
            let (view, namespace) = (self.view.watched.as_ref(), &metadata.namespace);
            let machines: Vec<TinkerbellMachine> =
                all(view, TINKERBELL_MACHINE, Some(namespace)).await?;
            provided.backends = self.backends(observed, &machines);
        }
        Ok(provided)
    }

    /// Creates or changes the endpoint of the box.
    pub(super) async fn put_endpoint(
        &self,
        spec: &ControlPlaneEndpointSpec,
    ) -> Result<(), ObjectError> {
        let key = ObjectKey::new("", &spec.address);
        let objects = self.hardware.as_ref();
        let found: Option<Value> = find(objects, CONTROL_PLANE_ENDPOINT, &key).await?;
        let Some(mut object) = found else {
            let object = json!({
                "apiVersion": CONTROL_PLANE_ENDPOINT.api_version(),
                "kind": CONTROL_PLANE_ENDPOINT.kind,
                "metadata": { "name": spec.address },
                "spec": spec,
            });
            return objects.create(CONTROL_PLANE_ENDPOINT, object).await.map(drop);
        };
        object["spec"] = json!(spec);
        objects.update(CONTROL_PLANE_ENDPOINT, object).await.map(drop)
    }

    /// Deletes the endpoint of the box. The service of the endpoints then gives back the address.
    pub(super) async fn withdraw(&self, name: &str) -> Result<(), ObjectError> {
        let key = ObjectKey::new("", name);
        gone_is_fine(self.hardware.delete(CONTROL_PLANE_ENDPOINT, &key).await)
    }

    /// Deletes the endpoints of a TinkerbellCluster that does not exist. An endpoint stays while
    /// Hardware of the box has a machine of the control plane: the cluster continues to run.
    pub(super) async fn forget(&self, key: &ObjectKey) -> Result<Requeue, ObjectError> {
        let objects = self.hardware.as_ref();
        let cluster_uid = self.cluster_uid();
        let all: Vec<ControlPlaneEndpoint> = all(objects, CONTROL_PLANE_ENDPOINT, None).await?;
        let is_own = |it: &EndpointCluster| it.cluster_uid == cluster_uid && it.key() == *key;
        let mut requeue = Requeue::OnSignal;
        for endpoint in all.into_iter().filter(|it| is_own(&it.spec.cluster_ref)) {
            if !self.has_machines(&endpoint).await? {
                self.withdraw(&endpoint.metadata.name).await?;
                continue;
            }
            requeue = Requeue::After(RELEASE_WAIT);
            if !endpoint.spec.cluster_ref.deleted {
                let mut spec = endpoint.spec;
                spec.cluster_ref.deleted = true;
                self.put_endpoint(&spec).await?;
            }
        }
        Ok(requeue)
    }

    async fn has_machines(&self, endpoint: &ControlPlaneEndpoint) -> Result<bool, ObjectError> {
        let namespace = &endpoint.spec.cluster_ref.namespace;
        for backend in &endpoint.spec.backends {
            let Some(key) = &backend.hardware else { continue };
            let host: Option<Hardware> = find(self.hardware.as_ref(), HARDWARE, key).await?;
            let labels = host.map(|it| it.metadata.labels).unwrap_or_default();
            // An endpoint of an earlier version does not have the names of its machines.
            let is_machine = backend.machine.is_empty()
                || labels.get(OWNER_NAME).is_some_and(|name| *name == backend.machine);
            if labels.get(OWNER_NAMESPACE) == Some(namespace) && is_machine {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
