//! Clusters that `clusterctl move` created again, without their status.

use api::infrastructure::cluster_api::CLUSTER;
use api::infrastructure::{OWNER_NAME, OWNER_NAMESPACE, PROVISIONED, TINKERBELL_MACHINE};
use api::tinkerbell::HARDWARE;
use serde_json::json;

use super::{BOX, VIP, cluster, endpoint, host, ready, world};

#[tokio::test]
async fn a_moved_cluster_keeps_the_address_of_its_machine() {
    // The machine of another management cluster with this name has another provider ID.
    let machine = |cluster: &str, id: &str| {
        let labels = json!({ "cluster.x-k8s.io/cluster-name": cluster });
        let metadata = json!({ "name": "m", "namespace": "default", "labels": labels });
        json!({ "metadata": metadata, "spec": { "providerID": id } })
    };
    let id = "tinkerbell://default/nuc-1";
    let owned = |namespace: &str| {
        let mut host = host("nuc-1", VIP, None);
        host["metadata"]["labels"] = json!({ OWNER_NAME: "m", OWNER_NAMESPACE: namespace });
        host["metadata"]["annotations"] = json!({ PROVISIONED: "true" });
        host
    };
    let (moved, conflict) = (("True", "Provisioned"), ("False", "EndpointConflict"));
    let rows = [
        (owned("default"), Some(("c", id)), moved),
        (owned("default"), Some(("c", "")), conflict),
        (owned("default"), Some(("c", "tinkerbell://default/nuc-2")), conflict),
        (owned("default"), Some(("d", id)), conflict),
        (owned("default"), None, conflict),
        (owned("other"), Some(("c", id)), conflict),
        (host("nuc-1", VIP, None), Some(("c", id)), conflict),
    ];
    for (host, member_of, expected) in rows {
        let world = world(cluster(endpoint(VIP)));
        world.hardware.put(HARDWARE, host);
        if let Some((name, id)) = member_of {
            world.remote.put(TINKERBELL_MACHINE, machine(name, id));
        }
        assert_eq!(ready(&world.run().await), expected, "{member_of:?}");
    }
    // The status of the Cluster is sufficient, too.
    let world = world(cluster(endpoint(BOX)));
    let mut owner = json!({ "metadata": { "name": "c", "namespace": "default" }, "spec": {} });
    owner["status"] = json!({ "initialization": { "infrastructureProvisioned": true } });
    world.remote.put(CLUSTER, owner);
    assert_eq!(ready(&world.run().await), ("True", "Provisioned"));
}
