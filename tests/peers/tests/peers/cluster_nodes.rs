//! The whole life of a cluster of Cluster API on the machines of a box: Nodes, scaling, rollouts
//! and deletion. Stock agents install the machines by the box's own template, with actions that
//! only record the image. An in-memory API stands in for the kubelets.
//!
//! The steps share one environment, whose programs take half a minute to start.

pub mod hosts;
pub mod management;
pub mod manifest;
mod rest;
pub mod site;

use std::collections::BTreeSet;

use hosts::Hosts;
use management::{Management, condition, good, runs};
use manifest::{CLUSTER, CONTROL_PLANE, REGISTRY, USE, WORKERS, control_plane, os_image, workers};
use serde_json::{Value, json};
use site::Site;

/// Kubernetes versions of the machines before and after the rollout.
pub const BEFORE: &str = "v1.34.3";
const AFTER: &str = "v1.35.3";
const OWNER: &str = "v1alpha1.tinkerbell.org/ownerName";
const DOMAINS: [&str; 3] = ["a", "b", "c"];

#[test]
fn a_cluster_lives_on_machines_of_the_box() {
    let mut site = Site::start();
    // One spare machine in each failure domain of the control plane, for rollouts.
    for domain in DOMAINS {
        site.hosts.add(&format!("{domain}1"), CONTROL_PLANE, domain);
        site.hosts.add(&format!("{domain}2"), CONTROL_PLANE, domain);
        site.hosts.add(&format!("{domain}3"), WORKERS, domain);
    }
    create(&site);
    scale_control_plane(&site);
    let before = versions(&site);
    scale_workers(&site);
    compete_for_hardware(&site);
    take_released_hardware(&site);
    scale_down(&site);
    assert_eq!(versions(&site), before, "the box writes nothing without a reason");
    rest::check_objects(&site);
    rest::check_owners(&site);
    rest::check_change_in_place(&site);
    rest::check_framework(&site);
    rest::check_resync(&mut site);
    roll_control_plane(&mut site);
    roll_workers(&site);
    delete_by("foreground", &site.hosts, &site.management, 3);
    assert_eq!(site.hosts.list("hardware").len(), 9);
}

fn create(site: &Site) {
    for version in [BEFORE, AFTER] {
        site.hosts.rack.apply_object(&os_image(version));
    }
    site.apply_templates();
    site.apply_cluster();
    site.apply(&[control_plane(1, BEFORE)]);
    site.apply(&workers(0, BEFORE));
    site.management.wait_machines(CONTROL_PLANE, 1, BEFORE);
    let control_plane = &site.management.list("kcp")[0];
    assert_eq!(control_plane["status"]["initialization"]["controlPlaneInitialized"], true);
    wait_available(site);
}

fn wait_available(site: &Site) {
    site.management.wait("the available cluster", || {
        let all = site.management.list("kcp,clusters");
        all.iter().all(|it| condition(it, "Available").0 == "True")
    });
}

fn scale_control_plane(site: &Site) {
    site.apply(&[control_plane(3, BEFORE)]);
    site.management.wait_machines(CONTROL_PLANE, 3, BEFORE);
    wait_available(site);
    assert_eq!(site.hosts.installations(), 3);
    assert_eq!(images(site, &format!("{REGISTRY}/ubuntu-2004:{BEFORE}.gz")), 3);
    assert_spread(site);
    let (machines, hardware) = (site.management.list("machines"), site.hosts.list("hardware"));
    for node in site.management.nodes() {
        let name = &node["metadata"]["name"];
        let machine = machines.iter().find(|it| it["status"]["nodeRef"]["name"] == *name);
        let host = hardware.iter().find(|it| it["metadata"]["name"] == *name);
        assert_node(&node, machine.unwrap(), host.unwrap());
    }
}

/// Checks that Node, Machine and Hardware name each other.
fn assert_node(node: &Value, machine: &Value, host: &Value) {
    let name = node["metadata"]["name"].as_str().unwrap();
    let id = format!("tinkerbell://default/{name}");
    assert_eq!(node["spec"]["providerID"], *id);
    assert_eq!(machine["spec"]["providerID"], *id);
    // The annotation of the Node is written by Cluster API.
    let machine_name = &machine["metadata"]["name"];
    assert_eq!(node["metadata"]["annotations"]["cluster.x-k8s.io/machine"], *machine_name);
    assert_eq!(host["metadata"]["labels"][OWNER], *machine_name);
    let ip = |at: usize| &host["spec"]["interfaces"][at]["dhcp"]["ip"]["address"];
    let addresses = json!([
        { "type": "InternalIP", "address": ip(0) },
        { "type": "InternalIP", "address": ip(1) },
        { "type": "Hostname", "address": name },
        { "type": "InternalDNS", "address": name },
    ]);
    assert_eq!(machine["status"]["addresses"], addresses);
}

