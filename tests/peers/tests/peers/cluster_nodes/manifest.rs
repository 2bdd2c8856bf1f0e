//! Manifests of a cluster with control plane and workers.

use std::path::Path;

use serde_json::{Value, json};

/// Name of the cluster, and of the objects that belong to it.
pub const CLUSTER: &str = "edge";
/// Label of Hardware with its only possible use.
pub const USE: &str = "use";
/// Uses of Hardware: the names of the objects of control plane and workers too.
pub const CONTROL_PLANE: &str = "edge-control-plane";
pub const WORKERS: &str = "edge-workers";
/// Operating system of the workers, as `osImage` names it.
const OS: &str = "ubuntu-24.04";
/// Registry and path of the images of the control plane.
pub const REGISTRY: &str = "images.test/nodes";
/// Label of an object that `clusterctl move` moves though no cluster owns the object.
const MOVE: &str = "clusterctl.cluster.x-k8s.io/move";

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// Installation of a machine.
#[derive(Clone, Copy)]
pub struct Install<'a> {
    /// Image of the action that installs.
    pub image: &'a str,
    /// Folder with the installed Kubernetes version of each machine.
    pub disks: &'a Path,
}

/// Returns the TinkerbellMachineTemplate of machines with this use, which installs this Kubernetes
/// version.
pub fn template(install: Install<'_>, usage: &str, version: &str) -> Value {
    let action = json!({
        "name": "install", "image": install.image, "timeout": 300,
        "environment": { "DISK": "{{.device_1}}", "KUBERNETES": version },
        "volumes": [format!("{}:/disks", install.disks.display())],
    });
    let task = json!({ "name": "install", "worker": "{{.device_1}}", "actions": [action] });
    let text = json!({ "version": "0.1", "name": "install", "global_timeout": 600,
        "tasks": [task] });
    machine_template(usage, json!({ "templateOverride": text.to_string() }))
}

/// Returns the TinkerbellMachineTemplate of machines with this use, for all Kubernetes versions.
/// The workers get an OSImage; the control plane gets an image by the lookup of the cluster.
pub fn template_of_all_versions(usage: &str) -> Value {
    match usage {
        WORKERS => machine_template(usage, json!({ "osImage": OS })),
        _ => machine_template(usage, json!({})),
    }
}

fn machine_template(usage: &str, mut spec: Value) -> Value {
    spec["hardwareAffinity"] =
        json!({ "required": [{ "labelSelector": { "matchLabels": { USE: usage } } }] });
    if usage == WORKERS {
        // The user data of workers are merged with their bootstrap data.
        spec["userDataSecret"] = json!({ "name": WORKERS });
    }
    json!({
        "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": "TinkerbellMachineTemplate",
        "metadata": { "name": usage, "namespace": "default" },
        "spec": { "template": { "spec": spec } },
    })
}

/// Returns the OSImage of the workers with this Kubernetes version.
pub fn os_image(version: &str) -> Value {
    let (distro, number) = OS.split_once('-').unwrap();
    json!({
        "apiVersion": "tinbox.dev/v1alpha1", "kind": "OSImage",
        "metadata": { "name": format!("{OS}-{version}") },
        "spec": {
            "url": format!("http://images.test/{version}/workers.img"),
            "os": { "distro": distro, "version": number },
            "kubernetesVersion": version,
        },
    })
}

/// Returns Cluster and TinkerbellCluster.
pub fn cluster((host, port): (&str, u16)) -> [Value; 2] {
    let control_plane = ("controlplane.cluster.x-k8s.io", "KubeadmControlPlane");
    [
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": CLUSTER, "namespace": "default" },
            "spec": {
                "clusterNetwork": { "pods": { "cidrBlocks": ["192.168.0.0/16"] } },
                "controlPlaneRef": reference(control_plane, CONTROL_PLANE),
                "infrastructureRef": reference((INFRASTRUCTURE, "TinkerbellCluster"), CLUSTER),
            },
        }),
        json!({
            "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": "TinkerbellCluster",
            "metadata": { "name": CLUSTER, "namespace": "default" },
            "spec": { "controlPlaneEndpoint": { "host": host, "port": port } },
        }),
    ]
}

fn reference((group, kind): (&str, &str), name: &str) -> Value {
    json!({ "apiGroup": group, "kind": kind, "name": name })
}

fn node_registration() -> Value {
    json!({ "kubeletExtraArgs": [{ "name": "provider-id", "value": "PROVIDER_ID" }] })
}

/// Returns the control plane.
pub fn control_plane(replicas: u32, version: &str) -> Value {
    let infrastructure = reference((INFRASTRUCTURE, "TinkerbellMachineTemplate"), CONTROL_PLANE);
    let registration = json!({ "nodeRegistration": node_registration() });
    json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
        "metadata": { "name": CONTROL_PLANE, "namespace": "default" },
        "spec": {
            "replicas": replicas,
            "version": version,
            "machineTemplate": { "spec": { "infrastructureRef": infrastructure } },
            "kubeadmConfigSpec": {
                "initConfiguration": registration, "joinConfiguration": registration,
            },
        },
    })
}

/// Returns user data, bootstrap template and MachineDeployment of the workers.
pub fn workers(replicas: u32, version: &str) -> [Value; 3] {
    let labels = json!({ "cluster.x-k8s.io/cluster-name": CLUSTER, "pool": WORKERS });
    let bootstrap = reference(("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate"), WORKERS);
    let infrastructure = reference((INFRASTRUCTURE, "TinkerbellMachineTemplate"), WORKERS);
    [
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": WORKERS, "namespace": "default", "labels": { MOVE: "" } },
            "stringData": { "value": "#cloud-config\ntimezone: UTC\n" },
        }),
        json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate",
            "metadata": { "name": WORKERS, "namespace": "default" },
            "spec": { "template": { "spec": { "joinConfiguration": {
                "nodeRegistration": node_registration(),
            } } } },
        }),
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
            "metadata": { "name": WORKERS, "namespace": "default" },
            "spec": {
                "clusterName": CLUSTER,
                "replicas": replicas,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "clusterName": CLUSTER, "version": version,
                        "bootstrap": { "configRef": bootstrap },
                        "infrastructureRef": infrastructure,
                    },
                },
            },
        }),
    ]
}

/// Returns an object of v1beta2 in the older version v1beta1 of Cluster API's own kinds.
pub fn v1beta1(mut object: Value) -> Value {
    if let Value::String(version) = &mut object["apiVersion"] {
        *version = version.replace("v1beta2", "v1beta1");
    }
    if let Some(template) = object.pointer_mut("/spec/machineTemplate") {
        let spec = template["spec"].take();
        *template = spec;
    }
    convert(&mut object);
    object
}

/// Converts the references and the arguments of the kubelet.
fn convert(value: &mut Value) {
    if let Value::Object(fields) = value {
        if let Some(group) = fields.remove("apiGroup") {
            let group = group.as_str().unwrap();
            fields.insert("apiVersion".to_owned(), json!(format!("{group}/v1beta1")));
        }
        if let Some(arguments) = fields.get_mut("kubeletExtraArgs") {
            let all = arguments.as_array().unwrap();
            let text = |it: &Value, field: &str| it[field].as_str().unwrap().to_owned();
            let pairs = all.iter().map(|it| (text(it, "name"), json!(text(it, "value"))));
            *arguments = Value::Object(pairs.collect());
        }
        fields.values_mut().for_each(convert);
    }
}
