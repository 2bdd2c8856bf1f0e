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
/// Random number of the running boot (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// File that the test writes to the disk of the installed machine.
const MARKER: &str = "/var/lib/marker";

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

/// Returns what an installation, a deletion or a power action changes: the boot of the machine and
/// a file on its disk, the log of its BMC, its Hardware and the box's objects of installations.
fn state(quick_start: &QuickStart) -> Value {
    let management = &quick_start.management;
    let (lab, own) = (&management.lab, management.lab.kubeconfig());
    let command = format!("cat {BOOT_ID} {MARKER}");
    let of_system = quick_start.key.run(lab, "10.77.0.11", &command, SOON).unwrap();
    let host = management.object(&own, "hardware", "nuc1").unwrap().unwrap();
    let metadata = &host["metadata"];
    assert_eq!(host["spec"]["interfaces"][0]["netboot"]["allowPXE"], false, "{host}");
    let mut get = management.kubectl(&own);
    get.args(["get", "workflows,templates,jobs.bmc.tinkerbell.org,tasks.bmc.tinkerbell.org"]);
    get.args(["-o", "jsonpath={.items[*].metadata.uid}"]);
    let made = get.output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let nuc = lab.rack.nuc(1);
    json!({
        "system": of_system,
        "process": nuc.pid(),
        "power": format!("{:?}", nuc.power_events()),
        "hardware": [metadata["uid"], metadata["generation"], host["spec"]],
        "made": String::from_utf8(made.stdout).unwrap(),
    })
}

/// Moves the cluster to a second management cluster and back. The machine continues to run.
fn a_move_leaves_the_machine_alone(quick_start: &QuickStart, machine: &str) {
    let lab = &quick_start.management.lab;
    let mark = format!("echo kept | sudo tee {MARKER}; sync");
    quick_start.key.run(lab, "10.77.0.11", &mark, SOON).unwrap();
    let before = state(quick_start);
    assert!(before["system"].as_str().unwrap().ends_with("\nkept"), "{before}");
    let (first, second) = (&quick_start.management.cluster, quick_start.start_second().unwrap());
    for (from, to) in [(first, &second), (&second, first)] {
        quick_start.move_cluster(from, to, machine).unwrap();
        assert_eq!(state(quick_start), before);
    }
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
    a_move_leaves_the_machine_alone(&quick_start, &name);
    quick_start.delete().unwrap();
    quick_start.succeed();
}
