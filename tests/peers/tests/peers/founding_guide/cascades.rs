//! Deletion of a Cluster on the box's own API: in the foreground with all that it owns, and
//! orphaning its machines, which continue to run.

use serde_json::{Value, json};

use super::{KINDS, MACHINE, apply, rack, wait};
use crate::agents::rack::{Generation, Rack};

const CLUSTER: &str = "my-nuc-cluster";
const OWNER: &str = "v1alpha1.tinkerbell.org/ownerName";

#[test]
fn a_cluster_is_deleted_with_its_machines_or_without() {
    let rack = rack(&json!({ "manufacturer": "Intel", "plan": "NUC" }));
    apply(&rack, [0, 1, 2, 3]);
    let _agent = rack.agent(Generation::Today, "nuc1");
    wait(&rack, "Provisioned");
    own_all(&rack);
    delete(&rack, "orphan");
    for (kind, name) in [KINDS[0], KINDS[2]] {
        let owners = &rack.get(&[kind, name])["metadata"]["ownerReferences"];
        assert!(owners.as_array().is_none_or(Vec::is_empty), "{kind}: {owners}");
    }
    // The box decides once more about the machine.
    good(&rack, &["annotate", "tinkerbellmachine", MACHINE, "example.test/touched="]);
    let machine = wait(&rack, "Provisioned");
    assert_eq!(machine["metadata"]["ownerReferences"][0]["kind"], "Machine");
    assert_eq!(machine["metadata"].get("deletionTimestamp"), None);
    assert_eq!(rack.get(&["hardware", "nuc1"])["metadata"]["labels"][OWNER], MACHINE);
    assert_eq!(rack.get(&["workflow", MACHINE])["status"]["state"], "SUCCESS");
    assert_eq!(rack.log(), ["begin a", "end a"]);

    own_all(&rack);
    delete(&rack, "foreground");
    // kubectl returns when the Cluster is gone, and the Cluster outlives what it owns.
    for (kind, name) in [KINDS[0], KINDS[2], KINDS[3], ("workflows", MACHINE)] {
        let left = rack.get(&[kind])["items"].take();
        assert_eq!(left, json!([]), "{name}");
    }
    let host = rack.get(&["hardware", "nuc1"]);
    assert!(host["metadata"]["labels"].get(OWNER).is_none(), "{host:#}");
    assert_eq!(host["spec"].get("userData"), None, "{host:#}");
    assert_eq!(rack.log(), ["begin a", "end a"]);
}

fn good(rack: &Rack, arguments: &[&str]) {
    let printed = rack.kubectl.run(arguments, "").unwrap();
    assert!(printed.success, "{arguments:?}: {printed:?}");
}

fn delete(rack: &Rack, cascade: &str) {
    let cascade = format!("--cascade={cascade}");
    good(rack, &["delete", "cluster", CLUSTER, &cascade, "--timeout=120s"]);
}

/// Creates the Cluster of the guide, and writes the owners that Cluster API would write.
fn own_all(rack: &Rack) {
    rack.apply_object(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
        "metadata": { "name": CLUSTER },
        "spec": { "infrastructureRef": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "TinkerbellCluster", "name": KINDS[0].1,
        } },
    }));
    for (kind, name) in [KINDS[0], KINDS[2]] {
        own(rack, (kind, name), ("clusters", CLUSTER));
    }
    own(rack, KINDS[3], KINDS[2]);
}

/// Makes `owner` the owner of an object.
fn own(rack: &Rack, (kind, name): (&str, &str), owner: (&str, &str)) {
    let owner: Value = rack.get(&[owner.0, owner.1]);
    let reference = json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    let patch = json!({ "metadata": { "ownerReferences": [reference] } }).to_string();
    good(rack, &["patch", kind, name, "--type=merge", "-p", &patch]);
}
