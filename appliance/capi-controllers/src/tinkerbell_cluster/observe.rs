//! Input of the decision about a TinkerbellCluster.

use std::collections::BTreeMap;
use std::net::IpAddr;

use api::infrastructure::cluster_api::{CLUSTER_NAME, Cluster, PAUSED};
use api::infrastructure::{
    Contract, OWNER_NAME, OWNER_NAMESPACE, TINKERBELL_CLUSTER, TINKERBELL_MACHINE,
    TinkerbellCluster, TinkerbellMachine,
};
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, Hardware};
use objects::{ObjectError, find, read};
use serde_json::Value;

use super::images::Reached;
use super::live_host::LiveHost;
use super::provided::{self, Provided};
use super::{TinkerbellClusterReconciler, endpoint, owner};
use hardware_choice::HardwareRequest;

/// Annotation or label of a cluster whose infrastructure another program manages (`cluster-api`
/// `util/annotations`; the contract of providers calls it a label).
const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";

/// TinkerbellCluster with all other inputs of the decision.
#[derive(Debug, Clone)]
pub struct Observed {
    /// TinkerbellCluster to decide about.
    pub cluster: TinkerbellCluster,
    /// TinkerbellCluster as stored JSON, for updates that keep unknown fields.
    pub object: Value,
    /// True if the watch filter selects the object.
    pub served: bool,
    /// True if the object is in a management cluster, false in the box's own API.
    pub in_management_cluster: bool,
    /// Cluster that owns the object; `None` if it does not exist.
    pub owner: Option<Cluster>,
    /// Contract that determines the shape of the failure domains.
    pub contract: Contract,
    /// All readable Hardware of the box.
    pub hosts: Vec<Hardware>,
    /// Hardware that has the address of the endpoint, and is not a machine of the cluster.
    pub conflicts: Vec<ObjectKey>,
    /// True if the host of the endpoint is an address of the box.
    pub is_own_address: bool,
    /// Host that answers for the endpoint of a new cluster.
    pub live_host: Option<LiveHost>,
    /// Name of the box.
    pub box_name: String,
    /// Objects of the box about endpoints that the box provides.
    pub provided: Provided,
    /// URLs of the images of the cluster, with the last results of their checks.
    pub images: BTreeMap<String, Reached>,
}

impl Observed {
    /// Returns true if controllers must not change the object.
    pub fn is_paused(&self) -> bool {
        let metadata = &self.cluster.metadata;
        match &self.owner {
            Some(owner) => owner.spec.pauses(metadata),
            None => metadata.annotations.contains_key(PAUSED),
        }
    }

    /// Returns true if the infrastructure was provisioned once. After `clusterctl move`, neither
    /// object has this status.
    pub fn was_provisioned(&self) -> bool {
        let of_owner = self.owner.as_ref().is_some_and(|it| it.status.has_infrastructure());
        self.cluster.status.is_provisioned() || of_owner
    }

    /// Returns true if another program manages the infrastructure of the cluster.
    pub fn is_managed_elsewhere(&self) -> bool {
        let metadata = &self.cluster.metadata;
        [&metadata.annotations, &metadata.labels].iter().any(|it| it.contains_key(MANAGED_BY))
    }
}

impl TinkerbellClusterReconciler {
    pub(super) async fn observe(&self, key: &ObjectKey) -> Result<Observed, ObjectError> {
        let object = self.view.watched.get(TINKERBELL_CLUSTER, key).await?;
        let cluster: TinkerbellCluster = read(object.clone())?;
        let mut owner = owner::referenced(&self.view, &cluster.metadata).await?;
        // The core controllers write the owner reference, and the box does not run them.
        if owner.is_none() && self.view.cluster.is_none() {
            owner = owner::referring(&self.view, TINKERBELL_CLUSTER, &cluster.metadata).await?;
        }
        let endpoint = endpoint::of(&cluster.spec, owner.as_ref());
        let address = endpoint.as_ref().and_then(|it| endpoint::address(&it.host));
        let hosts = self.hardware.list(HARDWARE, None).await?;
        let mut observed = Observed {
            served: self.view.served(&cluster.metadata),
            in_management_cluster: self.view.cluster.is_some(),
            contract: self.view.contract,
            hosts: hosts.into_iter().filter_map(|host| read(host).ok()).collect(),
            conflicts: Vec::new(),
            is_own_address: false,
            live_host: None,
            provided: Provided::default(),
            images: BTreeMap::new(),
            box_name: self.box_name.clone(),
            cluster,
            object,
            owner,
        };
        observed.provided = self.provided(&observed).await?;
        let is_idle =
            observed.is_paused() || observed.cluster.metadata.deletion_timestamp.is_some();
        if observed.served && !is_idle {
            observed.images = self.images(&observed).await?;
        }
        if let Some(address) = address {
            let (provided, text) = (&observed.provided, address.to_string());
            let is_requested = provided::is_requested(&observed);
            // The box has the address of another cluster's endpoint too, and that cluster may
            // release the endpoint.
            let is_provided = provided.has(&text) || (is_requested && provided.has_any(&text));
            let is_checked = is_requested || !observed.was_provisioned();
            observed.is_own_address = is_checked && !is_provided && self.addresses.has(address);
            if !observed.was_provisioned() {
                observed.conflicts = self.conflicts(&observed, address).await?;
                observed.live_host = self.live_host(&observed, address).await?;
            }
        }
        Ok(observed)
    }

    /// Returns true if the Hardware is that of the machine. The machine of the same name in another
    /// management cluster has other Hardware.
    pub(super) fn has(&self, machine: &TinkerbellMachine, host: &Hardware) -> bool {
        let request = HardwareRequest {
            cluster_uid: self.view.cluster.as_ref().map(|cluster| cluster.uid.clone()),
            ..HardwareRequest::of(machine, None, &self.box_name)
        };
        request.owns(host) || request.follows(host)
    }

    /// Returns the Hardware that has `address`, and is not a machine of the cluster. A machine of
    /// the cluster has the address of the endpoint if it is the only one of its control plane, and
    /// the cluster was moved from another management cluster.
    async fn conflicts(
        &self,
        observed: &Observed,
        address: IpAddr,
    ) -> Result<Vec<ObjectKey>, ObjectError> {
        let mut conflicts = Vec::new();
        let has_address = |own: IpAddr| own.to_canonical() == address;
        for host in observed.hosts.iter().filter(|it| it.spec.addresses().any(has_address)) {
            if !self.is_member(observed, host).await? {
                conflicts.push(host.key());
            }
        }
        Ok(conflicts)
    }

    /// Returns true if the TinkerbellMachine that owns the Hardware belongs to the cluster. A
    /// machine of the same name in another management cluster does not.
    async fn is_member(&self, observed: &Observed, host: &Hardware) -> Result<bool, ObjectError> {
        let label = |key| host.metadata.labels.get(key).map_or("", String::as_str);
        let (namespace, name) = (label(OWNER_NAMESPACE), label(OWNER_NAME));
        if name.is_empty() || namespace != observed.cluster.metadata.namespace {
            return Ok(false);
        }
        let key = ObjectKey::new(namespace, name);
        let objects = self.view.watched.as_ref();
        let machine: Option<TinkerbellMachine> = find(objects, TINKERBELL_MACHINE, &key).await?;
        let Some(machine) = machine else { return Ok(false) };
        let cluster = observed.owner.as_ref().map(|owner| &owner.metadata.name);
        let is_of_cluster =
            cluster.is_some() && machine.metadata.labels.get(CLUSTER_NAME) == cluster;
        Ok(is_of_cluster && self.has(&machine, host))
    }
}
