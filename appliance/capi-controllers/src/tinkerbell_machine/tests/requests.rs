//! Tests of the requests to a management cluster, and of decisions on old copies of its objects.

use std::sync::{Arc, Mutex};

use api::core::ObjectEvent;
use api::infrastructure::cluster_api::{CLUSTER, MACHINE};
use api::infrastructure::{TINKERBELL_CLUSTER, TINKERBELL_MACHINE};
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{HARDWARE, WORKFLOW};
use controllers::runtime::Reconciler as _;
use jiff::Timestamp;
use objects::fake::Memory;
use objects::{ObjectError, Objects, Pending};
use serde_json::{Value, json};

use super::World;

/// Requests to the API of a management cluster, as `VERB kind`.
type RequestLog = Arc<Mutex<Vec<String>>>;

/// API that records its requests. Reads of watched kinds are answered by the copy, if there is one.
struct Counted {
    memory: Arc<Memory>,
    copy: Option<Arc<Memory>>,
    seen: RequestLog,
}

impl Counted {
    fn count(&self, verb: &str, resource: Resource, part: &str) {
        self.seen.lock().unwrap().push(format!("{verb} {}{part}", resource.kind));
    }
}

impl Objects for Counted {
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        if let Some(copy) = self.copy.as_ref().filter(|_| resource.kind != "Secret") {
            return copy.get(resource, key);
        }
        self.count("get", resource, "");
        self.memory.get(resource, key)
    }

    fn list<'a>(&'a self, resource: Resource, _: Option<&'a str>) -> Pending<'a, Vec<Value>> {
        panic!("list of {}", resource.kind)
    }

    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        self.count("create", resource, "");
        self.memory.create(resource, object)
    }

    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        self.count("update", resource, "");
        self.memory.update(resource, object)
    }

    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        self.count("update", resource, "/status");
        self.memory.update_status(resource, object)
    }

    fn delete<'a>(&'a self, resource: Resource, _: &'a ObjectKey) -> Pending<'a, ()> {
        panic!("deletion of {}", resource.kind)
    }

    fn delete_uid<'a>(
        &'a self,
        resource: Resource,
        _: &'a ObjectKey,
        _: &'a str,
    ) -> Pending<'a, ()> {
        panic!("deletion of {}", resource.kind)
    }

    fn record(&self, happening: ObjectEvent) {
        self.seen.lock().unwrap().push(format!("event {}", happening.reason));
        self.memory.record(happening);
    }
}

/// Reconciles the machine `worker` once. Returns the requests; the copy is that of a watch.
async fn reconcile(world: &World, copy: &Arc<Memory>) -> (Result<(), ObjectError>, Vec<String>) {
    let seen = RequestLog::default();
    let counted = |copy| {
        Arc::new(Counted { memory: world.management.clone(), copy, seen: Arc::clone(&seen) })
    };
    let mut reconciler = world.reconciler_on(counted(None), world.box_api.clone());
    reconciler.view.watched = counted(Some(Arc::clone(copy)));
    let result = reconciler.reconcile(&ObjectKey::new("default", "worker")).await;
    (result.map(drop), std::mem::take(&mut *seen.lock().unwrap()))
}

/// Returns a machine with a Hardware of the box, and a BMC.
fn world() -> World {
    let world = World::paired();
    world.hardware("nuc1", super::deletion::bmc());
    world
}

/// Returns an old copy of the objects of the management cluster.
fn copied(world: &World) -> Arc<Memory> {
    Arc::new(world.management.copied())
}

