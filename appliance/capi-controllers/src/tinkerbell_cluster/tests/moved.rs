//! Clusters that `clusterctl move` created again, without their status.

use api::infrastructure::cluster_api::CLUSTER;
use api::infrastructure::{OWNER_NAME, OWNER_NAMESPACE, TINKERBELL_MACHINE};
use api::tinkerbell::HARDWARE;
use serde_json::json;

use super::{BOX, VIP, cluster, endpoint, host, ready, world};

#[tokio::test]
async fn a_moved_cluster_keeps_the_address_of_its_machine() {
    let machine = |cluster: &str| {
        let labels = json!({ "cluster.x-k8s.io/cluster-name": cluster });
        json!({ "metadata": { "name": "m", "namespace": "default", "labels": labels } })
    };
    let owned = |namespace: &str| {
        let mut host = host("nuc-1", VIP, None);
        host["metadata"]["labels"] = json!({ OWNER_NAME: "m", OWNER_NAMESPACE: namespace });
        host
    };
    let (moved, conflict) = (("True", "Provisioned"), ("False", "EndpointConflict"));
    let rows = [
        (owned("default"), Some("c"), moved),
        (owned("default"), Some("d"), conflict),
        (owned("default"), None, conflict),
        (owned("other"), Some("c"), conflict),
        (host("nuc-1", VIP, None), Some("c"), conflict),
    ];
    for (host, member_of, expected) in rows {
        let world = world(cluster(endpoint(VIP)));
        world.hardware.put(HARDWARE, host);
        if let Some(name) = member_of {
            world.remote.put(TINKERBELL_MACHINE, machine(name));
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
