//! The flavor `talos` of the cluster template: clusterctl generates it, the definitions of Talos'
//! providers accept it, and Talos accepts the machine configuration with its patches. No test boots
//! an image of Talos.

use std::fs;
use std::path::Path;
use std::process::Command;

use peers::clusterctl::{NAME, SECTIONS, Workstation, program as clusterctl};
use peers::{Tinboxd, built, printed, run};
use serde_json::Value;

use crate::cluster_moves::world::{Side, VERSION, World};
use crate::cluster_nodes::management::good;

/// Versions of Talos for which bootstrap provider v0.6 generates configuration, from the older ones
/// to the first with several documents.
const TALOS: [&str; 3] = ["v1.9", "v1.11", "v1.12"];
const GENERATE: [&str; 9] = [
    "generate",
    "cluster",
    "demo",
    "--flavor",
    "talos",
    "--kubernetes-version",
    "v1.33.0",
    "--worker-machine-count",
    "2",
];
/// Definitions of the kinds in the template, and the label of their contract, which Cluster API
/// reads. The providers add it to the files of their modules (config/crd/kustomization.yaml).
const DEFINITIONS: [&str; 2] = [
    "taloscontrolplanes.controlplane.cluster.x-k8s.io",
    "talosconfigtemplates.bootstrap.cluster.x-k8s.io",
];
const CONTRACT: &str = "cluster.x-k8s.io/v1beta1=v1alpha3";
/// Variables without a default, except `CONTROL_PLANE_VIP`, which each workstation has.
const VARIABLES: [&str; 2] = ["OS_IMAGE=talos", "TALOS_VERSION=v1.11"];

/// Returns the cluster that clusterctl generates from `config`, with all of `variables` set.
fn generate(
    workstation: &Workstation,
    config: &str,
    variables: &[&str],
    more: &[&str],
    kubeconfig: Option<&Path>,
) -> peers::Printed {
    let program = clusterctl(VERSION).unwrap().display().to_string();
    let command = [variables, &[&program], &GENERATE, more, &["--config", config]].concat();
    workstation.run(Path::new("/usr/bin/env"), &command, kubeconfig).unwrap()
}

#[test]
fn talos_accepts_the_configuration_of_the_flavor() {
    let tinboxd = Tinboxd::start_named(NAME, SECTIONS).unwrap();
    let workstation = Workstation::of(&tinboxd).unwrap();
    let infrastructure = ["--infrastructure", "tinbox:v0.1.0", "--target-namespace", "default"];
    let generated = |variables: &[&str], more: &[&str]| {
        let more = [&infrastructure, more].concat();
        generate(&workstation, &workstation.url(), variables, &more, None)
    };
    let listed = generated(&[], &["--list-variables"]).out;
    for variable in ["CONTROL_PLANE_VIP", "OS_IMAGE", "TALOS_VERSION"] {
        assert!(listed.contains(variable), "{listed}");
    }
    let missing = generated(&[], &[]);
    assert!(!missing.success && missing.err.contains("OS_IMAGE, TALOS_VERSION"), "{missing:?}");
    let cluster = generated(&VARIABLES, &[]).out;
    golden::check("clusterctl-talos.yaml", &cluster);
    for (kind, object, path) in [
        ("controlplane", "TalosControlPlane", "/spec/controlPlaneConfig/controlplane"),
        ("worker", "TalosConfigTemplate", "/spec/template/spec"),
    ] {
        let patches = patches(&cluster, object, path).to_string();
        for version in TALOS {
            let mut talos = Command::new(&built("talos-config", &[]).unwrap()[0]);
            talos.args([version, kind]);
            let printed = run(talos, &patches).unwrap();
            assert!(printed.success, "{version} {kind}: {printed:?}");
            let text = printed.out;
            // The box detects the format by this line.
            assert!(text.starts_with("version: v1alpha1\n"), "{version} {kind}: {text}");
            assert!(text.contains("provider-id: PROVIDER_ID\n"), "{version} {kind}: {text}");
            let has_address = text.contains("ip: 10.77.0.9\n");
            assert_eq!(has_address, kind == "controlplane", "{version} {kind}: {text}");
        }
    }
}

/// Returns the strategic patches of the object of `kind` at `path`.
fn patches(cluster: &str, kind: &str, path: &str) -> Value {
    let documents = cluster.split("\n---\n");
    let mut objects = documents.map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
    let object = objects.find(|object| object["kind"] == kind).unwrap();
    object.pointer(path).unwrap()["strategicPatches"].clone()
}

/// Checks the output of the flavor by a dry run, which refuses unknown fields.
pub fn dry_run(world: &World, side: &Side) {
    let kubectl = &side.management.kubectl;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("talos-providers/definitions.sh");
    for file in printed(&script, &[]).unwrap() {
        good(kubectl, &["apply", "-f", "-"], &fs::read_to_string(file).unwrap());
    }
    for name in DEFINITIONS {
        good(kubectl, &["label", "crd", name, CONTRACT], "");
        good(kubectl, &["wait", "crd", name, "--for=condition=Established"], "");
    }
    let kubeconfig = side.management.kubeconfig();
    let cluster = generate(&world.workstation, &side.config, &VARIABLES, &[], Some(&kubeconfig));
    assert!(cluster.success, "{cluster:?}");
    let run = ["apply", "--dry-run=server", "--validate=strict", "-f", "-"];
    let printed = good(kubectl, &run, &cluster.out);
    let objects = cluster.out.matches("\nkind: ").count();
    assert_eq!(printed.matches("created (server dry run)").count(), objects, "{printed}");
}