#[tokio::test]
async fn an_installation_needs_few_requests() {
    let world = world();
    let (result, seen) = reconcile(&world, &world.management).await;
    assert_eq!(result, Ok(()));
    let expected = [
        "get Cluster",
        "update TinkerbellMachine",
        "event HardwareClaimed",
        "get Secret",
        "event InstallationStarted",
        "update TinkerbellMachine",
        "update TinkerbellMachine/status",
    ];
    assert_eq!(seen, expected);
    // The reason for the choice is in the only status that was written.
    let (_, _, message) = world.condition("worker", "HardwareClaimed");
    assert!(message.contains("nuc1"), "{message}");
    assert_eq!(world.condition("worker", "Ready").1, "Installing");
    // The first states of a new Workflow are not reported.
    let mut workflow = world.box_api.peek(WORKFLOW, "worker").unwrap();
    workflow["metadata"]["creationTimestamp"] = json!(Timestamp::UNIX_EPOCH);
    workflow["status"] = json!({ "state": "PENDING" });
    world.box_api.put(WORKFLOW, workflow.clone());
    assert_eq!(reconcile(&world, &world.management).await, (Ok(()), vec![]));
    workflow["metadata"]["creationTimestamp"] = json!("1969-12-31T23:59:58Z");
    world.box_api.put(WORKFLOW, workflow);
    let (_, seen) = reconcile(&world, &world.management).await;
    assert_eq!(seen, ["update TinkerbellMachine/status"]);
    assert_eq!(reconcile(&world, &world.management).await, (Ok(()), vec![]));
}

#[tokio::test]
async fn an_old_copy_permits_no_installation() {
    for is_paused in [true, false] {
        let world = world();
        let copy = copied(&world);
        if is_paused {
            let mut cluster = world.management.peek(CLUSTER, "demo").unwrap();
            cluster["spec"]["paused"] = json!(true);
            world.management.put(CLUSTER, cluster);
        } else {
            let mut machine = world.get("worker");
            machine["metadata"]["annotations"] = json!({ "tinbox.dev/box": "another" });
            world.management.put(TINKERBELL_MACHINE, machine);
        }
        let before = world.host("nuc1");
        let (result, _) = reconcile(&world, &copy).await;
        let is_conflict = matches!(result, Err(ObjectError::Conflict(_)));
        assert!(result == Ok(()) || !is_paused, "{result:?}");
        assert!(is_conflict || is_paused, "{result:?}");
        assert_eq!(world.host("nuc1"), before);
        assert!(world.box_api.names(WORKFLOW).is_empty());
    }
}

#[tokio::test]
async fn an_old_copy_permits_no_release() {
    let world = world();
    world.provision("worker").await;
    let before = world.host("nuc1");
    let copy = copied(&world);
    let mut machine = world.get("worker");
    machine["metadata"]["deletionTimestamp"] = json!(Timestamp::UNIX_EPOCH);
    copy.put(TINKERBELL_MACHINE, machine);
    // Another machine of the same name, or the same from a backup: not deleted.
    let (result, seen) = reconcile(&world, &copy).await;
    let expected = ["get TinkerbellMachine", "get TinkerbellMachine", "get Cluster"];
    assert_eq!((result, seen), (Ok(()), expected.map(str::to_owned).to_vec()));
    assert_eq!(world.host("nuc1"), before);
    assert!(world.box_api.names(api::bmc::JOB).is_empty());
}

#[tokio::test]
async fn a_machine_of_the_failure_domain_of_another_box_needs_no_request() {
    let world = world();
    let domain = |boxes: &str| json!({ "attributes": { "boxes": boxes } });
    let domains = json!({ "rack-a": domain("box1,box2"), "rack-b": domain("box2") });
    let status = json!({ "ready": true, "failureDomains": domains });
    world.put(TINKERBELL_CLUSTER, "demo", json!({ "status": status }));
    let mut machine = world.management.peek(MACHINE, "worker").unwrap();
    machine["spec"]["failureDomain"] = json!("rack-b");
    world.management.put(MACHINE, machine);
    assert_eq!(reconcile(&world, &world.management).await, (Ok(()), vec![]));
    assert_eq!(world.get("worker")["status"], Value::Null);
    // The other box has no free Hardware, and this box has one that is not in the list yet.
    let mut machine = world.get("worker");
    let condition = json!({ "type": "HardwareClaimed", "status": "False", "reason": "NoHardware" });
    machine["status"] = json!({ "conditions": [condition] });
    world.management.put(TINKERBELL_MACHINE, machine);
    let mut host = world.host("nuc1");
    host["metadata"]["labels"] = json!({ "topology.tinbox.dev/failure-domain": "rack-b" });
    world.box_api.put(HARDWARE, host);
    world.settle("worker").await.unwrap();
    assert_eq!(world.condition("worker", "Ready").1, "Installing");
}
