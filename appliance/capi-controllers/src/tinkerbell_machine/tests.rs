//! Tests of the reconciler on in-memory objects, for the box's own API and a management cluster.

mod clusters;
mod crash;
mod deletion;
mod guarded;
mod outage;
mod requests;
mod safety;
mod settings;
mod takeover;
mod wipe;

use std::sync::Arc;
use std::time::Duration;

use api::core::SECRET;
use api::infrastructure::cluster_api::{CLUSTER, MACHINE};
use api::infrastructure::{Contract, TINKERBELL_CLUSTER, TINKERBELL_MACHINE};
use api::meta::{ObjectKey, Resource};
use api::os_image::OS_IMAGE;
use api::tinkerbell::{HARDWARE, Hardware, TEMPLATE, WORKFLOW};
use jiff::Timestamp;
use objects::fake::Memory;
use objects::{ObjectError, Objects};
use serde_json::{Value, json};
use stdx::TestClock;

use super::{MetadataUrls, TinkerbellMachineReconciler, Waiting};
use crate::signals::AllClusterApiSignals;
use crate::{ClusterIdentity, ManagementView};
use controllers::runtime::{Reconciler as _, Requeue};

/// Maximum reconciles until a machine is at rest.
const STEPS_MAX: usize = 20;

struct BoxUrl;

impl MetadataUrls for BoxUrl {
    fn metadata_url(&self, _hardware: &Hardware) -> Option<String> {
        Some("http://10.77.0.1:50061".to_owned())
    }
}

/// Objects of the box and of its management, and the reconciler.
struct World {
    box_api: Arc<Memory>,
    management: Arc<Memory>,
    cluster: Option<ClusterIdentity>,
    clusters: Arc<AllClusterApiSignals>,
}

impl World {
    /// Creates the objects of the founding guide on the box's own API.
    fn guide() -> Self {
        let api = Arc::new(Memory::default());
        let world = Self {
            box_api: api.clone(),
            management: api.clone(),
            cluster: None,
            clusters: known(&api),
        };
        world.secrets_and_image();
        world.hardware("nuc1", json!({}));
        for (resource, object) in guide() {
            world.management.put(resource, object);
        }
        world
    }

    /// Creates a Cluster with one Machine `worker` in a management cluster, and an empty box.
    fn paired() -> Self {
        Self::paired_with("c1", &Arc::default())
    }

    /// Creates a Cluster with one Machine `worker` in the management cluster `uid`.
    fn paired_with(uid: &str, box_api: &Arc<Memory>) -> Self {
        let cluster = ClusterIdentity { uid: uid.to_owned(), name: "prod".to_owned() };
        let (box_api, management) = (Arc::clone(box_api), Arc::new(Memory::default()));
        let clusters = known(&box_api);
        let world = Self { box_api, management, cluster: Some(cluster), clusters };
        world.secrets_and_image();
        let reference = json!({ "kind": "TinkerbellCluster", "name": "demo",
            "apiGroup": "infrastructure.cluster.x-k8s.io" });
        world.put(CLUSTER, "demo", json!({ "spec": { "infrastructureRef": reference } }));
        world.put(TINKERBELL_CLUSTER, "demo", json!({ "status": { "ready": true } }));
        world.machine("worker");
        world
    }

    fn put(&self, resource: Resource, name: &str, mut object: Value) -> ObjectKey {
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!("default");
        self.management.put(resource, object)
    }

