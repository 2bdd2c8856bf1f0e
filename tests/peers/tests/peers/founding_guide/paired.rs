//! The four manifests of the founding guide in a management cluster with stock Cluster API, in
//! every order at once: each order has a namespace and a Hardware.
//!
//! Four things differ from the printed text. Cluster API no longer serves v1alpha4, so the
//! manifests have the next version, v1beta1, with the same fields. The bootstrap provider of
//! kubeadm refuses Kubernetes before v1.22.0. This provider makes bootstrap data without a control
//! plane only for a machine of the control plane, so the Machine has that label. The Cluster and
//! the KubeadmConfig that the guide names without printing them exist before.

use std::collections::BTreeMap;

use capi::Repository;
use peers::cluster_api::Series;
use regex::Regex;
use serde_json::{Value, json};

use super::{KINDS, MACHINE, MANIFESTS, conditions, hardware, orders, rack_with};
use crate::agents::rack::Rack;
use crate::cluster_nodes::hosts::pair;
use crate::cluster_nodes::management::{Management, condition, good};

const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
const OWNER: &str = "v1alpha1.tinkerbell.org/ownerName";
/// Parts of an object that differ between two orders, and their replacements.
const REPLACED: [(&str, &str); 5] = [
    (r"order-\d+", "NAMESPACE"),
    (r"\bnuc\d+\b", "HARDWARE"),
    // Only one Workflow can have the name of its machine alone.
    (r"default/nuc-control-plane-1(-[0-9a-f]+)?", "default/WORKFLOW"),
    (r"-----BEGIN [^-]+-----[^-]+-----END [^-]+-----", "PEM"),
    (r"\b192\.168\.1\.\d+\b", "ADDRESS"),
];

#[test]
fn the_manifests_have_one_end_state_in_every_order_in_a_management_cluster() {
    let count = orders().len();
    let rack = rack_with(&json!({}), count - 1);
    let log = rack.record().join("none");
    let management = Management::start(log, Series::V1_13, |cluster, plan| {
        let kubectl = cluster.kubectl().unwrap();
        let apply = |text: &str| {
            good(&kubectl, &["apply", "--server-side", "-f", "-"], text);
        };
        apply(Repository::new("0.1.0").components());
        plan.manifests().for_each(|(_, list)| apply(&list.to_string()));
    });
    pair(&rack, "prod", &management);
    for (at, order) in orders().iter().enumerate() {
        apply(&management, &namespace(at), *order);
    }
    wait(&management, "WaitingForAgent", count - 1);
    // All machines compete for one Hardware less.
    wait(&management, "NoHardware", 1);
    let own = management.list_all("tinkerbellmachines");
    let without = own.iter().map(|it| condition(it, "Ready")).find(|it| it.1 == "NoHardware");
    let (_, _, message) = without.unwrap();
    assert!(message.contains("23 are in use"), "{message}");
    assert_eq!(owned(&rack), count - 1);
    rack.apply_object(&hardware(count, &json!({})));
    wait(&management, "WaitingForAgent", count);
    let mut states = states(&rack, &management);
    assert_eq!((states.len(), owned(&rack)), (count, count));
    let expected = states.remove(&namespace(0)).unwrap();
    let user_data = expected["userData"].as_str().unwrap();
    assert!(
        user_data.contains("kubeadm init") && user_data.contains("#cloud-config"),
        "{user_data}"
    );
    for (namespace, found) in states {
        assert_eq!(found, expected, "{namespace}");
    }
    good(&management.kubectl, &["delete", "machines", "--all", "-A"], "");
    for (kind, name) in &KINDS[2..] {
        assert_eq!(management.list_all(kind).len(), 0, "{name}");
    }
    assert_eq!(owned(&rack), 0);
    let hosts = rack.get(&["hardware"]);
    for host in hosts["items"].as_array().unwrap() {
        assert_eq!(host["spec"].get("userData"), None, "{host:#}");
    }
}

/// Returns the number of Hardware with an owner.
fn owned(rack: &Rack) -> usize {
    let hosts = rack.get(&["hardware"]);
    let hosts = hosts["items"].as_array().unwrap();
    hosts.iter().filter(|it| it["metadata"]["labels"].get(OWNER).is_some()).count()
}

