use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use api::infrastructure::cluster_api::CLUSTER;
use api::infrastructure::{Contract, FAILURE_DOMAIN, TINKERBELL_CLUSTER};
use api::meta::ObjectKey;
use api::tinkerbell::HARDWARE;
use jiff::{SignedDuration, Timestamp};
use objects::fake::Memory;
use serde_json::{Value, json};
use stdx::TestClock;

use super::{BoxAddresses, ImageChecks, OtherHost, TinkerbellClusterReconciler};
use crate::{ClusterIdentity, ManagementView};
use controllers::runtime::{Reconciler as _, Requeue};

mod boxes;
mod images;
mod live_host;
mod moved;
mod provided;

const VIP: &str = "10.77.0.200";
const BOX: &str = "10.77.0.1";

/// Change of a stored object.
type Change = Box<dyn FnOnce(&mut Value)>;

struct OneAddress;

impl BoxAddresses for OneAddress {
    fn has(&self, address: IpAddr) -> bool {
        address.to_string() == BOX
    }

    fn other_host<'a>(&'a self, _: &'a str, _: Ipv4Addr) -> OtherHost<'a> {
        Box::pin(async { None })
    }
}

/// A management cluster, and a box that serves it.
struct World {
    remote: Arc<Memory>,
    hardware: Arc<Memory>,
    clock: TestClock,
    reconciler: TinkerbellClusterReconciler,
    key: ObjectKey,
}

fn world(cluster: Value) -> World {
    let (remote, hardware) = (Arc::new(Memory::default()), Arc::new(Memory::default()));
    remote.put(CLUSTER, json!({ "metadata": { "name": "c", "namespace": "default" }, "spec": {} }));
    let key = remote.put(TINKERBELL_CLUSTER, cluster);
    let clock = TestClock::at(Timestamp::UNIX_EPOCH);
    let reconciler = TinkerbellClusterReconciler {
        view: ManagementView {
            objects: remote.clone(),
            watched: remote.clone(),
            cluster: Some(ClusterIdentity { uid: "c1".to_owned(), ..ClusterIdentity::default() }),
            contract: Contract::V1beta2,
            watch_filter: None,
        },
        hardware: hardware.clone(),
        addresses: Arc::new(OneAddress),
        clock: Arc::new(clock.clone()),
        box_name: "box-1".to_owned(),
        image_servers: None,
        image_checks: ImageChecks::default(),
    };
    World { remote, hardware, clock, reconciler, key }
}

/// Returns a TinkerbellCluster that the Cluster `c` owns.
fn cluster(spec: Value) -> Value {
    json!({
        "metadata": {
            "name": "c", "namespace": "default", "generation": 3,
            "labels": {}, "annotations": {}, "finalizers": [],
            "ownerReferences": [
                { "apiVersion": "example.org/v1", "kind": "Cluster", "name": "other", "uid": "o" },
                { "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c",
                    "uid": "u" },
            ],
        },
        "spec": spec,
    })
}

fn endpoint(host: &str) -> Value {
    json!({ "controlPlaneEndpoint": { "host": host, "port": 6443 } })
}

fn host(name: &str, address: &str, rack: Option<&str>) -> Value {
    let labels = rack.map_or_else(|| json!({}), |rack| json!({ FAILURE_DOMAIN: rack }));
    json!({
        "metadata": { "name": name, "namespace": "default", "labels": labels },
        "spec": { "interfaces": [{}, { "dhcp": { "ip": { "address": address } } }] },
    })
}

impl World {
    /// Reconciles once. Returns the wait until the next run.
    async fn once(&self) -> Option<Duration> {
        match self.reconciler.reconcile(&self.key).await.unwrap() {
            Requeue::After(wait) => Some(wait),
            Requeue::OnSignal => None,
        }
    }

    /// Reconciles until the next run only checks for changes.
    async fn run(&self) -> Value {
        for _ in 0..3 {
            if self.once().await.is_none_or(|wait| wait > Duration::from_secs(1)) {
                return self.object();
            }
        }
        panic!("the cluster does not come to rest");
    }

