//! Stock clusterctl with a cluster on machines of a box: the cluster is described, moved to another
//! management cluster and back, and deleted; the provider is upgraded and removed. Only the
//! installation, which an outage of the management cluster does not stop, and the deletion have an
//! effect on the machines.
//!
//! Versions 1.12 to 1.14 run with one Cluster API. Version 1.8 refuses it, because it knows only
//! contract v1beta1, and runs with Cluster API 1.8. All steps of a test share one environment: its
//! programs take half a minute to start.

pub mod world;

use std::collections::BTreeSet;

use peers::cluster_api::Series;
use peers::poll;
use serde_json::{Value, json};
use stdx::testing::PATIENCE;
use world::{Side, VERSION, World};

use crate::cluster_nodes::management::{condition, good, is_available};
use crate::cluster_nodes::manifest::{self, CLUSTER, CONTROL_PLANE, WORKERS};
use crate::cluster_nodes::site::endpoint;
use crate::cluster_nodes::{BEFORE, delete, names};
use crate::clusterctl::FLAVORS;
use crate::clusterctl::transcript::Transcript;
use crate::talos;

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
    walk(Series::V1_13, &["1.12", "1.13", VERSION]);
}

#[test]
fn the_oldest_clusterctl_moves_a_cluster_of_its_own_series() {
    walk(Series::V1_8, &["1.8"]);
}

