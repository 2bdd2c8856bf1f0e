//! Checks of a cluster at rest: what Cluster API's own end-to-end framework checks, and that the
//! box writes nothing without a reason.

use std::process::Command;

use peers::{built, run};
use serde_json::{Value, json};

use super::management::{condition, good};
use super::manifest::{CLUSTER, CONTROL_PLANE, WORKERS};
use super::names;
use super::site::Site;

/// Kinds of the provider in the management cluster.
const OWN: &str = "tinkerbellclusters,tinkerbellmachines,tinkerbellmachinetemplates";
/// Kinds of the box that an installation creates or changes.
const OF_BOX: &str = "hardware,templates,workflows";

/// Runs the checks of the framework: owner references and finalizers are removed from all objects
/// of the cluster while it is paused, and come back; resource versions are stable before and after.
pub fn check_framework(site: &Site) {
    let before = (on_box(site), site.hosts.installations());
    let mut checks = Command::new(built("framework-checks", &[]).unwrap().remove(0));
    checks.arg(format!("--kubeconfig={}", site.management.kubeconfig().display()));
    // No object owns the user data of the workers, which a person created.
    checks.args([format!("--cluster={CLUSTER}"), format!("--without-owner={WORKERS}")]);
    let printed = run(checks, "").unwrap();
    assert!(printed.success && printed.out.contains("all checks passed"), "{printed:?}");
    assert_eq!((on_box(site), site.hosts.installations()), before);
}

/// Lets the box reconcile all objects again, and checks that it writes to none of them.
pub fn check_resync(site: &mut Site) {
    let machine = site.management.list("tinkerbellmachines").remove(0);
    let machine = machine["metadata"]["name"].as_str().unwrap().to_owned();
    let versions = |site: &Site| -> Vec<String> {
        let mut all = site.management.list(OWN);
        all.retain(|it| it["metadata"]["name"] != *machine);
        all.extend(on_box(site));
        all.iter().map(version).collect()
    };
    let before = versions(site);
    site.hosts.rack.tinboxd.restart().unwrap();
    // The box reconciles the objects in the order of their signals. The restart signals all of them
    // before the second removal of this status.
    for _ in 0..2 {
        let patch = json!([{ "op": "remove", "path": "/status" }]).to_string();
        let patch = ["--subresource=status", "--type=json", "-p", &patch];
        let patch = [&["patch", "tinkerbellmachine", &machine], &patch[..]].concat();
        good(&site.management.kubectl, &patch, "");
        site.management.wait("the status of a machine", || {
            let machines = site.management.list("tinkerbellmachines");
            machines.iter().all(|it| condition(it, "Ready").0 == "True")
        });
    }
    assert_eq!(versions(site), before);
}

/// Checks the status and the columns of the templates, and that the API server refuses a change of
/// the endpoint.
pub fn check_objects(site: &Site) {
    let status = |usage: &str| {
        let templates = site.management.list("tinkerbellmachinetemplates");
        let found = templates.iter().find(|it| it["metadata"]["name"] == *usage).unwrap();
        ["matchingHardware", "freeHardware"].map(|it| found["status"][it].as_u64().unwrap())
    };
    // The box counts again after a change of a template, else every three minutes.
    let annotate = ["annotate", "tinkerbellmachinetemplates", "--all", "example.test/touched="];
    good(&site.management.kubectl, &annotate, "");
    site.management.wait("the counts of the templates", || {
        (status(CONTROL_PLANE), status(WORKERS)) == ([6, 3], [3, 2])
    });
    for template in site.management.list("tinkerbellmachinetemplates") {
        let capacity = &template["status"]["capacity"];
        assert!(capacity["cpu"].is_string() && capacity["memory"].is_string(), "{template}");
    }
    let table = good(&site.management.kubectl, &["get", "tinkerbellmachinetemplates"], "");
    let header = table.lines().next().unwrap();
    assert!(["MATCHING", "FREE", "READY"].iter().all(|it| header.contains(it)), "{table}");
    let patch = json!({ "spec": { "controlPlaneEndpoint": { "host": "other.test" } } }).to_string();
    let patch = ["patch", "tinkerbellcluster", CLUSTER, "--type=merge", "-p", &patch];
    let refused = site.management.kubectl.run(&patch, "").unwrap();
    assert!(!refused.success && refused.err.contains("cannot be changed"), "{refused:?}");
}

