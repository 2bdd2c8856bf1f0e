//! Hosts that answer for the endpoint of a new cluster.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use api::network::NETWORK;
use serde_json::json;
use stdx::MacAddr;

use super::super::{BoxAddresses, OtherHost};
use super::{VIP, World, cluster, condition, endpoint, ready, world};

/// Network in which a host may have the address of the endpoint.
#[derive(Default)]
struct Neighborhood {
    answers: AtomicBool,
    asked: AtomicUsize,
}

impl BoxAddresses for Neighborhood {
    fn has(&self, _: IpAddr) -> bool {
        false
    }

    fn other_host<'a>(&'a self, interface: &'a str, address: Ipv4Addr) -> OtherHost<'a> {
        assert_eq!((interface, address.to_string().as_str()), ("eth1", VIP));
        self.asked.fetch_add(1, Ordering::SeqCst);
        let answers = self.answers.load(Ordering::SeqCst);
        Box::pin(async move { answers.then_some(MacAddr([2, 0, 0, 0, 0, 7])) })
    }
}

/// Returns a box with a network, and a cluster with the endpoint in `spec`.
fn beside(spec: serde_json::Value) -> (World, Arc<Neighborhood>) {
    let mut world = world(cluster(spec));
    let network = json!({ "metadata": { "name": "eth1" }, "spec": {
        "interface": "eth1", "address": "10.77.0.1/24", "mode": "pool",
        "pool": ["10.77.0.100-10.77.0.150"] } });
    world.hardware.put(NETWORK, network);
    let neighborhood = Arc::new(Neighborhood::default());
    world.reconciler.addresses = Arc::clone(&neighborhood) as _;
    (world, neighborhood)
}

#[tokio::test]
async fn an_endpoint_that_a_host_answers_for_is_refused_until_it_is_free() {
    let (world, neighborhood) = beside(endpoint(VIP));
    neighborhood.answers.store(true, Ordering::SeqCst);
    let object = world.run().await;
    assert_eq!(ready(&object), ("False", "EndpointConflict"));
    let text = condition(&object, "Ready")["message"].as_str().unwrap();
    let expected = format!(
        "a host with the MAC 02:00:00:00:00:07 answers on eth1 for the endpoint {VIP} (box box-1); \
         set spec.controlPlaneEndpoint.host to an unused address"
    );
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(world.events(), ["EndpointConflict!"]);
    assert_eq!(world.once().await, Some(Duration::from_secs(30)));
    assert!(world.events().is_empty());

    neighborhood.answers.store(false, Ordering::SeqCst);
    assert_eq!(ready(&world.run().await), ("True", "Provisioned"));
    // From now on, the control plane answers.
    neighborhood.answers.store(true, Ordering::SeqCst);
    let asked = neighborhood.asked.load(Ordering::SeqCst);
    assert_eq!(ready(&world.run().await), ("True", "Provisioned"));
    assert_eq!(neighborhood.asked.load(Ordering::SeqCst), asked);
}

#[tokio::test]
async fn a_control_plane_may_answer_for_the_endpoint_of_its_own_cluster() {
    // `clusterctl move` keeps the endpoint of the Cluster, and no status.
    let (world, neighborhood) = beside(endpoint(VIP));
    neighborhood.answers.store(true, Ordering::SeqCst);
    world.edit_owner(endpoint(VIP));
    assert_eq!(ready(&world.run().await), ("True", "Provisioned"));
    assert_eq!(neighborhood.asked.load(Ordering::SeqCst), 0);
    // A host name, and an address outside of the networks of the box, cannot be checked.
    for host in ["api.example.org", "192.0.2.1", "2001:db8::1"] {
        let (world, neighborhood) = beside(endpoint(host));
        neighborhood.answers.store(true, Ordering::SeqCst);
        assert_eq!(ready(&world.run().await), ("True", "Provisioned"), "{host}");
        assert_eq!(neighborhood.asked.load(Ordering::SeqCst), 0, "{host}");
    }
}
