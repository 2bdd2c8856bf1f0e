//! Stock clusterctl with a cluster on machines of a box: the cluster is described, moved to another
//! management cluster and back, and deleted; the provider is upgraded and removed. Only the
//! installation and the deletion have an effect on the machines.
//!
//! The steps share one environment, whose programs take half a minute to start.

pub mod world;

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::{Value, json};
use world::{Side, World};

use crate::cluster_nodes::management::{condition, good};
use crate::cluster_nodes::manifest::{self, CLUSTER, CONTROL_PLANE, WORKERS};
use crate::cluster_nodes::site::endpoint;
use crate::cluster_nodes::{BEFORE, delete, names};
use crate::clusterctl::FLAVORS;

/// Version of the box's release after the update of the box.
const NEXT: &str = "v0.1.1";
const CLUSTER_UID: &str = "tinbox.dev/management-cluster-uid";
const PROVISIONED: &str = "v1alpha1.tinkerbell.org/provisioned";
/// Resources of a cluster that `clusterctl move` moves.
const MOVED: [&str; 11] = [
    "clusters",
    "kubeadmconfigs",
    "kubeadmconfigtemplates",
    "kubeadmcontrolplanes",
    "machinedeployments",
    "machines",
    "machinesets",
    "secrets",
    "tinkerbellclusters",
    "tinkerbellmachines",
    "tinkerbellmachinetemplates",
];

#[test]
fn clusterctl_moves_a_cluster_and_upgrades_the_provider() {
    let mut world = World::start();
    let (first, second) = (world.add_side("first"), world.add_side("second"));
    generate(&world, &first);
    world.add_machine("a1", CONTROL_PLANE);
    world.add_machine("a2", WORKERS);
    create(&world, &first);
    golden::check("clusterctl-describe.txt", &describe(&world, &first));
    let before = machines(&world);
    move_cluster(&world, &first, &second);
    assert_eq!(machines(&world), before);
    move_cluster(&world, &second, &first);
    assert_eq!(machines(&world), before);
    upgrade(&world, &first);
    assert_eq!(machines(&world), before);
    remove_provider(&world, &second);
    assert_eq!(machines(&world), before);
    delete(&world.hosts, &first.management, 1);
    assert_eq!((world.hosts.installations(), world.are_on()), (2, vec![false, false]));
}

/// Checks the output of each flavor by a dry run. The API server calls Cluster API's webhooks.
fn generate(world: &World, side: &Side) {
    for flavor in FLAVORS {
        let flavor: &[&str] = if flavor.is_empty() { &[] } else { &["--flavor", flavor] };
        let generate = ["generate", "cluster", "demo", "--kubernetes-version", BEFORE];
        let generate = [&generate, flavor].concat();
        let listed = [&generate[..], &["--list-variables"]].concat();
        let variables = world.clusterctl(side, &listed);
        let vip = "CONTROL_PLANE_VIP";
        assert_eq!(variables.contains(vip), flavor != ["--flavor", "workers-only"], "{variables}");
        let yaml = world.clusterctl(side, &generate);
        let run = ["apply", "--dry-run=server", "-f", "-"];
        let printed = good(&side.management.kubectl, &run, &yaml);
        let objects = yaml.matches("\nkind: ").count();
        assert_eq!(printed.matches("created (server dry run)").count(), objects, "{printed}");
    }
}

fn create(world: &World, side: &Side) {
    let management = &side.management;
    let templates = [CONTROL_PLANE, WORKERS].map(|usage| world.hosts.template(usage, BEFORE));
    management.apply(&templates);
    management.apply(&manifest::cluster(endpoint()));
    management.apply(&[manifest::control_plane(1, BEFORE)]);
    management.apply(&manifest::workers(1, BEFORE));
    wait_running(world, side);
    assert_eq!((world.hosts.installations(), world.are_on()), (2, vec![true, true]));
}

