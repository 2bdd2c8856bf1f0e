//! Endpoints that the box provides.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use api::infrastructure::cluster_api::CLUSTER;
use api::infrastructure::{OWNER_NAME, OWNER_NAMESPACE, TINKERBELL_CLUSTER, TINKERBELL_MACHINE};
use api::meta::ObjectKey;
use api::network::NETWORK;
use api::network::control_plane_endpoint::CONTROL_PLANE_ENDPOINT;
use api::tinkerbell::HARDWARE;
use objects::Objects as _;
use serde_json::{Value, json};

use super::super::{BoxAddresses, OtherHost, clusters_with_endpoints};
use super::{VIP, World, cluster, condition, endpoint, host, ready, world};

const READY: &str = "ControlPlaneEndpointReady";
/// Label of Hardware with the unique ID of the management cluster.
const CLUSTER_UID: &str = "tinbox.dev/management-cluster-uid";

/// Returns a TinkerbellCluster that requests an endpoint of the box.
fn requesting(address: &str) -> Value {
    let mut spec = endpoint(address);
    spec["controlPlaneEndpointProvider"] = json!("Box");
    cluster(spec)
}

/// Returns a box that serves 10.77.0.0/24, with a request for an endpoint.
fn serving(address: &str) -> World {
    let world = world(requesting(address));
    let network = json!({ "metadata": { "name": "eth1" }, "spec": {
        "interface": "eth1", "address": "10.77.0.1/24", "mode": "pool",
        "pool": ["10.77.0.100-10.77.0.150"] } });
    world.hardware.put(NETWORK, network);
    world
}

impl World {
    fn machine(&self, name: &str, hardware: &str, status: &[&str]) {
        let addresses: Vec<_> =
            status.iter().map(|it| json!({ "type": "InternalIP", "address": it })).collect();
        self.remote.put(
            TINKERBELL_MACHINE,
            json!({
                "metadata": { "name": name, "namespace": "default", "labels": {
                    "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/control-plane": "" } },
                "spec": { "hardwareName": hardware }, "status": { "addresses": addresses },
            }),
        );
    }

    fn owned(&self, name: &str, address: &str, owner: &str) {
        let mut object = host(name, address, None);
        object["metadata"]["labels"] = json!({ OWNER_NAME: owner, OWNER_NAMESPACE: "default",
            CLUSTER_UID: "c1" });
        self.hardware.put(HARDWARE, object);
    }

    async fn provided(&self, address: &str) -> Option<Value> {
        self.hardware.get(CONTROL_PLANE_ENDPOINT, &ObjectKey::new("", address)).await.ok()
    }

    /// Writes the status of the endpoint, such as the service of the endpoints does.
    async fn report(&self, held: bool, reason: &str, message: &str) {
        let mut object = self.provided(VIP).await.unwrap();
        object["status"] = json!({ "held": held, "reason": reason, "message": message });
        self.hardware.put(CONTROL_PLANE_ENDPOINT, object);
    }
}

