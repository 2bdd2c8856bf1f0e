//! Signals to the controllers of Cluster API kinds after a change of an object, without I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use api::infrastructure::cluster_api::{self, CONTROL_PLANE, Machine};
use api::infrastructure::{
    CLUSTER_UID, MACHINE_NAME, MACHINE_NAMESPACE, OWNER_NAME, OWNER_NAMESPACE, TINKERBELL_CLUSTER,
    TINKERBELL_MACHINE, TINKERBELL_MACHINE_TEMPLATE,
};
use api::meta::{ObjectKey, Resource};
use api::network::control_plane_endpoint::ControlPlaneEndpoint;
use serde_json::Value;

use crate::KnownMachines;
use crate::tinkerbell_machine::conditions;
use crate::tinkerbell_remediation::{REMEDIATION, REMEDIATION_NAMESPACE};
use api::management_cluster::MANAGEMENT_CLUSTER;
use controllers::runtime::Signals;
use objects::{ObjectError, Objects, Pending, read};

/// Kinds whose changes signal the controllers, on the box and in a management cluster. A management
/// cluster also has the kind TinkerbellRemediation.
pub const KINDS: [Resource; 5] = [
    TINKERBELL_CLUSTER,
    TINKERBELL_MACHINE,
    TINKERBELL_MACHINE_TEMPLATE,
    cluster_api::CLUSTER,
    cluster_api::MACHINE,
];

/// Parts of a TinkerbellMachine that the status view shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MachineReport {
    /// Name of the Hardware; empty if the machine has none.
    pub hardware: String,
    /// True if the machine is ready.
    pub ready: bool,
    /// Reason of the condition `Ready`.
    pub state: String,
    /// Message of the condition `HardwareClaimed`.
    pub choice: String,
}

impl MachineReport {
    fn of(object: &Value) -> Self {
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        let condition = |kind: &str, field: &str| {
            let mut all = conditions.into_iter().flatten();
            let found = all.find(|it| text(it, "/type") == kind);
            found.map(|it| text(it, field).to_owned()).unwrap_or_default()
        };
        Self {
            hardware: text(object, "/spec/hardwareName").to_owned(),
            ready: condition(conditions::READY, "/status") == "True",
            state: condition(conditions::READY, "/reason"),
            choice: condition(conditions::HARDWARE, "/message"),
        }
    }
}

/// Parts of Clusters and TinkerbellClusters that the controller for TinkerbellMachines reads.
const MACHINE_INPUTS: [&str; 7] = [
    "/metadata/uid",
    "/metadata/annotations",
    "/metadata/deletionTimestamp",
    "/spec",
    "/status/ready",
    "/status/infrastructureReady",
    "/status/initialization",
];