/// Returns name and resource version of the box's objects of the control plane.
fn versions(site: &Site) -> BTreeSet<String> {
    let mut all = site.management.list("tinkerbellmachines");
    all.retain(|it| it["metadata"]["labels"].get("cluster.x-k8s.io/control-plane").is_some());
    all.extend(site.management.list("tinkerbellclusters"));
    let versions = all.iter().map(|it| {
        let metadata = &it["metadata"];
        format!("{} {}", metadata["name"], metadata["resourceVersion"])
    });
    versions.collect()
}

/// Checks that the control plane has one machine in each failure domain.
fn assert_spread(site: &Site) {
    let machines = site.management.machines(CONTROL_PLANE);
    let domains = |pointer: &str| -> BTreeSet<String> {
        let texts = machines.iter().filter_map(|machine| machine.pointer(pointer)?.as_str());
        texts.map(str::to_owned).collect()
    };
    let expected: BTreeSet<String> = DOMAINS.map(str::to_owned).into();
    assert_eq!(domains("/spec/failureDomain"), expected);
    let nodes = domains("/status/nodeRef/name");
    let of_nodes: BTreeSet<String> = nodes.iter().map(|name| name[..1].to_owned()).collect();
    assert_eq!(of_nodes, expected, "the Hardware is of the same domain");
}

fn scale(site: &Site, replicas: usize) {
    let replicas = format!("--replicas={replicas}");
    good(&site.management.kubectl, &["scale", "machinedeployment", WORKERS, &replicas], "");
}

fn scale_workers(site: &Site) {
    scale(site, 2);
    site.management.wait_machines(WORKERS, 2, BEFORE);
    assert_eq!(site.management.nodes().len(), 5);
    let hardware = site.hosts.list("hardware");
    let installed = hardware.iter().filter_map(|it| it["spec"]["userData"].as_str());
    let archives = installed.filter(|text| text.starts_with("Content-Type: multipart/mixed"));
    assert_eq!(archives.count(), 2, "the user data of the workers have two parts");
}

/// Two new machines compete for the last Hardware.
fn compete_for_hardware(site: &Site) {
    scale(site, 4);
    site.management.wait_running(WORKERS, 3, BEFORE);
    let mut message = String::new();
    site.management.wait("a machine without Hardware", || {
        let machines = site.management.list("tinkerbellmachines");
        let mut ready = machines.iter().map(|machine| condition(machine, "Ready"));
        let refused = ready.find(|(_, reason, _)| reason == "NoHardware");
        message = refused.map(|(_, _, message)| message).unwrap_or_default();
        message.contains("6 are in use")
    });
    assert!(message.starts_with("0 of 9 Hardware can be used: "), "{message}");
    assert!(message.contains("3 do not match hardwareAffinity"), "{message}");
    let owned = site.hosts.list("hardware").iter().filter(|it| is_owned(it)).count();
    assert_eq!((owned, site.hosts.installations()), (6, 6));
    // Cluster API repeats the reason of the box in its own objects.
    site.management.wait("the reason in the Machine", || {
        let machines = site.management.machines(WORKERS);
        machines.iter().any(|it| condition(it, "InfrastructureReady").1 == "NoHardware")
    });
}

/// A machine that waits takes the Hardware of a deleted machine. Its Node has the same name and the
/// same provider ID.
fn take_released_hardware(site: &Site) {
    let machines = site.management.machines(WORKERS);
    let (running, waiting): (Vec<&Value>, Vec<&Value>) =
        machines.iter().partition(|it| it["status"]["nodeRef"].is_object());
    let name = |machine: &Value| machine["metadata"]["name"].as_str().unwrap().to_owned();
    let (deleted, waiting) = (running[0], name(waiting[0]));
    good(&site.management.kubectl, &["delete", "machine", &name(deleted), "--wait=false"], "");
    site.management.wait("the waiting machine to run", || {
        let machines = site.management.machines(WORKERS);
        let machine = machines.iter().find(|it| name(it) == waiting);
        machine.is_some_and(|it| {
            it["status"]["nodeRef"] == deleted["status"]["nodeRef"] && runs(it, BEFORE)
        })
    });
    assert_eq!(site.hosts.installations(), 7);
}