/// Waits until all objects of the cluster report a running cluster on its two machines.
pub fn wait_running(world: &World, side: &Side) {
    let management = &side.management;
    for usage in [CONTROL_PLANE, WORKERS] {
        management.wait_machines(usage, 1, BEFORE);
    }
    management.wait("the available cluster", || {
        let all = management.list("clusters,kcp,md");
        all.iter().all(|it| condition(it, "Available").0 == "True")
    });
    let ids = management.list("tinkerbellmachines");
    let ids: BTreeSet<&str> = ids
        .iter()
        .inspect(|it| assert_eq!(condition(it, "Ready").0, "True", "{it}"))
        .map(|it| it["spec"]["providerID"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["tinkerbell://default/a1", "tinkerbell://default/a2"].into());
    let uid = world.pairing(side.name).status.cluster_uid.unwrap();
    for resource in ["hardware", "workflows", "templates"] {
        let objects = world.hosts.list(resource);
        assert_eq!(objects.len(), 2, "{resource}");
        for object in objects {
            assert_eq!(object["metadata"]["labels"][CLUSTER_UID], *uid, "{object}");
        }
    }
}

/// Returns the tree of the cluster without ages, random suffixes and the width of columns.
fn describe(world: &World, side: &Side) -> String {
    let mut text = world.clusterctl(side, &["describe", "cluster", CLUSTER]);
    for (pattern, by) in [
        (r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-RANDOM"),
        (r"\b(\d+[smhd])+\b", "AGE"),
        (r"(?m) +$", ""),
        // The rest of a message that has more than one line.
        (r"(?m)^ {6,}", "      "),
        (r"([^ \n]) {2,}", "$1  "),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, by).into_owned();
    }
    text
}

/// Returns the state of the machines that changes only by an installation or a deletion. The
/// generation of a Hardware counts all changes of its spec, such as the permission to netboot.
pub fn machines(world: &World) -> Value {
    let list = |resource: &str| world.hosts.list(resource);
    let uids = |resource: &str| -> BTreeSet<String> {
        list(resource).iter().map(|it| it["metadata"]["uid"].to_string()).collect()
    };
    let hardware = list("hardware");
    let hardware = hardware.iter().map(|it| {
        let metadata = &it["metadata"];
        let provisioned = metadata["annotations"][PROVISIONED].as_str();
        assert!(provisioned.is_some() && it["spec"]["userData"].is_string(), "{it}");
        assert!(metadata["generation"].is_u64(), "{it}");
        json!([metadata["uid"], metadata["generation"], it["spec"], provisioned])
    });
    json!({
        "hardware": hardware.collect::<Vec<_>>(),
        "workflows": uids("workflows"),
        "jobs": uids("jobs.bmc.tinkerbell.org"),
        "tasks": uids("tasks.bmc.tinkerbell.org"),
        "power": world.power_commands(),
        "on": world.are_on(),
        "installations": world.hosts.installations(),
    })
}

fn move_cluster(world: &World, from: &Side, to: &Side) {
    let target = to.management.kubeconfig().display().to_string();
    world.clusterctl(from, &["move", "--to-kubeconfig", &target]);
    for resource in MOVED {
        assert_eq!(names(&from.management.list(resource)), BTreeSet::new(), "{resource}");
    }
    wait_running(world, to);
}

fn upgrade(world: &World, side: &Side) {
    let config = world.write_release(side, NEXT);
    let plan = world.clusterctl_with(side, &config, &["upgrade", "plan"]);
    let row = plan.lines().find(|line| line.starts_with("infrastructure-tinbox"));
    assert!(row.is_some_and(|it| it.contains("v0.1.0") && it.contains(NEXT)), "{plan}");
    let target = format!("tinbox:{NEXT}");
    let apply = ["upgrade", "apply", "--infrastructure", &target];
    world.clusterctl_with(side, &config, &apply);
    let get = ["get", "providers.clusterctl.cluster.x-k8s.io", "-A"];
    let providers = good(&side.management.kubectl, &get, "");
    assert!(providers.contains(NEXT), "{providers}");
    // The box writes the status again: it still has its rights and its watches.
    let patch = r#"[{ "op": "remove", "path": "/status" }]"#;
    for machine in names(&side.management.list("tinkerbellmachines")) {
        let patch = [
            "patch",
            "tinkerbellmachine",
            &machine,
            "--subresource=status",
            "--type=json",
            "-p",
            patch,
        ];
        good(&side.management.kubectl, &patch, "");
    }
    side.management.wait("the machines after the upgrade", || {
        let machines = side.management.list("tinkerbellmachines");
        machines.iter().all(|it| condition(it, "Ready").0 == "True")
    });
    wait_running(world, side);
    let connected = world.pairing(side.name);
    let connected = connected.status.connected().unwrap();
    assert_eq!(connected.reason, "Connected", "{connected:?}");
}

/// Removes the provider from a cluster without machines, and ends the pairing.
fn remove_provider(world: &World, side: &Side) {
    let delete = ["delete", "--infrastructure", "tinbox", "--include-crd", "--include-namespace"];
    world.clusterctl(side, &delete);
    side.management.wait("the end of the provider", || {
        let left = "crd,clusterroles,clusterrolebindings,namespaces";
        let left = good(&side.management.kubectl, &["get", left, "-o", "name"], "");
        !left.lines().any(|it| it.contains("tinkerbell") || it.ends_with("/tinbox-system"))
    });
    // The rights of the box end too, because its ClusterRole is a part of the provider.
    side.management.wait("the box to miss the provider", || {
        let pairing = world.pairing(side.name);
        pairing.status.connected().is_some_and(|it| it.reason == "ProviderMissing")
    });
    world.hosts.tinbox(&["unpair", side.name], &side.management);
    assert_eq!(world.hosts.list("managementclusters").len(), 1);
}