/// Changes a template in place, and restores it: the box names the machines that keep the former
/// spec, and nothing is rolled out.
pub fn check_change_in_place(site: &Site) {
    let before = on_box(site);
    let machines = names(&site.management.machines(CONTROL_PLANE));
    let patch = |image: Value| {
        let patch = json!({ "spec": { "template": { "spec": { "osImage": image } } } });
        let template = ["patch", "tinkerbellmachinetemplate", CONTROL_PLANE, "--type=merge", "-p"];
        let patch = patch.to_string();
        good(&site.management.kubectl, &[&template[..], &[&patch]].concat(), "");
    };
    let state = || {
        let templates = site.management.list("tinkerbellmachinetemplates");
        let found = templates.iter().find(|it| it["metadata"]["name"] == *CONTROL_PLANE).unwrap();
        condition(found, "MachinesUpToDate")
    };
    assert_eq!(state().0, "True");
    patch(json!("debian-13"));
    site.management.wait("the condition about the change", || state().0 == "False");
    let (_, reason, message) = state();
    assert_eq!(reason, "ChangedInPlace");
    assert!(message.contains("make another TinkerbellMachineTemplate"), "{message}");
    let own = site.management.list("tinkerbellmachines");
    let named = own.iter().filter(|it| message.contains(it["metadata"]["name"].as_str().unwrap()));
    assert_eq!(named.count(), machines.len(), "{message}");
    site.management.wait("the event about the change", || {
        let events = site.management.list("events");
        events.iter().any(|it| it["reason"] == "ChangedInPlace" && it["type"] == "Warning")
    });
    patch(Value::Null);
    site.management.wait("the restored template", || state().0 == "True");
    assert_eq!(names(&site.management.machines(CONTROL_PLANE)), machines);
    assert_eq!(on_box(site), before);
}

/// Checks that owners, bootstrap Secrets, provider IDs and addresses of all objects agree, from the
/// Cluster to the Hardware.
pub fn check_owners(site: &Site) {
    let cluster = site.management.list("clusters").remove(0);
    let infrastructure = site.management.list("tinkerbellclusters").remove(0);
    assert_eq!(owner(&infrastructure), ["Cluster", uid(&cluster)]);
    assert_eq!(infrastructure["status"]["ready"], true);
    assert_eq!(infrastructure["status"]["initialization"]["provisioned"], true);
    assert_eq!(condition(&infrastructure, "Ready").0, "True");
    let machines = site.management.list("machines");
    let own = site.management.list("tinkerbellmachines");
    let hardware = site.hosts.list("hardware");
    let sets = site.management.list("kcp,machinesets");
    assert_eq!((machines.len(), own.len()), (4, 4));
    for own in &own {
        let machine = machines.iter().find(|it| owner(own) == ["Machine", uid(it)]).unwrap();
        assert!(sets.iter().any(|it| owner(machine)[1] == uid(it)), "{machine}");
        let secret = machine["spec"]["bootstrap"]["dataSecretName"].as_str().unwrap();
        good(&site.management.kubectl, &["get", "secret", secret], "");
        let name = own["spec"]["hardwareName"].as_str().unwrap();
        assert_eq!(own["spec"]["providerID"], *format!("tinkerbell://default/{name}"));
        assert_eq!(machine["spec"]["providerID"], own["spec"]["providerID"]);
        assert_eq!(machine["status"]["addresses"], own["status"]["addresses"]);
        assert_eq!(own["status"]["ready"], true);
        assert_eq!(own["status"]["initialization"]["provisioned"], true);
        let host = hardware.iter().find(|it| it["metadata"]["name"] == *name).unwrap();
        let labels = &host["metadata"]["labels"];
        let label = |part: &str| &labels[format!("v1alpha1.tinkerbell.org/{part}")];
        assert_eq!(*label("ownerName"), own["metadata"]["name"]);
        assert_eq!(*label("ownerNamespace"), own["metadata"]["namespace"]);
    }
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap()
}

/// Returns kind and UID of the controller of an object, else of its only owner.
fn owner(object: &Value) -> [&str; 2] {
    let owners = object["metadata"]["ownerReferences"].as_array().unwrap();
    let found = owners.iter().find(|it| it["controller"] == true).unwrap_or(&owners[0]);
    [found["kind"].as_str().unwrap(), found["uid"].as_str().unwrap()]
}

fn on_box(site: &Site) -> Vec<Value> {
    site.hosts.list(OF_BOX)
}

fn version(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!("{} {} {}", object["kind"], metadata["name"], metadata["resourceVersion"])
}