/// Runs all steps, the repeatable ones with each version of clusterctl.
fn walk(series: Series, versions: &[&'static str]) {
    let mut world = World::start(series, versions[0]);
    let (mut first, second) = (world.add_side("first"), world.add_side("second"));
    let mut transcripts: Vec<Transcript> = versions
        .iter()
        .map(|version| {
            world.version = version;
            generate(&world, &first)
        })
        .collect();
    if series == Series::V1_13 {
        talos::dry_run(&world, &first);
    }
    world.add_machine("a1", CONTROL_PLANE);
    world.add_machine("a2", WORKERS);
    create(&world, &mut first);
    let before = machines(&world);
    if series == Series::V1_13 {
        check_oldest(&mut world, &first);
    }
    // All versions describe one state: a move changes the order of the conditions.
    for (version, transcript) in versions.iter().zip(&mut transcripts) {
        world.version = version;
        run(&world, &first, transcript, &["describe", "cluster", CLUSTER]);
    }
    for (version, transcript) in versions.iter().zip(&mut transcripts) {
        world.version = version;
        for (from, to) in [(&first, &second), (&second, &first)] {
            move_cluster(&world, from, to, transcript);
            assert_eq!(machines(&world), before, "{version}");
        }
    }
    for (at, (version, transcript)) in versions.iter().zip(&mut transcripts).enumerate() {
        world.version = version;
        upgrade(&world, &first, &format!("v0.1.{}", at + 1), transcript);
        assert_eq!(machines(&world), before, "{version}");
    }
    remove_provider(&world, &second);
    assert_eq!(machines(&world), before);
    delete(&world.hosts, &first.management, 1);
    assert_eq!((world.hosts.installations(), world.are_on()), (2, vec![false, false]));
    for (version, transcript) in versions.iter().zip(&transcripts) {
        transcript.check(&format!("clusterctl-{version}.txt"));
    }
}

/// Runs clusterctl, and records what it prints.
fn run(world: &World, side: &Side, transcript: &mut Transcript, arguments: &[&str]) -> String {
    let printed = world.run_clusterctl(side, &side.config, arguments);
    transcript.add(arguments, &printed);
    printed.out
}

/// Checks that version 1.8 generates clusters for a Cluster API of contract v1beta2, and refuses
/// all else without an effect.
fn check_oldest(world: &mut World, side: &Side) {
    world.version = "1.8";
    generate(world, side);
    let target = side.management.kubeconfig().display().to_string();
    for arguments in [
        &["describe", "cluster", CLUSTER][..],
        &["move", "--to-kubeconfig", &target],
        &["upgrade", "plan"],
        &["upgrade", "apply", "--infrastructure", "tinbox:v0.1.1"],
        &["init", "--infrastructure", "tinbox"],
    ] {
        let printed = world.run_clusterctl(side, &side.config, arguments);
        let why = "v1beta1";
        assert!(!printed.success && printed.err.contains(why), "{arguments:?}: {printed:?}");
    }
}

/// Checks the output of each flavor by a dry run. The API server calls Cluster API's webhooks.
fn generate(world: &World, side: &Side) -> Transcript {
    let mut transcript = Transcript::default();
    for flavor in FLAVORS {
        let flavor: &[&str] = if flavor.is_empty() { &[] } else { &["--flavor", flavor] };
        let generate = ["generate", "cluster", "demo", "--kubernetes-version", BEFORE];
        let generate = [&generate, flavor].concat();
        let listed = [&generate[..], &["--list-variables"]].concat();
        let variables = run(world, side, &mut transcript, &listed);
        let vip = "CONTROL_PLANE_VIP";
        assert_eq!(variables.contains(vip), flavor != ["--flavor", "workers-only"], "{variables}");
        let yaml = world.clusterctl(side, &generate);
        let apply = ["apply", "--dry-run=server", "-f", "-"];
        let printed = good(&side.management.kubectl, &apply, &yaml);
        let objects = yaml.matches("\nkind: ").count();
        assert_eq!(printed.matches("created (server dry run)").count(), objects, "{printed}");
    }
    transcript
}

/// Creates the cluster. The API of the management cluster is away while the box installs the first
/// machine.
fn create(world: &World, side: &mut Side) {
    let templates = [CONTROL_PLANE, WORKERS].map(|usage| world.hosts.template(usage, BEFORE));
    let control_plane = manifest::control_plane(1, BEFORE);
    let workers = manifest::workers(1, BEFORE);
    let all = templates.into_iter().chain(manifest::cluster(endpoint()));
    let all = all.chain([control_plane]).chain(workers);
    let all: Vec<Value> = match world.series {
        Series::V1_8 => all.map(manifest::v1beta1).collect(),
        Series::V1_13 => all.collect(),
    };
    side.management.apply(&all);
    let states = || -> Vec<Value> {
        world.hosts.list("workflows").iter().map(|it| it["status"]["state"].clone()).collect()
    };
    side.management.wait("the first installation to begin", || !states().is_empty());
    side.management.without_api(|| {
        let installed = || states() == [json!("SUCCESS")];
        poll("the end of the first installation", PATIENCE, installed).unwrap();
    });
    wait_running(world, side);
    assert_eq!((world.hosts.installations(), world.are_on()), (2, vec![true, true]));
    // IPMI: 1 is the command to switch on.
    let commands = world.power_commands();
    assert!(commands.as_array().unwrap().iter().all(|bmc| bmc["controls"] == json!([1])));
}

/// Waits until all objects of the cluster report a running cluster on its two machines.
pub fn wait_running(world: &World, side: &Side) {
    let management = &side.management;
    for usage in [CONTROL_PLANE, WORKERS] {
        management.wait_machines(usage, 1, BEFORE);
    }
    management.wait("the available cluster", || {
        let all = management.list("clusters,kcp,md");
        all.iter().all(is_available)
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

fn move_cluster(world: &World, from: &Side, to: &Side, transcript: &mut Transcript) {
    let target = to.management.kubeconfig().display().to_string();
    run(world, from, transcript, &["move", "--to-kubeconfig", &target]);
    for resource in MOVED {
        assert_eq!(names(&from.management.list(resource)), BTreeSet::new(), "{resource}");
    }
    wait_running(world, to);
}

/// Upgrades the provider to the version that the box's release has after an update of the box.
fn upgrade(world: &World, side: &Side, version: &str, transcript: &mut Transcript) {
    let config = world.write_release(side, version);
    let target = format!("tinbox:{version}");
    let apply = ["upgrade", "apply", "--infrastructure", &target];
    for arguments in [&["upgrade", "plan"][..], &apply] {
        let printed = world.run_clusterctl(side, &config, arguments);
        transcript.add(arguments, &printed);
    }
    let get = ["get", "providers.clusterctl.cluster.x-k8s.io", "-A"];
    let providers = good(&side.management.kubectl, &get, "");
    assert!(providers.contains(version), "{providers}");
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
