//! Objects of a cluster and of its machines, the same for both contestants.

use serde_json::{Value, json};

/// Name of the cluster.
pub const CLUSTER: &str = "edge";
/// API version of Cluster API's own kinds.
const CORE: &str = "cluster.x-k8s.io/v1beta2";
/// Group of the provider's kinds.
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
/// Path of the TinkerbellMachines.
pub const TINKERBELL_MACHINES: &str =
    "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/tinkerbellmachines";
/// Label of a Hardware with its failure domain.
const FAILURE_DOMAIN: &str = "topology.tinbox.dev/failure-domain";

/// A machine of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Number of the box that serves the machine, from 0.
    pub of_box: u8,
    /// Number of the machine on its box, from 0.
    pub number: u8,
}

impl Machine {
    /// Returns the name of its objects in the management cluster.
    pub fn name(self) -> String {
        format!("{}-{:03}", self.domain(), self.number)
    }

    /// Returns its failure domain.
    pub fn domain(self) -> String {
        format!("box-{}", self.of_box)
    }

    /// Returns its MAC address: the ID of its agent.
    pub fn mac(self) -> String {
        format!("52:54:00:97:{:02x}:{:02x}", self.of_box, self.number)
    }

    /// Returns its Hardware, with a label for its failure domain.
    pub fn hardware(self) -> Value {
        let Self { of_box, number } = self;
        let ip = json!({ "address": format!("192.168.{}.{}", 100 + of_box, 1 + number),
            "netmask": "255.255.255.0", "gateway": format!("192.168.{}.254", 100 + of_box) });
        json!({
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Hardware",
            "metadata": {
                // With leading zeros, because both providers take the first free Hardware by name.
                "name": format!("host-{of_box}-{number:03}"), "namespace": "default",
                "labels": { FAILURE_DOMAIN: self.domain() },
            },
            "spec": {
                "disks": [{ "device": "/dev/sda" }],
                "metadata": { "instance": { "id": self.mac(), "hostname": self.name() } },
                "interfaces": [{
                    "dhcp": { "mac": self.mac(), "ip": ip, "hostname": self.name(),
                        "arch": "x86_64", "uefi": true },
                    "netboot": { "allowPXE": true },
                }],
            },
        })
    }

    /// Returns its Machine of Cluster API.
    pub fn machine(self) -> Value {
        json!({
            "apiVersion": CORE,
            "kind": "Machine",
            "metadata": { "name": self.name(), "namespace": "default" },
            "spec": {
                "clusterName": CLUSTER,
                "version": "v1.34.0",
                "failureDomain": self.domain(),
                "bootstrap": { "dataSecretName": "bootstrap" },
                "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": "TinkerbellMachine",
                    "name": self.name() },
            },
        })
    }

    /// Returns its TinkerbellMachine, as Cluster API makes it for the Machine with this unique ID.
    pub fn tinkerbell_machine(self, uid: &str) -> Value {
        json!({
            "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"),
            "kind": "TinkerbellMachine",
            "metadata": {
                "name": self.name(), "namespace": "default",
                "labels": { "cluster.x-k8s.io/cluster-name": CLUSTER },
                "ownerReferences": [{ "apiVersion": CORE, "kind": "Machine", "name": self.name(),
                    "uid": uid, "controller": true, "blockOwnerDeletion": true }],
            },
            "spec": { "templateOverride": template().to_string() },
        })
    }
}

/// Returns the Template of every installation: one action, for the machine's own agent.
fn template() -> Value {
    json!({ "version": "0.1", "name": "bench", "global_timeout": 6000, "tasks": [{
        "name": "install", "worker": "{{.device_1}}", "actions": [{
            "name": "stream", "image": "quay.io/tinkerbell/actions/image2disk:latest",
            "timeout": 600,
        }],
    }] })
}

/// Returns Secret, Cluster and TinkerbellCluster.
pub fn cluster() -> [Value; 3] {
    let meta = |name: &str| json!({ "name": name, "namespace": "default" });
    [
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": meta("bootstrap"),
            "type": "cluster.x-k8s.io/secret",
            "stringData": { "value": "#cloud-config\n{}\n", "format": "cloud-config" },
        }),
        json!({
            "apiVersion": CORE, "kind": "Cluster", "metadata": meta(CLUSTER),
            "spec": { "infrastructureRef": { "apiGroup": INFRASTRUCTURE,
                "kind": "TinkerbellCluster", "name": CLUSTER } },
        }),
        json!({
            "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": "TinkerbellCluster",
            "metadata": meta(CLUSTER),
            "spec": { "controlPlaneEndpoint": { "host": "control-plane.test", "port": 6443 } },
        }),
    ]
}
