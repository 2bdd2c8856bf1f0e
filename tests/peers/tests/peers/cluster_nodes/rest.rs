//! Checks of a cluster at rest: what Cluster API's own end-to-end framework checks, and that the
//! box writes nothing without a reason.

use std::process::Command;

use peers::{built, run};
use serde_json::{Value, json};

use super::BEFORE;
use super::management::{condition, good};
use super::manifest::{CLUSTER, CONTROL_PLANE, WORKERS, template_name};
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
        let name = template_name(usage, BEFORE);
        let templates = site.management.list("tinkerbellmachinetemplates");
        let found = templates.iter().find(|it| it["metadata"]["name"] == *name).unwrap();
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

fn on_box(site: &Site) -> Vec<Value> {
    site.hosts.list(OF_BOX)
}

fn version(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!("{} {} {}", object["kind"], metadata["name"], metadata["resourceVersion"])
}
