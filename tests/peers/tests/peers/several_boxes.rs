//! Two boxes on one management cluster with stock Cluster API: apart by their watch filters, then
//! by their failure domains. Each box has its own Hardware with BMCs, whose logs show that each
//! machine is switched on once.

mod site;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cluster_nodes::management::condition;
use site::{BOXES, FILTERS, Site};

/// Interval at which the box reads a machine that waits, in seconds.
const POLL_SECONDS: i64 = 30;
/// Repeats of a step that a busy computer can delay beyond [`POLL_SECONDS`].
const TRIES_MAX: usize = 5;

#[test]
fn two_boxes_serve_their_own_machines_of_one_management_cluster() {
    let mut site = Site::start();
    by_filter(&site);
    unreachable_image(&site);
    bootstrap_data(&site);
    by_domain(&site);
    without_a_box(&mut site);
}

/// Each box has the filter of its namespace. Labels decide, not namespaces.
fn by_filter(site: &Site) {
    for (at, filter) in FILTERS.into_iter().enumerate() {
        site.pair(at, &["--watch-filter", filter]);
        site.create_cluster(filter, Some(filter));
        site.create_machine(filter, &format!("{filter}-1"), Some(filter), None);
    }
    site.create_machine(FILTERS[0], "unserved", None, None);
    site.wait_installing(FILTERS[0], "red-1");
    site.wait_installing(FILTERS[1], "blue-1");
    assert_eq!(site.workflows(), [names(&["red-1"]), names(&["blue-1"])]);
    // 1 is the command that switches on.
    assert!(site.powers().values().all(|commands| *commands == [1]), "{:?}", site.powers());
    for (at, filter) in FILTERS.into_iter().enumerate() {
        let clusters = site.list(filter, "tinkerbellclusters");
        let domains = &clusters[0]["status"]["failureDomains"];
        assert!(domains.to_string().contains(BOXES[at]), "{domains}");
        assert!(!domains.to_string().contains(BOXES[1 - at]), "{domains}");
    }
    let own = site.list(FILTERS[0], "tinkerbellmachines");
    let unserved = own.iter().find(|it| it["metadata"]["name"] == "unserved").unwrap();
    assert_eq!(unserved["status"].get("conditions"), None, "{unserved}");
}

/// A box cannot reach an image of a template, and goes on with all machines.
fn unreachable_image(site: &Site) {
    site.create_unreachable_image(0, "nowhere");
    let cluster = || site.list(FILTERS[0], "tinkerbellclusters").remove(0);
    site.wait("the condition about the image", || {
        let (status, reason, message) = condition(&cluster(), "ImagesReachable");
        assert!(!message.contains("s3cret"), "{message}");
        status == "False"
            && reason == "ImageUnreachable"
            && message.contains("http://images.invalid/nowhere.img: ")
            && message.ends_with("(box box-red)")
    });
    assert_eq!(condition(&cluster(), "Ready").0, "True");
    site.create_machine(FILTERS[0], "red-2", Some(FILTERS[0]), None);
    site.wait_installing(FILTERS[0], "red-2");
}

/// The name of the bootstrap Secret leads to a claim without a turn of the poll: the machine is
/// younger than the interval.
fn bootstrap_data(site: &Site) {
    let filter = FILTERS[1];
    let is_early = (0..TRIES_MAX).any(|number| {
        let name = format!("late-{number}");
        site.create_machine_without_data(filter, &name, Some(filter));
        site.wait_reason(filter, &name, "WaitingForBootstrapData");
        site.set_bootstrap_data(filter, &name);
        site.wait_installing(filter, &name);
        let machine = site.machine(filter, &name);
        let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
        let conditions = machine["status"]["conditions"].as_array().unwrap();
        let claim = conditions.iter().find(|it| it["type"] == "HardwareClaimed").unwrap();
        let claimed = time(&claim["lastTransitionTime"]);
        // Times are whole seconds.
        let poll = SignedDuration::from_secs(POLL_SECONDS - 1);
        let first_poll = time(&machine["metadata"]["creationTimestamp"]) + poll;
        site.delete_machine(filter, &name);
        claimed < first_poll
    });
    assert!(is_early, "only a poll leads to a claim");
}

/// Without filters, each box gets all objects. The failure domain of a Machine names its box.
fn by_domain(site: &Site) {
    let before = (site.workflows(), site.powers());
    for at in 0..BOXES.len() {
        site.remove_filter(at);
    }
    let namespace = "domains";
    site.create_cluster(namespace, None);
    site.wait("both boxes in the status of the cluster", || {
        let clusters = site.list(namespace, "tinkerbellclusters");
        let domains = clusters[0]["status"]["failureDomains"].to_string();
        BOXES.iter().all(|name| domains.contains(name))
    });
    for (at, name) in BOXES.into_iter().enumerate() {
        site.create_machine(namespace, &format!("domain-{at}"), None, Some(name));
    }
    for (at, name) in BOXES.into_iter().enumerate() {
        let machine = format!("domain-{at}");
        site.wait_installing(namespace, &machine);
        let own = site.machine(namespace, &machine);
        assert_eq!(own["status"]["failureDomain"], *name);
        let host = own["spec"]["hardwareName"].as_str().unwrap();
        assert!(site.hosts(at).contains(host), "{host} is not of {name}");
    }
    // The machine without the label, which no box served, now has one of the two.
    site.wait_installing(FILTERS[0], "unserved");
    for (at, (now, before)) in site.workflows().iter().zip(&before.0).enumerate() {
        assert!(before.is_subset(now) && now.contains(&format!("domain-{at}")), "{now:?}");
    }
    assert_powers(site, &before.1);
    site.assert_claims();
}

/// One box is killed: the other continues, and does not take over.
fn without_a_box(site: &mut Site) {
    let namespace = "domains";
    let before = (site.states(), site.powers());
    site.boxes[0].tinboxd.kill();
    site.create_machine(namespace, "orphan", None, Some(BOXES[0]));
    site.create_machine(namespace, "served", None, Some(BOXES[1]));
    site.wait_installing(namespace, "served");
    let orphan = site.machine(namespace, "orphan");
    assert_eq!(orphan["spec"].get("hardwareName"), None, "{orphan}");
    site.boxes[0].tinboxd.restart().unwrap();
    site.wait_installing(namespace, "orphan");
    let own = site.machine(namespace, "orphan");
    assert_eq!(own["status"]["failureDomain"], *BOXES[0]);
    site.assert_claims();
    // Nothing is done twice for the machines from before.
    let states = site.states();
    assert!(before.0.is_subset(&states), "{:?}", &before.0 - &states);
    assert_powers(site, &before.1);
}

/// Checks that the BMCs in use at an earlier time received no power command since.
fn assert_powers(site: &Site, before: &BTreeMap<String, Vec<u8>>) {
    let now = site.powers();
    for (host, commands) in before {
        assert_eq!(now.get(host), Some(commands), "{host}");
    }
}

fn names(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns the reason of the condition `Ready`.
fn reason(machine: &Value) -> String {
    condition(machine, "Ready").1
}

/// Returns a reference of Cluster API to an object of this provider.
fn reference(kind: &str, name: &str) -> Value {
    json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name })
}
