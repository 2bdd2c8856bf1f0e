//! The steps of `make demo-capi`: stock clusterctl and the box turn a machine into a node.

use std::net::Ipv4Addr;
use std::time::Duration;

use scenarios::QuickStart;
use serde_json::{Value, json};

use crate::watch::{ONE_START, switched_on};

/// Timeout for changes that need no boot of a machine.
const SOON: Duration = Duration::from_secs(300);
/// Endpoint of the cluster without machines.
const TAKEN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 19);

/// Checks that the box refuses the endpoint of a cluster while a host of the rack answers for it.
fn an_endpoint_in_use_is_refused(quick_start: &QuickStart) {
    let (management, nodes) = (&quick_start.management, &quick_start.nodes);
    nodes.take(TAKEN).unwrap();
    let group = "infrastructure.cluster.x-k8s.io";
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": "taken", "namespace": "default" },
        "spec": {
            "infrastructureRef":
                { "apiGroup": group, "kind": "TinkerbellCluster", "name": "taken" },
            "controlPlaneRef": {
                "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane",
                "name": "taken",
            },
        },
    });
    let infrastructure = json!({
        "apiVersion": format!("{group}/v1beta1"), "kind": "TinkerbellCluster",
        "metadata": { "name": "taken", "namespace": "default" },
        "spec": { "controlPlaneEndpoint": { "host": TAKEN, "port": 6443 } },
    });
    management.apply(&format!("{cluster}\n---\n{infrastructure}")).unwrap();
    let ready = |object: Option<&Value>| {
        let all = object?["status"]["conditions"].as_array()?;
        all.iter().find(|it| it["type"] == "Ready").cloned()
    };
    let own = management.kubeconfig();
    let wait = |test: &dyn Fn(&Value) -> bool| {
        let test = |object: Option<&Value>| ready(object).is_some_and(|it| test(&it));
        management.wait_object(own, ("tinkerbellclusters", "taken"), SOON, test).unwrap().unwrap()
    };
    let object = wait(&|condition| condition["reason"] == "EndpointConflict");
    let message = ready(Some(&object)).unwrap()["message"].to_string();
    assert!(message.contains("answers on") && message.contains("10.77.0.19"), "{message}");
    assert!(object["status"]["initialization"].is_null(), "{object}");
    // The host leaves, so the control plane can have the address.
    nodes.give_back(TAKEN).unwrap();
    wait(&|condition| condition["status"] == "True");
    let mut delete = management.kubectl(own);
    delete.args(["delete", "cluster/taken", "tinkerbellcluster/taken"]);
    assert!(delete.status().unwrap().success());
}

#[test]
fn clusterctl_and_the_box_turn_a_machine_into_a_node() {
    let quick_start = QuickStart::start("quick-start").unwrap();
    let management = &quick_start.management;
    assert!(!management.lab.rack.nuc(1).is_on(), "the machine begins switched off");
    an_endpoint_in_use_is_refused(&quick_start);
    let name = quick_start.create().unwrap();
    let machine =
        || management.object(management.kubeconfig(), "machines", &name).unwrap().unwrap();
    assert!(
        machine()["status"]["nodeRef"].is_null(),
        "the machine joins only when its system calls kubeadm"
    );
    quick_start.join().unwrap();
    let joined = machine();
    assert_eq!(joined["status"]["nodeRef"]["name"], "nuc1", "{joined}");
    assert_eq!(joined["spec"]["providerID"], "tinkerbell://default/nuc1", "{joined}");
    assert_eq!(switched_on(&management.lab), 1, "{ONE_START}");
    quick_start.delete().unwrap();
    quick_start.succeed();
}