fn backends(object: &Value) -> Vec<&str> {
    let all = object["spec"]["backends"].as_array().unwrap();
    all.iter().map(|it| it["address"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_cluster_is_provisioned_after_the_box_has_the_address() {
    let world = serving(VIP);
    let object = world.run().await;
    assert_eq!(ready(&object), ("False", "WaitingForEndpoint"));
    assert_eq!(world.events(), ["WaitingForEndpoint"]);
    let provided = world.provided(VIP).await.unwrap();
    let reference = json!({ "managementClusterUID": "c1", "namespace": "default", "name": "c" });
    assert_eq!(provided["spec"]["clusterRef"], reference);
    assert_eq!((&provided["spec"]["port"], backends(&provided).len()), (&json!(6443), 0));
    world.report(true, "NoMachine", "no machine").await;
    let object = world.run().await;
    assert_eq!(ready(&object), ("True", "Provisioned"));
    assert_eq!(condition(&object, READY)["reason"], "NoMachine");
    assert_eq!(world.events(), ["NoMachine", "Provisioned"]);
    world.report(true, "Forwarding", "1 of 1 machines are healthy").await;
    let object = world.run().await;
    assert_eq!(condition(&object, READY)["status"], "True");
    assert_eq!(condition(&object, READY)["message"], "1 of 1 machines are healthy (box box-1)");
    assert_eq!(world.run().await, object, "a second run writes nothing");
    world.report(false, "AddressInUse", "the machine x answers").await;
    let object = world.run().await;
    assert_eq!(ready(&object), ("True", "Provisioned"), "never provisioned again");
    assert_eq!(condition(&object, READY)["reason"], "AddressInUse");
}

#[tokio::test]
async fn an_endpoint_that_the_box_cannot_provide_has_a_reason() {
    for (address, reason, message) in [
        ("10.78.0.200", "EndpointNotServed", "not in a Network of the box (box box-1)"),
        ("api.example.org", "EndpointNotServed", "not an IPv4 address"),
        ("fd77::1", "EndpointNotServed", "not an IPv4 address"),
        ("10.77.0.120", "EndpointConflict", "in the DHCP pool of eth1 (box box-1)"),
        ("10.77.0.255", "EndpointNotServed", "not in a Network"),
    ] {
        let world = serving(address);
        let object = world.run().await;
        assert_eq!(ready(&object), ("False", reason), "{address}");
        let text = condition(&object, "Ready")["message"].as_str().unwrap();
        assert!(text.contains(message) && text.contains("; set spec."), "{text}");
        assert!(world.provided(address).await.is_none(), "{address}");
        assert_eq!(world.run().await, object, "{address}");
    }
    let world = serving(VIP);
    world.run().await;
    world.report(false, "AddressInUse", "the machine x answers for it").await;
    let object = world.run().await;
    assert_eq!(ready(&object), ("False", "EndpointConflict"));
    let text = condition(&object, "Ready")["message"].as_str().unwrap();
    assert!(text.contains("the machine x answers for it (box box-1); "), "{text}");
}

#[tokio::test]
async fn the_machines_are_those_of_the_control_plane() {
    let world = serving(VIP);
    world.machine("m-1", "nuc-1", &[]);
    world.machine("m-2", "nuc-2", &["10.77.0.99"]);
    world.machine("m-3", "nuc-9", &["fe80::1", "10.77.0.13"]);
    world.machine("m-4", "nuc-4", &[]);
    world.remote.put(
        TINKERBELL_MACHINE,
        json!({ "metadata": { "name": "worker",
        "namespace": "default", "labels": { "cluster.x-k8s.io/cluster-name": "c" } },
        "status": { "addresses": [{ "type": "InternalIP", "address": "10.77.0.50" }] } }),
    );
    world.owned("nuc-1", "10.77.0.11", "m-1");
    world.owned("nuc-2", "10.77.0.12", "m-2");
    // The Hardware of m-4 belongs to another machine, and that of m-5 to a machine of the same name
    // in another management cluster.
    world.owned("nuc-4", "10.77.0.14", "other");
    world.machine("m-5", "nuc-5", &[]);
    let mut other = host("nuc-5", "10.77.0.15", None);
    other["metadata"]["labels"] = json!({ OWNER_NAME: "m-5", OWNER_NAMESPACE: "default",
        CLUSTER_UID: "c2" });
    world.hardware.put(HARDWARE, other);
    world.run().await;
    let provided = world.provided(VIP).await.unwrap();
    assert_eq!(backends(&provided), ["10.77.0.11", "10.77.0.12", "10.77.0.13"]);
    world.machine("m-4", "nuc-4", &["10.77.0.44"]);
    world.run().await;
    assert_eq!(backends(&world.provided(VIP).await.unwrap()).len(), 4);
}

/// Addresses of a box that already has the endpoint.
struct WithEndpoint;

impl BoxAddresses for WithEndpoint {
    fn has(&self, address: IpAddr) -> bool {
        address.to_string() == VIP
    }

    fn other_host<'a>(&'a self, _: &'a str, _: Ipv4Addr) -> OtherHost<'a> {
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn an_address_belongs_to_one_cluster() {
    let mut world = serving(VIP);
    world.reconciler.addresses = Arc::new(WithEndpoint);
    let other = json!({ "metadata": { "name": VIP }, "spec": { "address": VIP, "port": 6443,
        "clusterRef": { "managementClusterUID": "old", "namespace": "default", "name": "c" } } });
    world.hardware.put(CONTROL_PLANE_ENDPOINT, other.clone());
    assert_eq!(world.once().await, Some(Duration::from_secs(15)));
    let object = world.run().await;
    assert_eq!(ready(&object), ("False", "EndpointConflict"));
    let text = condition(&object, "Ready")["message"].as_str().unwrap();
    assert!(text.contains("is the endpoint of the cluster default/c"), "{text}");
    let mut before = world.provided(VIP).await.unwrap();
    assert_eq!(before["spec"], other["spec"]);
    // The cluster was moved from another management cluster.
    before["spec"]["clusterRef"]["deleted"] = json!(true);
    before["status"] = json!({ "held": true, "reason": "NoMachine", "message": "no machine" });
    world.hardware.put(CONTROL_PLANE_ENDPOINT, before);
    let object = world.run().await;
    assert_eq!(ready(&object), ("True", "Provisioned"));
    let provided = world.provided(VIP).await.unwrap();
    assert_eq!(provided["spec"]["clusterRef"]["managementClusterUID"], "c1");
    assert_eq!(provided["spec"]["clusterRef"].get("deleted"), None);
    // A cluster with an endpoint of its own must not have an address of the box.
    world.edit(|object| object["spec"] = endpoint(VIP));
    world.edit(|object| object["status"] = json!({}));
    let mut other = world.provided(VIP).await.unwrap();
    other["spec"]["clusterRef"]["name"] = json!("d");
    world.hardware.put(CONTROL_PLANE_ENDPOINT, other);
    let object = world.run().await;
    let text = condition(&object, "Ready")["message"].as_str().unwrap();
    assert!(text.contains("is an address of the box itself"), "{text}");
}

#[tokio::test]
async fn a_provisioned_cluster_keeps_its_endpoint_without_a_network() {
    let world = serving(VIP);
    world.run().await;
    world.report(true, "Forwarding", "1 of 1 machines are healthy").await;
    assert_eq!(condition(&world.run().await, READY)["status"], "True");
    let network = json!({ "metadata": { "name": "eth1" },
        "spec": { "interface": "eth1", "address": "10.78.0.1/24" } });
    let before = world.hardware.get(NETWORK, &ObjectKey::new("", "eth1")).await.unwrap();
    world.hardware.put(NETWORK, network);
    let object = world.run().await;
    assert_eq!(condition(&object, READY)["status"], "False");
    assert_eq!(condition(&object, READY)["reason"], "EndpointNotServed");
    assert_eq!(ready(&object), ("True", "Provisioned"), "never changes back");
    world.report(false, "NotInNetwork", "not in a Network").await;
    let object = world.run().await;
    assert_eq!(condition(&object, READY)["reason"], "NotInNetwork");
    assert_eq!(world.run().await, object);
    world.hardware.put(NETWORK, before);
    world.report(true, "Forwarding", "1 of 1 machines are healthy").await;
    assert_eq!(condition(&world.run().await, READY)["status"], "True");
}

#[tokio::test]
async fn a_later_request_is_refused_for_an_address_in_use() {
    let world = world(cluster(endpoint(VIP)));
    let network = json!({ "metadata": { "name": "eth1" },
        "spec": { "interface": "eth1", "address": "10.77.0.1/24" } });
    world.hardware.put(NETWORK, network);
    assert_eq!(ready(&world.run().await), ("True", "Provisioned"));
    // A machine of the cluster has the address, such as one with kube-vip.
    world.hardware.put(HARDWARE, host("nuc-1", VIP, None));
    world.edit(|object| object["spec"]["controlPlaneEndpointProvider"] = json!("Box"));
    let object = world.run().await;
    assert!(world.provided(VIP).await.is_none());
    assert_eq!(condition(&object, READY)["reason"], "EndpointConflict");
    let text = condition(&object, READY)["message"].as_str().unwrap();
    assert!(text.ends_with("the Hardware default/nuc-1 (box box-1)"), "{text}");
    world.hardware.put(HARDWARE, host("nuc-1", "10.77.0.11", None));
    world.run().await;
    assert!(world.provided(VIP).await.is_some());
}

#[tokio::test]
async fn ports_of_the_box_are_refused() {
    for (port, expected) in [(443, "EndpointConflict"), (6443, "WaitingForEndpoint")] {
        let world = serving(VIP);
        world.edit(|object| object["spec"]["controlPlaneEndpoint"]["port"] = json!(port));
        let object = world.run().await;
        assert_eq!(ready(&object), ("False", expected));
        assert_eq!(world.provided(VIP).await.is_none(), port == 443);
    }
}

#[tokio::test]
async fn an_endpoint_ends_with_its_request_or_its_cluster() {
    let world = serving(VIP);
    world.run().await;
    world.report(true, "NoMachine", "").await;
    world.run().await;
    world.edit(|object| object["spec"] = endpoint(VIP));
    let object = world.run().await;
    assert!(world.provided(VIP).await.is_none());
    assert_eq!(condition(&object, READY), &Value::Null);

    let world = serving(VIP);
    world.machine("m-1", "nuc-1", &[]);
    world.owned("nuc-1", "10.77.0.11", "m-1");
    world.run().await;
    world.remote.delete(TINKERBELL_CLUSTER, &world.key).await.unwrap();
    assert!(world.once().await.is_some(), "the machine of the control plane still runs");
    let provided = world.provided(VIP).await.unwrap();
    assert_eq!(provided["spec"]["clusterRef"]["deleted"], true);
    let clusters = clusters_with_endpoints(world.hardware.as_ref(), Some("c1")).await.unwrap();
    assert_eq!(clusters, [ObjectKey::new("default", "c")]);
    let own = clusters_with_endpoints(world.hardware.as_ref(), None).await.unwrap();
    assert_eq!(own, []);
    // A machine of another cluster has the Hardware now.
    world.owned("nuc-1", "10.77.0.11", "other");
    assert_eq!(world.once().await, None);
    assert!(world.provided(VIP).await.is_none());
}

#[tokio::test]
async fn a_paused_cluster_keeps_its_endpoint() {
    let world = serving(VIP);
    world.run().await;
    let before = world.provided(VIP).await;
    let paused = json!({ "metadata": { "name": "c", "namespace": "default" },
        "spec": { "paused": true } });
    world.remote.put(CLUSTER, paused);
    world.edit(|object| object["spec"] = endpoint(VIP));
    world.run().await;
    assert_eq!(world.provided(VIP).await, before);
}

#[tokio::test]
async fn a_second_box_does_not_overwrite_the_box_with_the_address() {
    let world = serving(VIP);
    world.run().await;
    world.report(true, "Forwarding", "1 of 1 machines are healthy").await;
    let before = world.run().await;
    let (hardware, other) = super::boxes::second(&world);
    // A box without the Network has nothing to say.
    assert!(reconciled(&other, &world).await);
    assert_eq!(world.object()["status"]["conditions"], before["status"]["conditions"]);
    let network = json!({ "metadata": { "name": "eth1" },
        "spec": { "interface": "eth1", "address": "10.77.0.2/24" } });
    hardware.put(NETWORK, network);
    assert!(reconciled(&other, &world).await);
    let key = ObjectKey::new("", VIP);
    let mut standby = hardware.get(CONTROL_PLANE_ENDPOINT, &key).await.unwrap();
    standby["status"] = json!({ "held": false, "reason": "AddressInUse", "message": "in use" });
    hardware.put(CONTROL_PLANE_ENDPOINT, standby.clone());
    assert!(reconciled(&other, &world).await);
    assert_eq!(world.object()["status"]["conditions"], before["status"]["conditions"]);
    // The first box failed, and the second one has the address now.
    standby["status"] = json!({ "held": true, "reason": "Forwarding", "message": "new" });
    hardware.put(CONTROL_PLANE_ENDPOINT, standby);
    assert!(reconciled(&other, &world).await);
    assert_eq!(condition(&world.object(), READY)["message"], "new (box box-2)");
}

async fn reconciled(other: &super::TinkerbellClusterReconciler, world: &World) -> bool {
    use controllers::runtime::Reconciler as _;
    other.reconcile(&world.key).await.is_ok()
}
