//! Stock clusterctl replaces stock CAPT by the box: `clusterctl upgrade apply` removes CAPT, and
//! the box adopts its running machines without an effect on them.
//!
//! The steps share one environment, whose programs take half a minute to start.

mod stock;

use std::thread;

use peers::cluster_api::Series;
use serde_json::{Value, json};
use stock::StockProvider;

use crate::cluster_moves::world::{Side, VERSION, World};
use crate::cluster_moves::{machines, wait_running};
use crate::cluster_nodes::delete;
use crate::cluster_nodes::management::good;
use crate::cluster_nodes::manifest::{self, CONTROL_PLANE, WORKERS};
use crate::cluster_nodes::site::endpoint;
use crate::cluster_nodes::{BEFORE, names};

/// Version of the box as a replacement of CAPT.
const REPLACEMENT: &str = "tinkerbell-tinkerbell:v0.101.0";
const FINALIZER: &str = "infrastructure.cluster.x-k8s.io/tinkerbellmachine";
/// Finalizer of CAPT 0.6.
const OLD_FINALIZER: &str = "tinkerbellmachine.infrastructure.cluster.x-k8s.io";

#[test]
fn clusterctl_takes_over_from_the_stock_provider() {
    let mut world = World::start(Series::V1_13, VERSION);
    let side = world.add_unpaired("fleet", |cluster, own| stock::init(&world, cluster, own));
    let mut capt = StockProvider::start(&side);
    for (name, usage) in [("a1", CONTROL_PLANE), ("a2", WORKERS)] {
        world.add_machine(name, usage);
        let instance = json!({ "spec": { "metadata": { "instance": { "id": name } } } });
        patch(&world.hosts.rack.kubectl, &["hardware", name], &instance);
    }
    create(&world, &side);
    let before = machines(&world);
    upgrade(&world, &side, &mut capt);
    assert_eq!(machines(&world), before);
    age(&world, &side);
    good(&world.hosts.rack.kubectl, &["delete", "serviceaccount", "tinbox-capt"], "");
    world.hosts.pair(side.name, &side.management);
    wait_running(&world, &side);
    assert_eq!(machines(&world), before);
    check_adopted(&world, &side);
    clean(&side);
    let binding = ["delete", "clusterrolebinding", "tinbox:capt:default:tinbox-capt"];
    good(&world.hosts.rack.kubectl, &binding, "");
    delete(&world.hosts, &side.management, 1);
    assert_eq!((world.hosts.installations(), world.are_on()), (2, vec![false, false]));
    assert_eq!(finalizers(&world.hosts.list("hardware")), ["null", "null"]);
}

fn patch(kubectl: &peers::Kubectl, object: &[&str], patch: &Value) {
    let patch = patch.to_string();
    good(kubectl, &[&["patch"], object, &["--type=merge", "-p", &patch]].concat(), "");
}

/// Lets CAPT provision the machines of a cluster.
fn create(world: &World, side: &Side) {
    let management = &side.management;
    let templates = [CONTROL_PLANE, WORKERS].map(|usage| {
        let mut template = world.hosts.template(usage, BEFORE);
        let spec = template["spec"]["template"]["spec"].as_object_mut().unwrap();
        // A field of the box.
        spec.remove("userDataSecret");
        spec.insert("bootOptions".to_owned(), json!({ "bootMode": "netboot" }));
        template
    });
    management.apply(&templates);
    management.apply(&manifest::cluster(endpoint()));
    management.apply(&[manifest::control_plane(1, BEFORE)]);
    management.apply(&manifest::workers(1, BEFORE));
    for usage in [CONTROL_PLANE, WORKERS] {
        management.wait_machines(usage, 1, BEFORE);
    }
    assert_eq!((world.hosts.installations(), world.are_on()), (2, vec![true, true]));
}

