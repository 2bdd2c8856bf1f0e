//! The manifests of the founding guide on the box's own API install a real machine.

use std::fs;
use std::time::Duration;

use peers::built;
use scenarios::{Lab, LabConfig, NucConfig, RackConfig};
use serde_json::{Value, json};

use crate::watch::switched_on;

/// Timeout for boot, 1.5 GiB of image and Debian with cloud-init: all emulated, possibly in
/// parallel with another test.
const WHOLE: Duration = Duration::from_secs(1500);
/// Timeout for changes that need no boot of a machine.
const SOON: Duration = Duration::from_secs(240);
/// User data whose command shows on the serial line that cloud-init has read them.
const USER_DATA: &str = "#cloud-config\nruncmd:\n\
    - [sh, -c, \"echo GUIDE=$(hostname) >/dev/ttyS0\"]\n";

fn kubectl(lab: &Lab, arguments: &[&str], input: &str) -> String {
    let program = built("kubectl", &["1.35"]).unwrap().remove(0);
    let mut command = lab.rack.box_command(&program);
    command.arg("--kubeconfig").arg(lab.kubeconfig()).args(arguments);
    let printed = peers::run(command, input).unwrap();
    assert!(printed.success, "{arguments:?}: {printed:?}");
    printed.out
}

fn get(lab: &Lab, resource: &str, name: &str) -> Value {
    let text = kubectl(lab, &["get", resource, name, "--ignore-not-found", "-o", "json"], "");
    serde_json::from_str(&text).unwrap_or_default()
}

/// Waits until `test` is true of an object.
fn wait(lab: &Lab, (resource, name): (&str, &str), within: Duration, test: fn(&Value) -> bool) {
    let mut last = Value::Null;
    let what = format!("{resource} {name} to be as expected");
    let waited = qemu::poll(&what, within, || {
        last = get(lab, resource, name);
        test(&last).then_some(())
    });
    waited.unwrap_or_else(|error| panic!("{error}\n{last:#}"));
}

fn is_ready(object: &Value) -> bool {
    object["status"]["ready"] == true
}

#[test]
fn the_guide_installs_a_machine_and_its_deletion_frees_the_machine() {
    let mut config = LabConfig::new(RackConfig::new("guide-debian").nuc(NucConfig::uefi()));
    config.images = true;
    let lab = Lab::start(config).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    kubectl(&lab, &["label", "hardware", "nuc1", "manufacturer=Intel", "plan=NUC"], "");
    let image = lab.image("debian.raw.zst").unwrap();
    let objects = json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "nuc-control-plane-userdata" },
            "stringData": { "value": USER_DATA } },
        { "apiVersion": "tinbox.dev/v1alpha1", "kind": "OSImage",
            "metadata": { "name": "ubuntu-20.04" },
            "spec": { "url": image.url, "checksum": { "sha256": image.sha256 },
                "os": { "distro": "debian", "version": "12" } } },
    ] });
    kubectl(&lab, &["apply", "-f", "-"], &objects.to_string());
    assert!(!lab.rack.nuc(1).is_on(), "the machine begins switched off");
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/founding-guide.yaml");
    kubectl(&lab, &["apply", "-f", "-"], &fs::read_to_string(guide).unwrap());
    wait(&lab, ("tinkerbellclusters", "my-nuc-cluster-infra"), SOON, is_ready);
    let machine = ("tinkerbellmachines", "nuc-control-plane-1");
    wait(&lab, machine, WHOLE, is_ready);
    lab.rack.nuc(1).serial().wait_for("GUIDE=nuc1", WHOLE).unwrap();
    assert_eq!(switched_on(&lab), 1, "the machine was switched on once");
    kubectl(&lab, &["delete", machine.0, machine.1], "");
    assert!(!lab.rack.nuc(1).is_on(), "the deletion switched the machine off");
    let host = get(&lab, "hardware", "nuc1");
    assert_eq!(host["spec"].get("userData"), None, "{host:#}");
    let owner = &host["metadata"]["labels"]["v1alpha1.tinkerbell.org/ownerName"];
    assert!(owner.is_null(), "{host:#}");
    lab.rack.succeed();
}