    /// Creates a Machine with bootstrap data, and its TinkerbellMachine.
    fn machine(&self, name: &str) -> ObjectKey {
        let secret = json!({ "data": { "value": "I2Nsb3VkLWNvbmZpZwojIFBST1ZJREVSX0lECg==" } });
        self.put(SECRET, &format!("{name}-bootstrap"), secret);
        let bootstrap = json!({ "dataSecretName": format!("{name}-bootstrap") });
        let spec = json!({ "clusterName": "demo", "version": "v1.34.1", "bootstrap": bootstrap });
        self.put(MACHINE, name, json!({ "spec": spec }));
        let owner = json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "name": name, "uid": "m" });
        let machine = json!({
            "metadata": { "ownerReferences": [owner], "generation": 1 },
            "spec": { "osImage": "ubuntu-20.04" },
        });
        self.put(TINKERBELL_MACHINE, name, machine)
    }

    fn secrets_and_image(&self) {
        let data = json!({ "data": { "value": "I2Nsb3VkLWNvbmZpZwo=" } });
        self.put(SECRET, "nuc-control-plane-userdata", data);
        let spec = json!({ "url": "http://images/ubuntu.img",
            "os": { "distro": "ubuntu", "version": "20.04" } });
        let metadata = json!({ "name": "ubuntu-20.04", "namespace": "default" });
        self.box_api.put(OS_IMAGE, json!({ "metadata": metadata, "spec": spec }));
    }

    fn hardware(&self, name: &str, more: Value) {
        let attributes =
            json!({ "product": { "vendor": "Intel(R) Client Systems", "name": "NUC8i5BEH" } });
        let annotations = json!({ api::tinkerbell::AGENT_ATTRIBUTES: attributes.to_string() });
        let mut spec = json!({
            "disks": [{ "device": "/dev/nvme0n1" }],
            "interfaces": [{
                "dhcp": { "mac": "52:54:00:77:00:01", "ip": { "address": "10.77.0.11" },
                    "hostname": name },
                "netboot": { "allowPXE": true },
            }],
        });
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let metadata = json!({ "name": name, "namespace": "default", "annotations": annotations });
        self.box_api.put(HARDWARE, json!({ "metadata": metadata, "spec": spec }));
    }

    fn reconciler(&self) -> TinkerbellMachineReconciler {
        self.reconciler_on(self.management.clone(), self.box_api.clone())
    }

    fn reconciler_on(
        &self,
        management: Arc<dyn Objects>,
        box_api: Arc<dyn Objects>,
    ) -> TinkerbellMachineReconciler {
        let view = ManagementView {
            objects: management.clone(),
            watched: management,
            cluster: self.cluster.clone(),
            contract: Contract::V1beta1,
            watch_filter: None,
        };
        TinkerbellMachineReconciler {
            view,
            objects: box_api,
            metadata: Arc::new(BoxUrl),
            clock: Arc::new(TestClock::at(Timestamp::UNIX_EPOCH)),
            box_name: "box1".to_owned(),
            clusters: self.clusters.clone(),
            box_id: "id-1".to_owned(),
            reservations: Arc::default(),
            waiting: Waiting::default(),
        }
    }

    /// Reconciles until the next reconcile is not due at once.
    async fn settle(&self, name: &str) -> Result<Requeue, ObjectError> {
        let key = ObjectKey::new("default", name);
        for _ in 0..STEPS_MAX {
            match self.reconciler().reconcile(&key).await {
                Ok(Requeue::After(wait)) if wait < Duration::from_secs(1) => {}
                Err(ObjectError::Conflict(_)) => {}
                result => return result,
            }
        }
        panic!("the machine {name} is not at rest");
    }

    fn get(&self, name: &str) -> Value {
        self.management.peek(TINKERBELL_MACHINE, name).unwrap()
    }

    fn host(&self, name: &str) -> Value {
        self.box_api.peek(HARDWARE, name).unwrap()
    }

    /// Returns the status, reason and message of a condition.
    fn condition(&self, name: &str, kind: &str) -> (String, String, String) {
        let machine = self.get(name);
        let all = machine["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = all.iter().find(|it| it["type"] == kind).unwrap_or_else(|| panic!("{machine}"));
        let text = |field: &str| found[field].as_str().unwrap().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    fn set_workflow(&self, name: &str, status: Value) {
        let mut workflow = self.box_api.peek(WORKFLOW, name).unwrap();
        workflow["status"] = status;
        self.box_api.put(WORKFLOW, workflow);
    }

    /// Reconciles a machine until it is provisioned.
    async fn provision(&self, name: &str) {
        self.settle(name).await.unwrap();
        self.set_workflow(name, json!({ "state": "SUCCESS" }));
        self.settle(name).await.unwrap();
        assert_eq!(self.condition(name, "Ready").0, "True");
    }

    fn reasons(&self) -> Vec<String> {
        let all = self.management.happenings.lock().unwrap();
        all.iter().map(|event| event.reason.clone()).collect()
    }
}

/// Returns the clusters of a box that has no other than its own API.
fn known(box_api: &Arc<Memory>) -> Arc<AllClusterApiSignals> {
    let clusters = Arc::new(AllClusterApiSignals::default());
    clusters.insert(None, Arc::default(), box_api.clone());
    clusters
}

/// Objects of the founding guide.
fn guide() -> Vec<(Resource, Value)> {
    let object = |name: &str, spec: Value| {
        json!({ "metadata": { "name": name, "namespace": "default", "generation": 1 },
            "spec": spec })
    };
    let software = |id: Value| {
        let mut spec = json!({
            "hardwareSelector": { "manufacturer": "Intel", "plan": "NUC" },
            "osImage": "ubuntu-20.04",
            "userDataSecret": { "name": "nuc-control-plane-userdata" },
        });
        if !id.is_null() {
            spec["providerID"] = id;
        }
        spec
    };
    let machine = json!({
        "clusterName": "my-nuc-cluster",
        "version": "v1.21.1",
        "bootstrap": { "configRef": { "kind": "KubeadmConfig", "name": "x",
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1alpha4" } },
        "infrastructureRef": { "kind": "TinkerbellMachine", "name": "nuc-control-plane-1",
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha4" },
    });
    let id = json!("tinkerbell://nuc-control-plane-1");
    vec![
        (MACHINE, object("nuc-control-plane-1", machine)),
        (TINKERBELL_MACHINE, object("nuc-control-plane-1", software(id))),
    ]
}

#[tokio::test]
async fn the_machine_of_the_guide_is_installed_and_reported() {
    let world = World::guide();
    let name = "nuc-control-plane-1";
    world.settle(name).await.unwrap();
    let host = world.host("nuc1");
    assert_eq!(host["metadata"]["labels"]["v1alpha1.tinkerbell.org/ownerName"], name);
    assert_eq!(host["spec"]["userData"], "#cloud-config\n");
    let text = world.box_api.peek(TEMPLATE, name).unwrap()["spec"]["data"].to_string();
    assert!(text.contains("http://images/ubuntu.img"), "{text}");
    assert!(world.box_api.peek(WORKFLOW, name).is_some());
    assert_eq!(world.condition(name, "BootstrapDataReady").1, "UserDataOnly");
    let (status, reason, _) = world.condition(name, "Ready");
    assert_eq!((&*status, &*reason), ("False", "Installing"));
    assert_eq!(world.condition(name, "HardwareClaimed").0, "True");
    // The owner gave a provider ID, which stays.
    let actions = json!([{ "name": "stream image", "status": "SUCCESS" }, { "name": "reboot" }]);
    world.set_workflow(name, json!({ "state": "RUNNING", "tasks": [{ "actions": actions }] }));
    world.settle(name).await.unwrap();
    assert_eq!(
        world.condition(name, "Ready").2,
        "the Workflow default/nuc-control-plane-1 runs \
        the action 1/2: stream image"
    );
    assert_eq!(world.get(name)["status"]["instanceState"], "Running 1/2");
    world.set_workflow(name, json!({ "state": "SUCCESS" }));
    world.settle(name).await.unwrap();
    let machine = world.get(name);
    assert_eq!(machine["spec"]["providerID"], "tinkerbell://nuc-control-plane-1");
    assert_eq!(machine["spec"]["hardwareName"], "nuc1");
    assert_eq!(machine["status"]["ready"], true);
    assert_eq!(machine["status"]["initialization"]["provisioned"], true);
    assert_eq!(machine["status"]["failureDomain"], "box1");
    let address = |kind: &str, address: &str| json!({ "type": kind, "address": address });
    let addresses = json!([
        address("InternalIP", "10.77.0.11"),
        address("Hostname", "nuc1"),
        address("InternalDNS", "nuc1"),
    ]);
    assert_eq!(machine["status"]["addresses"], addresses);
    assert_eq!(world.reasons(), ["HardwareClaimed", "InstallationStarted", "Provisioned"]);
    // A provisioned machine is at rest: nothing is written again.
    let before = (world.get(name), world.host("nuc1"));
    assert_eq!(world.settle(name).await.unwrap(), Requeue::OnSignal);
    assert_eq!((world.get(name), world.host("nuc1")), before);
}

#[tokio::test]
async fn a_machine_of_a_management_cluster_waits_for_each_object_in_turn() {
    let world = World::paired();
    let reason = || world.condition("worker", "Ready").1;
    let steps: [(&str, &dyn Fn()); 5] = [
        ("WaitingForMachine", &|| {
            world.put(MACHINE, "worker", json!({ "spec": { "clusterName": "demo" } }));
        }),
        ("WaitingForCluster", &|| {
            let spec = json!({ "infrastructureRef": { "kind": "TinkerbellCluster",
                "name": "demo" } });
            world.put(CLUSTER, "demo", json!({ "spec": spec }));
            world.put(TINKERBELL_CLUSTER, "demo", json!({}));
        }),
        ("WaitingForClusterInfrastructure", &|| {
            let status = json!({ "initialization": { "provisioned": true } });
            world.put(TINKERBELL_CLUSTER, "demo", json!({ "status": status }));
        }),
        ("WaitingForBootstrapData", &|| {
            let bootstrap = json!({ "dataSecretName": "worker-bootstrap" });
            let spec = json!({ "clusterName": "demo", "bootstrap": bootstrap });
            world.put(MACHINE, "worker", json!({ "spec": spec }));
        }),
        ("NoHardware", &|| world.hardware("nuc1", json!({}))),
    ];
    for resource in [MACHINE, CLUSTER, TINKERBELL_CLUSTER] {
        let name = if resource == MACHINE { "worker" } else { "demo" };
        let key = ObjectKey::new("default", name);
        world.management.delete(resource, &key).await.unwrap();
    }
    for (expected, next) in steps {
        world.settle("worker").await.unwrap();
        assert_eq!(reason(), expected);
        next();
    }
    world.settle("worker").await.unwrap();
    assert_eq!(reason(), "Installing");
    let host = world.host("nuc1");
    // The placeholder in the bootstrap data became the provider ID of the Hardware.
    assert_eq!(host["spec"]["userData"], "#cloud-config\n# tinkerbell://default/nuc1\n");
    assert_eq!(host["metadata"]["labels"]["tinbox.dev/management-cluster-uid"], "c1");
    assert_eq!(host["metadata"]["annotations"]["tinbox.dev/management-cluster"], "prod");
    assert_eq!(world.get("worker")["spec"]["providerID"], Value::Null);
    world.set_workflow("worker", json!({ "state": "SUCCESS" }));
    world.settle("worker").await.unwrap();
    assert_eq!(world.get("worker")["spec"]["providerID"], "tinkerbell://default/nuc1");
}

#[tokio::test]
async fn each_bad_input_gives_a_condition_and_changes_no_hardware() {
    let world = World::paired();
    world.hardware("nuc1", json!({}));
    world.settle("worker").await.unwrap();
    let owned = world.host("nuc1");
    world.box_api.delete(WORKFLOW, &ObjectKey::new("default", "worker")).await.unwrap();
    let machine = world.get("worker");
    let cases = [
        ("osImage", json!("debian-7"), "ImageNotFound", "debian-7"),
        ("userDataSecret", json!({ "name": "gone" }), "SecretNotFound", "default/gone"),
        ("bootOptions", json!({ "bootMode": "isoboot" }), "Installing", "begins"),
    ];
    for (field, value, reason, part) in cases {
        let mut machine = machine.clone();
        machine["spec"][field] = value;
        world.management.put(TINKERBELL_MACHINE, machine);
        world.settle("worker").await.unwrap();
        let (_, found, message) = world.condition("worker", "Ready");
        assert_eq!(found, reason, "{message}");
        assert!(message.contains(part), "{message}");
        assert_eq!(world.host("nuc1")["spec"], owned["spec"]);
    }
}

#[tokio::test]
async fn a_failed_workflow_names_the_cause_and_the_command() {
    let world = World::guide();
    let name = "nuc-control-plane-1";
    world.settle(name).await.unwrap();
    let ended = json!({ "time": "2026-11-27T10:00:00Z", "reason": "ActionFailed",
        "message": "stream image: no space on /dev/nvme0n1" });
    world.set_workflow(name, json!({ "state": "FAILED", "ended": ended }));
    world.settle(name).await.unwrap();
    let (_, reason, message) = world.condition(name, "Ready");
    assert_eq!(reason, "WorkflowFailed");
    assert!(message.contains("no space on /dev/nvme0n1"), "{message}");
    assert!(message.contains("tinbox workflow retry nuc-control-plane-1 -n default"), "{message}");
    // A retry continues the installation of the same machine.
    world.set_workflow(name, json!({ "state": "SUCCESS" }));
    world.settle(name).await.unwrap();
    assert_eq!(world.condition(name, "Ready").0, "True");
    let reasons = world.reasons();
    assert_eq!(reasons.iter().filter(|reason| *reason == "InstallationFailed").count(), 1);
}