fn upgrade(world: &World, side: &Side, capt: &mut StockProvider) {
    let config = [&*side.own, &world.workstation.provider().unwrap()];
    let config = world.workstation.config("takeover", &config).unwrap();
    let plan = world.clusterctl_with(side, &config, &["upgrade", "plan"]);
    let row = plan.lines().find(|line| line.starts_with("infrastructure-tinkerbell-tinkerbell"));
    assert!(row.is_some_and(|it| it.contains("v0.7.0") && it.contains("v0.101.0")), "{plan}");
    thread::scope(|scope| {
        scope.spawn(|| capt.end_with_the_deployment(&side.management));
        let apply = ["upgrade", "apply", "--infrastructure", REPLACEMENT];
        world.clusterctl_with(side, &config, &apply);
    });
    let get = |what: &[&str]| good(&side.management.kubectl, &[&["get"], what].concat(), "");
    let providers = get(&["providers.clusterctl.cluster.x-k8s.io", "-A"]);
    assert!(providers.contains("v0.101.0") && !providers.contains("v0.7.0"), "{providers}");
    let left = "deployments,services,serviceaccounts,issuers,certificates";
    let left = get(&[left, "-n", "capt-system", "-o", "name"]);
    assert!(!left.contains("capt"), "{left}");
    let webhooks = get(&["mutatingwebhookconfigurations,validatingwebhookconfigurations"]);
    assert!(!webhooks.contains("capt"), "{webhooks}");
    let definitions = definitions(side);
    assert_eq!(definitions.len(), 6);
    for definition in &definitions {
        assert_eq!(definition["spec"]["versions"].as_array().unwrap().len(), 1, "{definition}");
    }
}

/// Removes what clusterctl leaves of CAPT, as `docs/how-to/take-over-from-capt.md` says.
fn clean(side: &Side) {
    let kubectl = &side.management.kubectl;
    let roles = ["clusterrole/capt-manager-role", "clusterrolebinding/capt-manager-rolebinding"];
    good(kubectl, &[&["delete"], &roles[..]].concat(), "");
    let secret = ["delete", "secret", "external-tinkerbell-kubeconfig", "-n", "capt-system"];
    good(kubectl, &secret, "");
    let none = json!({ "spec": { "conversion": { "strategy": "None", "webhook": null } } });
    for kind in ["tinkerbellclusters", "tinkerbellmachines", "tinkerbellmachinetemplates"] {
        patch(kubectl, &["crd", &format!("{kind}.infrastructure.cluster.x-k8s.io")], &none);
    }
    for definition in definitions(side) {
        assert_eq!(definition["spec"]["conversion"], json!({ "strategy": "None" }));
    }
}

fn definitions(side: &Side) -> Vec<Value> {
    let mut definitions = side.management.list("crd");
    definitions.retain(|it| it["spec"]["group"] == "infrastructure.cluster.x-k8s.io");
    definitions
}

/// Gives the worker and its Hardware the finalizer of CAPT 0.6.
fn age(world: &World, side: &Side) {
    let old = json!({ "metadata": { "finalizers": [OLD_FINALIZER] } });
    let machines = side.management.list("tinkerbellmachines");
    let worker = machines.iter().find(|it| it["spec"]["hardwareName"] == "a2").unwrap();
    let name = worker["metadata"]["name"].as_str().unwrap();
    patch(&side.management.kubectl, &["tinkerbellmachine", name], &old);
    patch(&world.hosts.rack.kubectl, &["hardware", "a2"], &old);
}

/// Checks that the machines and their Hardware are those of the box.
fn check_adopted(world: &World, side: &Side) {
    let hardware = world.hosts.list("hardware");
    let owned = |it: &Value| it["metadata"]["annotations"]["tinbox.dev/management-cluster"].clone();
    assert!(hardware.iter().all(|it| owned(it) == "fleet"), "{hardware:?}");
    let machines = side.management.list("tinkerbellmachines");
    assert_eq!(names(&machines).len(), 2);
    for all in [&hardware, &machines] {
        let expected = json!([FINALIZER]).to_string();
        assert_eq!(finalizers(all), [expected.clone(), expected]);
    }
    for machine in machines {
        assert!(machine["metadata"]["annotations"]["tinbox.dev/box"].is_string(), "{machine}");
        assert_eq!(machine["status"]["initialization"]["provisioned"], true, "{machine}");
    }
}

fn finalizers(objects: &[Value]) -> Vec<String> {
    objects.iter().map(|it| it["metadata"]["finalizers"].to_string()).collect()
}
