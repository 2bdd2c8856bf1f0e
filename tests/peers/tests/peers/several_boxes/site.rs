//! Two boxes with Hardware and BMCs, and a management cluster with stock Cluster API.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use capi::Repository;
use peers::bmc_sim::{BmcSim, Config};
use peers::cluster_api::Series;
use peers::{Kubectl, Tinboxd, run};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{reason, reference};
use crate::claim::program;
use crate::cluster_nodes::management::{Management, good};

/// Host names of the boxes, which are their failure domains.
pub const BOXES: [&str; 2] = ["box-red", "box-blue"];
/// Watch filters of the boxes, and the namespaces of the objects with these labels.
pub const FILTERS: [&str; 2] = ["red", "blue"];
/// Label that a watch filter selects by.
const FILTER: &str = "cluster.x-k8s.io/watch-filter";
/// Number of Hardware of each box.
const EACH: usize = 6;
const OWNER: &str = "v1alpha1.tinkerbell.org/ownerName";

/// A box with its machines.
pub struct OneBox {
    pub tinboxd: Tinboxd,
    kubectl: Kubectl,
    bmcs: Vec<BmcSim>,
    _images: TempDir,
}

/// All programs of the test.
pub struct Site {
    pub boxes: Vec<OneBox>,
    management: Management,
}

impl OneBox {
    fn start(name: &str, number: usize) -> Self {
        let images = TempDir::with_prefix("images-").unwrap();
        let sections = format!("[images]\ncache = {:?}\n", images.path());
        let tinboxd = Tinboxd::start_on_host(name, &sections).unwrap();
        let kubectl = tinboxd.kubectl().unwrap();
        let mut bmcs = Vec::new();
        let mut objects = Vec::new();
        for at in 0..EACH {
            let bmc = BmcSim::start(Config::default()).unwrap();
            objects.extend(machine_of(name, number, at, &bmc));
            bmcs.push(bmc);
        }
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        good(&kubectl, &["apply", "-f", "-"], &list.to_string());
        Self { tinboxd, kubectl, bmcs, _images: images }
    }

    fn list(&self, resource: &str) -> Vec<Value> {
        list(&self.kubectl, &[resource])
    }

    /// Returns the power commands that the BMC of a Hardware received.
    fn controls(&self, hardware: &str) -> Vec<u8> {
        let number = hardware.rsplit('-').next().unwrap();
        self.bmcs[number.parse::<usize>().unwrap()].chassis().controls
    }
}

/// Returns a Hardware, its BMC and the password of the BMC.
fn machine_of(name: &str, number: usize, at: usize, bmc: &BmcSim) -> [Value; 3] {
    let address = bmc.endpoint(None).address;
    let name = format!("{name}-{at}");
    let bmc_key = json!({ "name": format!("bmc-{name}"), "namespace": "default" });
    [
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": bmc_key,
            "stringData": { "username": BmcSim::USERNAME, "password": BmcSim::PASSWORD },
        }),
        json!({
            "apiVersion": "bmc.tinkerbell.org/v1alpha1", "kind": "Machine", "metadata": bmc_key,
            "spec": { "connection": {
                "host": address.host, "port": address.port, "authSecretRef": bmc_key,
                "insecureTLS": true,
            } },
        }),
        json!({
            "apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware",
            "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "bmcRef": { "apiGroup": "bmc.tinkerbell.org", "kind": "Machine",
                    "name": bmc_key["name"] },
                "disks": [{ "device": "/dev/nvme0n1" }],
                "interfaces": [{ "dhcp": {
                    "mac": format!("52:54:00:99:{number:02x}:{at:02x}"), "hostname": name,
                    "ip": { "address": format!("192.168.{number}.{}", 20 + at) },
                } }],
            },
        }),
    ]
}

