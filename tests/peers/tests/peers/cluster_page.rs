//! The page about Cluster API in a real browser: the commands are those of `tinbox capi init`, and
//! the page explains why a machine has no Hardware.

use std::fs;
use std::path::Path;
use std::process::Command;

use peers::{built, find, run};
use serde_json::{Value, json};

use crate::claim::{code, pictures, program, unclaimed};

/// Returns a NUC of a manufacturer that no machine requests.
fn hardware(number: u8) -> Value {
    json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": { "name": format!("nuc{number}"), "labels": { "manufacturer": "Acme" } },
        "spec": {
            "disks": [{ "device": "/dev/sda" }],
            "interfaces": [{ "dhcp": { "mac": format!("52:54:00:89:00:0{number}"),
                "ip": { "address": format!("192.168.1.3{number}") } } }],
        },
    })
}

/// Returns a machine of the box's own API that no Hardware fits, and a pairing without kubeconfig.
fn objects() -> Value {
    let infrastructure = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "TinkerbellMachine",
        "name": "edge-1",
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": [
        hardware(1),
        hardware(2),
        { "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "edge-1-userdata" },
          "stringData": { "value": "#cloud-config\n" } },
        { "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine",
          "metadata": { "name": "edge-1" },
          "spec": { "clusterName": "edge", "bootstrap": {}, "infrastructureRef": infrastructure } },
        { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "TinkerbellMachine",
          "metadata": { "name": "edge-1" },
          "spec": { "hardwareSelector": { "manufacturer": "Intel" },
                    "userDataSecret": { "name": "edge-1-userdata" } } },
        { "apiVersion": "tinbox.dev/v1alpha1", "kind": "ManagementCluster",
          "metadata": { "name": "fleet" },
          "spec": { "kubeconfigSecretRef": { "name": "fleet-kubeconfig" } } },
    ] })
}

#[test]
fn a_browser_shows_the_commands_and_why_a_machine_has_no_hardware() {
    find("chromium", "chromium").unwrap();
    let tinboxd = unclaimed();
    let pages = format!("https://{}:8443", tinboxd.address());
    let mut init = Command::new(program("tinbox"));
    init.arg("--kubeconfig").arg(tinboxd.kubeconfig()).args(["capi", "init", "--pages", &pages]);
    let printed = run(init, "").unwrap();
    assert!(printed.success, "{printed:?}");
    let file = |name: &str, text: &str| {
        let path = tinboxd.folder().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let commands = file("commands.sh", &printed.out);
    let machines = file("machines.json", &objects().to_string());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/cluster-page.mjs");
    let mut node = Command::new(find("node", "nodejs").unwrap());
    tinboxd.kubectl().unwrap().lend(&mut node);
    node.arg(script).arg(&pages).arg(code(&tinboxd)).arg(pictures());
    node.arg(built("browser", &[]).unwrap().remove(0)).arg(commands).arg(machines);
    let printed = run(node, "").unwrap();
    assert!(printed.success, "{printed:?}");
}