    fn object(&self) -> Value {
        self.remote.peek(TINKERBELL_CLUSTER, &self.key.name).unwrap()
    }

    /// Changes the stored object, such as a person does.
    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut object = self.object();
        change(&mut object);
        self.remote.put(TINKERBELL_CLUSTER, object);
    }

    fn edit_owner(&self, spec: Value) {
        let object = json!({ "metadata": { "name": "c", "namespace": "default" }, "spec": spec });
        self.remote.put(CLUSTER, object);
    }

    /// Returns the reasons of the recorded events; a warning has a `!`.
    fn events(&self) -> Vec<String> {
        let all = std::mem::take(&mut *self.remote.happenings.lock().unwrap());
        let text = |warning| if warning { "!" } else { "" };
        all.iter().map(|it| format!("{}{}", it.reason, text(it.warning))).collect()
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|it| it["type"] == kind).unwrap_or(&Value::Null)
}

/// Returns status and reason of the condition `Ready`.
fn ready(object: &Value) -> (&str, &str) {
    let ready = condition(object, "Ready");
    (ready["status"].as_str().unwrap_or_default(), ready["reason"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn the_endpoint_of_the_cluster_is_written_and_nothing_else_changes() {
    let world = world(cluster(json!({ "later": { "a": [1] }, "imageLookupOSDistro": "ubuntu" })));
    world.edit_owner(json!({ "controlPlaneEndpoint": { "host": VIP, "port": 8443 } }));
    let object = world.run().await;
    assert_eq!(
        object["spec"],
        json!({ "later": { "a": [1] }, "imageLookupOSDistro": "ubuntu",
            "controlPlaneEndpoint": { "host": VIP, "port": 8443 } })
    );
    let status = &object["status"];
    assert_eq!(status["ready"], true);
    assert_eq!(status["initialization"], json!({ "provisioned": true }));
    let domains = json!([{ "name": "box-1", "controlPlane": true,
        "attributes": { "boxes": "box-1" } }]);
    assert_eq!(status["failureDomains"], domains);
    assert_eq!(ready(&object), ("True", "Provisioned"));
    assert_eq!(condition(&object, "Ready")["observedGeneration"], 3);
    assert_eq!(condition(&object, "Paused")["status"], "False");
    assert_eq!(world.events(), ["EndpointSet", "Provisioned"]);
}

#[tokio::test]
async fn a_second_run_writes_nothing() {
    let world = world(cluster(endpoint(VIP)));
    for name in ["a", "b"] {
        world.hardware.put(HARDWARE, host(name, "10.77.0.11", Some(name)));
    }
    let before = world.run().await;
    world.events();
    world.clock.advance(SignedDuration::from_hours(1));
    assert_eq!(world.run().await, before);
    assert_eq!(world.events(), [""; 0]);
    assert!(world.once().await.is_some(), "the Hardware is checked again");
}

#[tokio::test]
async fn failures_before_the_infrastructure_is_provisioned() {
    let both = json!({ "templateOverride": "x", "templateOverrideRef": { "name": "t" },
        "controlPlaneEndpoint": { "host": VIP, "port": 6443 } });
    let rows = [
        (json!({}), "EndpointMissing", "set spec.controlPlaneEndpoint.host"),
        (json!({ "controlPlaneEndpoint": { "port": 6443 } }), "EndpointMissing", "no endpoint"),
        (both, "TemplateOverrideConflict", "both set; remove one"),
        (endpoint("10.77.0.11"), "EndpointConflict", "Hardware default/nuc-1 (box box-1);"),
        (endpoint("::ffff:10.77.0.11"), "EndpointConflict", "Hardware default/nuc-1"),
        (endpoint(BOX), "EndpointConflict", "an address of the box itself (box box-1);"),
    ];
    for (spec, reason, message) in rows {
        let world = world(cluster(spec.clone()));
        world.hardware.put(HARDWARE, host("nuc-2", "10.77.0.11", None));
        world.hardware.put(HARDWARE, host("nuc-1", "10.77.0.11", None));
        let object = world.run().await;
        assert_eq!(ready(&object), ("False", reason), "{spec}");
        let text = condition(&object, "Ready")["message"].as_str().unwrap();
        assert!(text.contains(message), "{text}");
        assert_eq!(object["status"]["ready"], false);
        assert_eq!(object["status"].get("initialization"), None);
        assert_eq!(object["spec"], spec, "an endpoint that cannot be used is not written");
        assert_eq!(world.events(), [format!("{reason}!")]);
        assert_eq!(world.run().await, object, "{spec}");
    }
}

#[tokio::test]
async fn a_provisioned_cluster_stays_provisioned() {
    let world = world(cluster(endpoint(VIP)));
    world.run().await;
    // A machine of the control plane gets the endpoint as its own address.
    world.hardware.put(HARDWARE, host("nuc-1", VIP, None));
    assert_eq!(ready(&world.run().await), ("True", "Provisioned"));
    let conflict = |object: &mut Value| {
        object["spec"]["templateOverride"] = json!("x");
        object["spec"]["templateOverrideRef"] = json!({ "name": "t" });
        object["metadata"]["generation"] = json!(4);
    };
    world.edit(conflict);
    let object = world.run().await;
    assert_eq!(ready(&object), ("False", "TemplateOverrideConflict"));
    assert_eq!(condition(&object, "Ready")["observedGeneration"], 4);
    world.edit(|object| object["spec"] = json!({}));
    let object = world.run().await;
    assert_eq!(ready(&object), ("False", "EndpointMissing"));
    assert_eq!(object["status"]["ready"], true);
    assert_eq!(object["status"]["initialization"]["provisioned"], true);
    // A status of contract v1beta1 counts, too.
    world.edit(|object| object["status"] = json!({ "ready": true, "rest": 1 }));
    world.edit(|object| object["spec"] = endpoint(BOX));
    let object = world.run().await;
    assert_eq!(object["status"]["initialization"]["provisioned"], true);
    assert_eq!((ready(&object).0, &object["status"]["rest"]), ("True", &json!(1)));
}

#[tokio::test]
async fn a_paused_cluster_changes_only_its_condition() {
    let annotate = |object: &mut Value| {
        object["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = json!("");
    };
    for (by_annotation, is_deleted) in [(true, false), (false, false), (true, true), (false, true)]
    {
        let world = world(cluster(json!({})));
        let paused = !by_annotation;
        world.edit_owner(json!({ "controlPlaneEndpoint": { "host": VIP }, "paused": paused }));
        if by_annotation {
            world.edit(annotate);
        }
        if is_deleted {
            world.edit(|object| {
                object["metadata"]["deletionTimestamp"] = json!("2026-11-20T10:00:00Z");
                object["metadata"]["finalizers"] = json!(["example.org/other"]);
            });
        }
        let object = world.run().await;
        assert_eq!(condition(&object, "Paused")["status"], "True");
        assert_eq!(condition(&object, "Paused")["reason"], "Paused");
        assert_eq!(condition(&object, "Ready"), &Value::Null);
        assert_eq!(object["status"]["ready"], false);
        assert_eq!((object["status"].get("failureDomains"), &object["spec"]), (None, &json!({})));
        assert_eq!(world.events(), ["Paused"]);
        assert_eq!(world.run().await, object);
        world.edit(|object| object["metadata"]["annotations"] = json!({}));
        world.edit_owner(json!({ "controlPlaneEndpoint": { "host": VIP } }));
        let object = world.run().await;
        if is_deleted {
            assert_eq!((world.events(), &object["spec"]), (Vec::new(), &json!({})));
            continue;
        }
        assert_eq!(ready(&object), ("True", "Provisioned"));
        assert_eq!(world.events(), ["EndpointSet", "NotPaused", "Provisioned"]);
    }
}

#[tokio::test]
async fn objects_that_others_serve_and_deleted_objects_are_not_touched() {
    let set = |field: &'static str, key: &'static str| {
        move |object: &mut Value| object["metadata"][field][key] = json!("x")
    };
    let filter = "cluster.x-k8s.io/watch-filter";
    let changes: [Change; 5] = [
        Box::new(set("labels", "cluster.x-k8s.io/managed-by")),
        Box::new(set("annotations", "cluster.x-k8s.io/managed-by")),
        Box::new(set("labels", filter)),
        Box::new(|_| {}),
        Box::new(|it| it["metadata"]["deletionTimestamp"] = json!("2026-11-20T10:00:00Z")),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut world = world(cluster(endpoint(VIP)));
        if at == 2 || at == 3 {
            world.reconciler.view.watch_filter = Some("box-1".to_owned());
        }
        world.edit(change);
        let before = world.object();
        assert_eq!(world.once().await, None);
        assert_eq!(world.object(), before, "{at}");
        assert_eq!(world.events(), [""; 0]);
    }
    let mut world = world(cluster(endpoint(VIP)));
    world.reconciler.view.watch_filter = Some("x".to_owned());
    world.edit(set("labels", filter));
    assert_eq!(ready(&world.run().await), ("True", "Provisioned"));
}

#[tokio::test]
async fn only_a_management_cluster_needs_a_cluster() {
    let bare = || {
        let mut object = cluster(json!({}));
        object["metadata"]["ownerReferences"] = json!([]);
        object
    };
    let refer = |world: &World, name: &str, namespace: &str| {
        let reference = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "TinkerbellCluster", "name": name });
        let spec = json!({ "infrastructureRef": reference,
            "controlPlaneEndpoint": { "host": VIP, "port": 6443 } });
        let metadata = json!({ "name": "c", "namespace": namespace });
        world.remote.put(CLUSTER, json!({ "metadata": metadata, "spec": spec }));
    };
    // In a management cluster, Cluster API writes the owner reference.
    let waiting = world(bare());
    refer(&waiting, "c", "default");
    let object = waiting.run().await;
    assert_eq!(ready(&object), ("False", "WaitingForCluster"));
    assert_eq!(object["status"].get("failureDomains"), None);
    assert_eq!(waiting.events(), ["WaitingForCluster"]);
    assert!(waiting.once().await.unwrap() < Duration::from_secs(60));
    let mut gone = cluster(endpoint(VIP));
    gone["metadata"]["ownerReferences"][1]["name"] = json!("gone");
    assert_eq!(ready(&world(gone).run().await), ("False", "WaitingForCluster"));
    // On the box, the reference of the Cluster is sufficient.
    for (name, namespace, expected) in [
        ("c", "default", ("True", "Provisioned")),
        ("d", "default", ("False", "EndpointMissing")),
        ("c", "other", ("False", "EndpointMissing")),
    ] {
        let mut world = world(bare());
        world.reconciler.view.cluster = None;
        refer(&world, name, namespace);
        assert_eq!(ready(&world.run().await), expected, "{namespace}/{name}");
    }
    // The box needs no Cluster at all.
    let mut world = world(bare());
    world.reconciler.view.cluster = None;
    world.edit(|object| object["spec"] = endpoint(VIP));
    assert_eq!(ready(&world.run().await), ("True", "Provisioned"));
}

#[tokio::test]
async fn the_shape_of_the_failure_domains_follows_the_contract() {
    let mut world = world(cluster(endpoint(VIP)));
    world.hardware.put(HARDWARE, host("nuc-1", "10.77.0.11", Some("rack-b")));
    world.hardware.put(HARDWARE, host("nuc-2", "10.77.0.12", None));
    // Hardware that cannot be read does not stop the cluster.
    world.hardware.put(HARDWARE, json!({ "metadata": { "name": "x" }, "spec": 7 }));
    let names = |object: &Value| {
        let domains = &object["status"]["failureDomains"];
        let list = domains.as_array().into_iter().flatten();
        list.map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&world.run().await), ["box-1", "rack-b"]);
    world.reconciler.view.contract = Contract::V1beta1;
    let object = world.run().await;
    let domain = json!({ "controlPlane": true, "attributes": { "boxes": "box-1" } });
    let expected = json!({ "box-1": domain, "rack-b": domain });
    assert_eq!(object["status"]["failureDomains"], expected);
    world.hardware.put(HARDWARE, host("nuc-2", "10.77.0.12", Some("rack-b")));
    let object = world.run().await;
    assert_eq!(object["status"]["failureDomains"], json!({ "rack-b": domain }));
}