fn list(kubectl: &Kubectl, arguments: &[&str]) -> Vec<Value> {
    let text = good(kubectl, &[&["get", "-o", "json"], arguments].concat(), "");
    let list: Value = serde_json::from_str(&text).unwrap();
    list["items"].as_array().cloned().unwrap_or_default()
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

impl Site {
    /// Starts all programs. No box is paired.
    pub fn start() -> Self {
        let boxes: Vec<OneBox> =
            BOXES.into_iter().zip(1..).map(|(name, number)| OneBox::start(name, number)).collect();
        let log = boxes[0].tinboxd.folder().join("none");
        let management = Management::start(log, Series::V1_13, |cluster, plan| {
            let kubectl = cluster.kubectl().unwrap();
            let apply = |text: &str| {
                good(&kubectl, &["apply", "--server-side", "-f", "-"], text);
            };
            apply(Repository::new("0.1.0").components());
            plan.manifests().for_each(|(_, list)| apply(&list.to_string()));
        });
        Self { boxes, management }
    }

    /// Pairs a box with more arguments of `tinbox capi pair`.
    pub fn pair(&self, at: usize, more: &[&str]) {
        let mut tinbox = Command::new(program("tinbox"));
        tinbox.env_clear().arg("--kubeconfig").arg(self.boxes[at].tinboxd.kubeconfig());
        tinbox.args(["capi", "pair", "prod"]).args(more);
        tinbox.arg("--management-kubeconfig").arg(self.management.flat_kubeconfig());
        let printed = run(tinbox, "").unwrap();
        let text = printed.out + &printed.err;
        assert!(printed.success && text.contains("the box is connected"), "{text}");
    }

    /// Lets a box serve the objects without its label too.
    pub fn remove_filter(&self, at: usize) {
        let patch = json!({ "spec": { "watchFilter": null } }).to_string();
        let patch = ["patch", "managementcluster", "prod", "--type=merge", "-p", &patch];
        good(&self.boxes[at].kubectl, &patch, "");
    }

    /// Creates a namespace with a Cluster whose endpoint exists.
    pub fn create_cluster(&self, namespace: &str, filter: Option<&str>) {
        let metadata = json!({ "name": "edge", "namespace": namespace });
        self.management.apply(&[
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }),
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata,
                "spec": { "infrastructureRef": reference("TinkerbellCluster", "edge") },
            }),
            labeled(
                json!({
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "TinkerbellCluster", "metadata": metadata,
                    "spec": { "controlPlaneEndpoint": { "host": "192.0.2.9", "port": 6443 } },
                }),
                filter,
            ),
        ]);
    }

    /// Gives a box an OSImage of this name whose server does not exist, and its cluster a template
    /// with this image.
    pub fn create_unreachable_image(&self, at: usize, name: &str) {
        let filter = FILTERS[at];
        let image = json!({
            "apiVersion": "tinbox.dev/v1alpha1", "kind": "OSImage",
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "url": format!("http://images.invalid/{name}.img?token=s3cret"),
                "os": { "distro": "debian", "version": "13" } },
        });
        good(&self.boxes[at].kubectl, &["apply", "-f", "-"], &image.to_string());
        self.management.apply(&[json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "TinkerbellMachineTemplate",
            "metadata": { "name": name, "namespace": filter, "labels": {
                FILTER: filter, "cluster.x-k8s.io/cluster-name": "edge" } },
            "spec": { "template": { "spec": { "osImage": name } } },
        })]);
    }

    /// Creates a Machine with bootstrap data, and its TinkerbellMachine with the label `filter`.
    pub fn create_machine(
        &self,
        namespace: &str,
        name: &str,
        filter: Option<&str>,
        domain: Option<&str>,
    ) {
        let mut objects = machine(namespace, name, filter);
        objects[1]["spec"]["bootstrap"] = json!({ "dataSecretName": name });
        if let Some(domain) = domain {
            objects[1]["spec"]["failureDomain"] = domain.into();
        }
        self.management.apply(&objects);
    }

    /// Creates a Machine whose bootstrap data do not exist yet, as far as the Machine says.
    pub fn create_machine_without_data(&self, namespace: &str, name: &str, filter: Option<&str>) {
        let mut objects = machine(namespace, name, filter);
        // Cluster API requires one of the two. This one does not exist.
        let config = json!({ "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig",
            "name": name });
        objects[1]["spec"]["bootstrap"] = json!({ "configRef": config });
        self.management.apply(&objects);
    }

    /// Writes the name of the bootstrap Secret into a Machine.
    pub fn set_bootstrap_data(&self, namespace: &str, name: &str) {
        let patch = json!({ "spec": { "bootstrap": { "dataSecretName": name } } }).to_string();
        let patch = ["patch", "machine", name, "-n", namespace, "--type=merge", "-p", &patch];
        good(&self.management.kubectl, &patch, "");
    }

    /// Deletes a Machine, and waits until its TinkerbellMachine is gone.
    pub fn delete_machine(&self, namespace: &str, name: &str) {
        let delete = ["delete", "machine", name, "-n", namespace, "--timeout=120s"];
        good(&self.management.kubectl, &delete, "");
    }

    pub fn machine(&self, namespace: &str, name: &str) -> Value {
        let get = ["get", "tinkerbellmachine", name, "-n", namespace, "-o", "json"];
        serde_json::from_str(&good(&self.management.kubectl, &get, "")).unwrap()
    }

    /// Returns objects of the management cluster.
    pub fn list(&self, namespace: &str, resource: &str) -> Vec<Value> {
        list(&self.management.kubectl, &["-n", namespace, resource])
    }

    /// Waits for a state.
    pub fn wait(&self, what: &str, holds: impl FnMut() -> bool) {
        self.management.wait(what, holds);
    }

    /// Waits until the condition `Ready` of a machine has a reason.
    pub fn wait_reason(&self, namespace: &str, name: &str, expected: &str) {
        self.wait(&format!("{namespace}/{name} to be {expected}"), || {
            reason(&self.machine(namespace, name)) == expected
        });
    }

    /// Waits until the machine is switched on and waits for its agent.
    pub fn wait_installing(&self, namespace: &str, name: &str) {
        self.wait_reason(namespace, name, "WaitingForAgent");
    }

    /// Returns the names of the Workflows of each box.
    pub fn workflows(&self) -> [BTreeSet<String>; 2] {
        [0, 1].map(|at| self.boxes[at].list("workflows").iter().map(name).collect())
    }

    /// Returns the names of the Hardware of a box.
    pub fn hosts(&self, at: usize) -> BTreeSet<String> {
        self.boxes[at].list("hardware").iter().map(name).collect()
    }

    /// Returns the power commands that the BMC of each Hardware in use received.
    pub fn powers(&self) -> BTreeMap<String, Vec<u8>> {
        let of_box = |one: &OneBox| -> Vec<(String, Vec<u8>)> {
            let used = one.list("hardware").into_iter().filter(|it| !owner(it).is_null());
            used.map(|it| name(&it)).map(|name| (name.clone(), one.controls(&name))).collect()
        };
        self.boxes.iter().flat_map(of_box).collect()
    }

    /// Returns identity and owner of each Workflow and each Hardware in use.
    pub fn states(&self) -> BTreeSet<String> {
        let all = self.boxes.iter().flat_map(|one| one.list("workflows,hardware"));
        let used = all.filter(|it| it["kind"] == "Workflow" || !owner(it).is_null());
        used.map(|it| format!("{} {} {}", it["kind"], it["metadata"]["uid"], owner(&it))).collect()
    }

    /// Checks that each machine of the management cluster has one Hardware and one Workflow, of
    /// both boxes together.
    pub fn assert_claims(&self) {
        let own = self.management.list_all("tinkerbellmachines");
        let machines: Vec<String> = own.iter().map(name).collect();
        let hardware = self.boxes.iter().flat_map(|one| one.list("hardware"));
        let owners: Vec<Value> = hardware.map(|it| owner(&it).clone()).collect();
        let mut claimed: Vec<&str> = owners.iter().filter_map(Value::as_str).collect();
        claimed.sort_unstable();
        let mut expected: Vec<&str> = machines.iter().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(claimed, expected);
        let [first, second] = self.workflows();
        assert_eq!(first.intersection(&second).count(), 0);
        assert_eq!(first.len() + second.len(), machines.len());
    }
}

fn owner(object: &Value) -> &Value {
    &object["metadata"]["labels"][OWNER]
}

fn labeled(mut object: Value, filter: Option<&str>) -> Value {
    if let Some(filter) = filter {
        object["metadata"]["labels"] = json!({ FILTER: filter });
    }
    object
}

/// Returns a Secret with user data, a Machine without bootstrap, and its TinkerbellMachine.
fn machine(namespace: &str, name: &str, filter: Option<&str>) -> [Value; 3] {
    let metadata = json!({ "name": name, "namespace": namespace });
    [
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": metadata,
            "type": "cluster.x-k8s.io/secret",
            "stringData": { "value": "#cloud-config\n", "format": "cloud-config" },
        }),
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": metadata,
            "spec": {
                "clusterName": "edge", "version": "v1.34.3",
                "infrastructureRef": reference("TinkerbellMachine", name),
            },
        }),
        labeled(
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "TinkerbellMachine", "metadata": metadata, "spec": {},
            }),
            filter,
        ),
    ]
}