/// Signals to the controllers of one management cluster, or of the box's own API.
#[derive(Default)]
pub struct ClusterApiSignals {
    /// Signals of the controller for TinkerbellMachines.
    pub machine: Signals,
    /// Signals of the controller for TinkerbellClusters.
    pub cluster: Signals,
    /// Signals of the controller for TinkerbellMachineTemplates.
    pub template: Signals,
    /// Signals of the controller for TinkerbellRemediations.
    pub remediation: Signals,
    /// Known TinkerbellMachines, with the parts that the status view shows.
    machines: Mutex<BTreeMap<ObjectKey, MachineReport>>,
    /// Hash of the parts of each Cluster and TinkerbellCluster that machines depend on.
    cluster_parts: Mutex<BTreeMap<(&'static str, ObjectKey), u64>>,
    /// TinkerbellClusters that were not deleted since the start.
    clusters: Mutex<BTreeSet<ObjectKey>>,
    /// Known TinkerbellRemediations, which the Machine with the same name signals too.
    remediations: Mutex<BTreeSet<ObjectKey>>,
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn key(object: &Value) -> ObjectKey {
    ObjectKey::new(text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

impl ClusterApiSignals {
    /// Creates signals without known objects.
    pub fn new([machine, cluster, template, remediation]: [Signals; 4]) -> Self {
        Self { machine, cluster, template, remediation, ..Self::default() }
    }

    /// Signals the controllers after a change or the deletion of an object of [`KINDS`].
    pub fn changed(&self, resource: Resource, object: &Value) {
        let key = key(object);
        match resource.kind {
            "TinkerbellMachine" => {
                let old = lock(&self.machines).insert(key.clone(), MachineReport::of(object));
                // The machines of a control plane are the backends of its endpoint, and the image
                // of a new machine is checked.
                let labels = object.pointer("/metadata/labels");
                let is_member = labels.is_some_and(|it| it.get(CONTROL_PLANE).is_some());
                if is_member || old.is_none() {
                    self.signal_clusters(&key.namespace);
                }
                self.machine.signal(key);
            }
            "TinkerbellMachineTemplate" => {
                // The cluster reports the image of the template.
                self.signal_clusters(&key.namespace);
                self.template.signal(key);
            }
            "TinkerbellRemediation" => {
                lock(&self.remediations).insert(key.clone());
                self.remediation.signal(key);
            }
            "TinkerbellCluster" => {
                lock(&self.clusters).insert(key.clone());
                if self.is_news_for_machines(resource.kind, &key, object) {
                    self.signal_machines(&key.namespace);
                }
                self.cluster.signal(key);
            }
            "Cluster" => {
                if self.is_news_for_machines(resource.kind, &key, object) {
                    self.signal_machines(&key.namespace);
                }
                self.signal_clusters(&key.namespace);
            }
            _ => {
                // A request has the name of its Machine.
                if lock(&self.remediations).contains(&key) {
                    self.remediation.signal(key.clone());
                }
                let machine = serde_json::from_value::<Machine>(object.clone());
                let reference = machine.ok().and_then(|it| it.spec.infrastructure_ref);
                let own = reference.filter(|it| it.kind == TINKERBELL_MACHINE.kind);
                if let Some(own) = own {
                    self.machine.signal(ObjectKey::new(key.namespace, own.name));
                }
            }
        }
    }

    /// Forgets an object that no longer exists, and signals its controller.
    pub fn removed(&self, resource: Resource, key: &ObjectKey) {
        match resource.kind {
            "TinkerbellMachine" => {
                lock(&self.machines).remove(key);
                self.signal_clusters(&key.namespace);
                self.machine.signal(key.clone());
            }
            "TinkerbellCluster" => {
                lock(&self.clusters).remove(key);
                lock(&self.cluster_parts).remove(&(resource.kind, key.clone()));
                self.signal_machines(&key.namespace);
                self.cluster.signal(key.clone());
            }
            "TinkerbellRemediation" => {
                lock(&self.remediations).remove(key);
                self.remediation.signal(key.clone());
            }
            "Cluster" => {
                lock(&self.cluster_parts).remove(&(resource.kind, key.clone()));
            }
            _ => {}
        }
    }

    fn signal_clusters(&self, namespace: &str) {
        let clusters = lock(&self.clusters);
        let near = clusters.iter().filter(|it| it.namespace == namespace);
        near.for_each(|it| self.cluster.signal(it.clone()));
    }

    fn signal_machines(&self, namespace: &str) {
        let machines = lock(&self.machines);
        let near = machines.keys().filter(|it| it.namespace == namespace);
        near.for_each(|it| self.machine.signal(it.clone()));
    }

    /// Returns true if a change of a Cluster or TinkerbellCluster can concern machines. Cluster API
    /// writes the status of a Cluster whenever one of its machines changes, and that must not
    /// signal all the others.
    fn is_news_for_machines(&self, kind: &'static str, key: &ObjectKey, object: &Value) -> bool {
        let mut hasher = DefaultHasher::new();
        for part in MACHINE_INPUTS {
            object.pointer(part).map(Value::to_string).hash(&mut hasher);
        }
        let hash = hasher.finish();
        lock(&self.cluster_parts).insert((kind, key.clone()), hash) != Some(hash)
    }

    /// Signals all TinkerbellMachines without Hardware.
    fn signal_waiting(&self) {
        let machines = lock(&self.machines);
        let waiting = machines.iter().filter(|(_, report)| report.hardware.is_empty());
        waiting.for_each(|(key, _)| self.machine.signal(key.clone()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Signals and objects of one API.
struct ClusterEntry {
    signals: Arc<ClusterApiSignals>,
    objects: Arc<dyn Objects>,
}

/// Signals and objects of all management clusters by unique ID; that of the box's own API is empty.
#[derive(Default)]
pub struct AllClusterApiSignals(Mutex<BTreeMap<String, ClusterEntry>>);

impl AllClusterApiSignals {
    /// Adds or replaces a management cluster; `None` means the box's own API.
    pub fn insert(
        &self,
        cluster_uid: Option<&str>,
        signals: Arc<ClusterApiSignals>,
        objects: Arc<dyn Objects>,
    ) {
        let entry = ClusterEntry { signals, objects };
        lock(&self.0).insert(cluster_uid.unwrap_or_default().to_owned(), entry);
    }

    /// Returns the known TinkerbellMachines with the unique ID of their management cluster.
    pub(crate) fn reports(&self) -> Vec<(String, ObjectKey, MachineReport)> {
        let all = lock(&self.0);
        let of = |(uid, entry): (&String, &ClusterEntry)| {
            let machines = lock(&entry.signals.machines);
            let one =
                |(key, it): (&ObjectKey, &MachineReport)| (uid.clone(), key.clone(), it.clone());
            machines.iter().map(one).collect::<Vec<_>>()
        };
        all.iter().flat_map(of).collect()
    }

    /// Removes a management cluster, unless other signals replaced these.
    pub fn remove(&self, cluster_uid: &str, signals: &Arc<ClusterApiSignals>) {
        let mut all = lock(&self.0);
        if all.get(cluster_uid).is_some_and(|it| Arc::ptr_eq(&it.signals, signals)) {
            all.remove(cluster_uid);
        }
    }

    /// Signals the TinkerbellCluster of a ControlPlaneEndpoint of the box.
    pub fn endpoint_changed(&self, object: &Value) {
        let Ok(endpoint) = read::<ControlPlaneEndpoint>(object.clone()) else { return };
        let cluster = endpoint.spec.cluster_ref;
        if let Some(entry) = lock(&self.0).get(&cluster.cluster_uid) {
            entry.signals.cluster.signal(cluster.key());
        }
    }

    /// Signals the TinkerbellMachine that has a Hardware, Workflow or Job of the box. A free
    /// Hardware signals all machines that wait for one.
    pub fn box_object_changed(&self, resource: Resource, object: &Value) {
        let (name, namespace) = match resource.kind {
            "Hardware" => (OWNER_NAME, OWNER_NAMESPACE),
            _ => (MACHINE_NAME, MACHINE_NAMESPACE),
        };
        let labels = object.pointer("/metadata/labels");
        let label = |key: &str| {
            labels.and_then(|it| it.get(key)).and_then(Value::as_str).unwrap_or_default()
        };
        let all = lock(&self.0);
        let own = all.get(label(CLUSTER_UID)).map(|entry| &entry.signals);
        if let (Some(own), "Job") = (own, resource.kind)
            && !label(REMEDIATION).is_empty()
        {
            own.remediation
                .signal(ObjectKey::new(label(REMEDIATION_NAMESPACE), label(REMEDIATION)));
        }
        if !label(name).is_empty() {
            if let Some(own) = own {
                own.machine.signal(ObjectKey::new(label(namespace), label(name)));
            }
        } else if resource.kind == "Hardware" {
            all.values().for_each(|entry| entry.signals.signal_waiting());
        }
    }
}

impl KnownMachines for AllClusterApiSignals {
    fn has_machine<'a>(&'a self, cluster_uid: &'a str, key: &'a ObjectKey) -> Pending<'a, bool> {
        let objects = |uid| lock(&self.0).get(uid).map(|entry| Arc::clone(&entry.objects));
        let (api, own) = (objects(cluster_uid), objects(""));
        Box::pin(async move {
            if let Some(api) = api {
                return match api.get(TINKERBELL_MACHINE, key).await {
                    Ok(_) => Ok(true),
                    Err(ObjectError::NotFound(_)) => Ok(false),
                    Err(error) => Err(error),
                };
            }
            let own =
                own.ok_or_else(|| ObjectError::Internal("the box is not known".to_owned()))?;
            let paired = own.list(MANAGEMENT_CLUSTER, None).await?;
            if !paired.iter().any(|it| text(it, "/status/clusterUID") == cluster_uid) {
                return Ok(false);
            }
            let why = "the box is not connected to the management cluster".to_owned();
            let what = format!("{} {key}", TINKERBELL_MACHINE.kind);
            Err(ObjectError::Unavailable { what, why, hint: None })
        })
    }
}

#[cfg(test)]
mod tests;