fn is_owned(hardware: &Value) -> bool {
    hardware["metadata"]["labels"].get(OWNER).is_some()
}

fn scale_down(site: &Site) {
    // Cluster API deletes the machine that waits first.
    scale(site, 3);
    site.management.wait_machines(WORKERS, 3, BEFORE);
    assert_eq!(site.management.nodes().len(), 6);
    scale(site, 1);
    site.management.wait_machines(WORKERS, 1, BEFORE);
    // Only Cluster API deletes Nodes.
    assert_eq!(site.management.nodes().len(), 4);
    let hardware = site.hosts.list("hardware");
    let workers = hardware.iter().filter(|it| it["metadata"]["labels"][USE] == WORKERS);
    for free in workers.clone().filter(|it| !is_owned(it)) {
        assert_free(free);
    }
    assert_eq!(workers.filter(|it| is_owned(it)).count(), 1);
}

fn assert_free(hardware: &Value) {
    let metadata = &hardware["metadata"];
    assert!(!is_owned(hardware), "{metadata}");
    assert!(metadata["finalizers"].as_array().is_none_or(Vec::is_empty), "{metadata}");
    assert_eq!(hardware["spec"].get("userData"), None, "{metadata}");
    let annotations = &metadata["annotations"];
    assert_eq!(annotations.get("v1alpha1.tinkerbell.org/provisioned"), None, "{metadata}");
}

pub fn names(objects: &[Value]) -> BTreeSet<String> {
    let names = objects.iter().map(|it| it["metadata"]["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

fn roll_control_plane(site: &mut Site) {
    let before = names(&site.management.machines(CONTROL_PLANE));
    site.apply(&[control_plane(3, AFTER)]);
    site.management.wait("the first new machine", || {
        !names(&site.management.machines(CONTROL_PLANE)).is_subset(&before)
    });
    site.hosts.rack.tinboxd.restart().unwrap();
    site.management.wait_machines(CONTROL_PLANE, 3, AFTER);
    assert!(names(&site.management.machines(CONTROL_PLANE)).is_disjoint(&before));
    assert_eq!(site.hosts.installations(), 10, "the restart of the box repeats no installation");
    assert_spread(site);
    wait_available(site);
    assert_eq!(images(site, &format!("{REGISTRY}/ubuntu-2004:{AFTER}.gz")), 3);
}

/// Returns the number of machines that have this image. Their templates name no version: that of
/// the Machine chooses the image.
fn images(site: &Site, location: &str) -> usize {
    let templates = site.hosts.list("templates");
    let texts = templates.iter().filter_map(|it| it["spec"]["data"].as_str());
    texts.filter(|text| text.contains(location)).count()
}

fn roll_workers(site: &Site) {
    let before = names(&site.management.machines(WORKERS));
    site.apply(&workers(1, AFTER));
    site.management.wait_machines(WORKERS, 1, AFTER);
    assert!(names(&site.management.machines(WORKERS)).is_disjoint(&before));
    assert_eq!((site.management.nodes().len(), site.hosts.installations()), (4, 11));
    assert_eq!(images(site, &format!("http://images.test/{AFTER}/workers.img")), 1);
}

/// Deletes the cluster, whose control plane has this many machines, and checks that all Hardware is
/// free.
pub fn delete(hosts: &Hosts, management: &Management, members: usize) {
    delete_by("background", hosts, management, members);
}

/// As [`delete`], with this value of `--cascade`.
fn delete_by(cascade: &str, hosts: &Hosts, management: &Management, members: usize) {
    let cascade = format!("--cascade={cascade}");
    good(&management.kubectl, &["delete", "cluster", CLUSTER, &cascade, "--wait=false"], "");
    management.wait("the end of the cluster", || {
        // The control plane outlives the workers.
        let machines = management.list("machines");
        let (of_control_plane, workers): (Vec<&Value>, Vec<&Value>) =
            machines.iter().partition(|it| management::is_of(it, CONTROL_PLANE));
        assert!(workers.is_empty() || of_control_plane.len() == members, "{machines:?}");
        management.list("clusters").is_empty()
    });
    for resource in ["machines", "tinkerbellmachines", "tinkerbellclusters"] {
        assert_eq!(names(&management.list(resource)), BTreeSet::new(), "{resource}");
    }
    for resource in ["templates", "workflows"] {
        assert_eq!(names(&hosts.list(resource)), BTreeSet::new(), "{resource}");
    }
    hosts.list("hardware").iter().for_each(assert_free);
}