fn namespace(at: usize) -> String {
    format!("order-{at}")
}

/// Applies what the guide needs, and the manifests in this order.
fn apply(management: &Management, namespace: &str, order: [usize; 4]) {
    let metadata = |name: &str| json!({ "name": name, "namespace": namespace });
    let infrastructure = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "TinkerbellCluster", "name": KINDS[0].1 });
    management.apply(&[
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }),
        json!({ "apiVersion": "v1", "kind": "Secret",
            "metadata": metadata("nuc-control-plane-userdata"),
            "stringData": { "value": "#cloud-config\ntimezone: UTC\n" } }),
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": metadata("my-nuc-cluster"),
            "spec": { "infrastructureRef": infrastructure } }),
        json!({ "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
            "metadata": metadata("nuc-control-plane-bootstrap"),
            "spec": { "initConfiguration": { "nodeRegistration": { "kubeletExtraArgs": [
                { "name": "provider-id", "value": "PROVIDER_ID" },
            ] } } } }),
    ]);
    let text = MANIFESTS.replace("v1alpha4", "v1beta1").replace("v1.21.1", "v1.22.0");
    let text = text.replace("namespace: default", &format!("namespace: {namespace}"));
    let label = format!("kind: Machine\nmetadata:\n  labels: {{{CONTROL_PLANE}: \"\"}}\n");
    let text = text.replace("kind: Machine\nmetadata:\n", &label);
    let manifests: Vec<&str> = text.split("---\n").collect();
    for at in order {
        good(&management.kubectl, &["apply", "-f", "-"], manifests[at]);
    }
}

/// Waits until this many machines have the reason, in the objects of Cluster API too.
fn wait(management: &Management, reason: &str, count: usize) {
    management.wait(&format!("{count} machines that are {reason}"), || {
        let count_of = |kind: &str, condition_kind: &str| {
            let all = management.list_all(kind);
            all.iter().filter(|it| condition(it, condition_kind).1 == reason).count()
        };
        count_of("tinkerbellmachines", "Ready") == count
            && count_of("machines", "InfrastructureReady") == count
    });
}

/// Returns the end state of each namespace without names, addresses, keys and the message of the
/// choice.
fn states(rack: &Rack, management: &Management) -> BTreeMap<String, Value> {
    let hosts = rack.get(&["hardware"]);
    let hosts = hosts["items"].as_array().unwrap();
    let machines = management.list_all("machines");
    let clusters = management.list_all("tinkerbellclusters");
    let in_namespace = |all: &[Value], namespace: &str| -> Value {
        all.iter().find(|it| it["metadata"]["namespace"] == namespace).unwrap().clone()
    };
    let state = |own: &Value| {
        let namespace = own["metadata"]["namespace"].as_str().unwrap();
        let machine = in_namespace(&machines, namespace);
        let cluster = in_namespace(&clusters, namespace);
        let host = hosts.iter().find(|it| {
            it["metadata"]["labels"]["v1alpha1.tinkerbell.org/ownerNamespace"] == namespace
        });
        let host = host.unwrap_or_else(|| panic!("{namespace} has no Hardware"));
        let mut conditions = conditions(own);
        conditions.remove("HardwareClaimed");
        let state = json!({
            "machine": own["spec"],
            "conditions": conditions,
            "state": own["status"]["instanceState"],
            "owner": [own["metadata"]["ownerReferences"][0]["kind"], machine["metadata"]["name"]],
            "phase": machine["status"]["phase"],
            "endpoint": [cluster["spec"], cluster["status"]["initialization"]],
            "labels": host["metadata"]["labels"],
            "userData": host["spec"]["userData"],
        });
        let mut text = state.to_string();
        for (pattern, by) in REPLACED {
            text = Regex::new(pattern).unwrap().replace_all(&text, by).into_owned();
        }
        (namespace.to_owned(), serde_json::from_str(&text).unwrap())
    };
    let own = management.list_all("tinkerbellmachines");
    assert!(own.iter().all(|it| it["metadata"]["name"] == MACHINE));
    own.iter().map(state).collect()
}
