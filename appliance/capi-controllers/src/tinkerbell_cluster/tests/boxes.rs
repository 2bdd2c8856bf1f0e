//! Several boxes that serve one management cluster.

use std::sync::Arc;

use api::tinkerbell::HARDWARE;
use objects::fake::Memory;

use super::super::{ImageChecks, TinkerbellClusterReconciler};
use super::{OneAddress, VIP, World, cluster, condition, endpoint, host, ready, world};
use controllers::runtime::Reconciler as _;

/// Returns a second box for the same management cluster.
pub(super) fn second(world: &World) -> (Arc<Memory>, TinkerbellClusterReconciler) {
    let hardware = Arc::new(Memory::default());
    let reconciler = TinkerbellClusterReconciler {
        view: world.reconciler.view.clone(),
        hardware: hardware.clone(),
        addresses: Arc::new(OneAddress),
        clock: Arc::new(world.clock.clone()),
        box_name: "box-2".to_owned(),
        image_servers: world.reconciler.image_servers.clone(),
        image_checks: ImageChecks::default(),
    };
    (hardware, reconciler)
}

#[tokio::test]
async fn two_boxes_come_to_rest() {
    let world = world(cluster(endpoint(VIP)));
    let (hardware, other) = second(&world);
    world.hardware.put(HARDWARE, host("nuc-1", "10.77.0.11", Some("rack-a")));
    hardware.put(HARDWARE, host("nuc-1", "10.77.0.11", Some("rack-b")));
    world.run().await;
    other.reconcile(&world.key).await.unwrap();
    let before = world.object();
    let domains = before["status"]["failureDomains"].as_array().unwrap();
    assert_eq!(domains.len(), 2);
    world.run().await;
    other.reconcile(&world.key).await.unwrap();
    assert_eq!(world.object(), before);
}

#[tokio::test]
async fn two_boxes_with_a_conflict_do_not_overwrite_each_other() {
    let world = world(cluster(endpoint(VIP)));
    let (hardware, other) = second(&world);
    world.hardware.put(HARDWARE, host("nuc-1", VIP, None));
    hardware.put(HARDWARE, host("nuc-9", VIP, None));
    world.run().await;
    other.reconcile(&world.key).await.unwrap();
    let before = world.object();
    assert_eq!(ready(&before), ("False", "EndpointConflict"));
    assert!(condition(&before, "Ready")["message"].as_str().unwrap().contains("nuc-1"));
    world.run().await;
    other.reconcile(&world.key).await.unwrap();
    assert_eq!(world.object(), before);
    // The box corrects its own message.
    world.hardware.put(HARDWARE, host("nuc-0", VIP, None));
    let object = world.run().await;
    assert!(condition(&object, "Ready")["message"].as_str().unwrap().contains("nuc-0"));
}
