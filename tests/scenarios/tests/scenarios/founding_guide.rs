//! The manifests of the founding guide on the box's own API: they install the machine that the
//! guide describes, of two that have enrolled themselves, and adopt a machine that runs already.

mod order;

use std::time::Duration;

use peers::built;
use scenarios::{Action, Lab, LabConfig, Model, NucConfig, Origin, RackConfig, nuc_manifest};
use serde_json::{Value, json};

use crate::watch::{SMALL, install_directly};

/// Timeout for boot, 1.5 GiB of image and Debian with cloud-init: all emulated, possibly in
/// parallel with another test.
const WHOLE: Duration = Duration::from_secs(1500);
/// Timeout for changes that need no boot of a machine.
const SOON: Duration = Duration::from_secs(240);
/// Name of the guide's machine, and of another machine of the same kind.
const MACHINE: &str = "nuc-control-plane-1";
const SECOND: &str = "nuc-control-plane-2";
/// Annotation of a Hardware whose machine is installed.
const PROVISIONED: &str = "{v1alpha1.tinkerbell.org/provisioned: \"true\"}";
/// Manifests of the guide, as printed there.
const GUIDE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/founding-guide.yaml"));
/// Pool above the addresses of the BMCs; unknown machines enroll.
const POOL: &str = "mode = \"pool\"\npool = \"10.77.0.200-10.77.0.240\"\nenroll = true";
/// Number of a machine of the guide's manufacturer with another product name. The name of its
/// Hardware is the first in the order in which the box chooses among equal Hardware.
const OTHER: usize = 1;
/// Number of the machine that the guide describes.
const NUC: usize = 2;
/// User data whose command shows on the serial line that cloud-init has read them.
const USER_DATA: &str = "#cloud-config\nruncmd:\n\
    - [sh, -c, \"echo GUIDE=ready >/dev/ttyS0\"]\n";

fn rack() -> RackConfig {
    let other = Model { manufacturer: "Intel Corporation", product: "S2600WTT" };
    let nuc = Model { manufacturer: "Intel(R) Client Systems", product: "NUC8i5BEH" };
    RackConfig::new("guide-debian")
        .nuc(NucConfig { model: other, ..NucConfig::bios() })
        .nuc(NucConfig { model: nuc, ..NucConfig::uefi() })
}

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

/// Waits until `test` is true of an object, and returns the object.
fn wait(
    lab: &Lab,
    (resource, name): (&str, &str),
    within: Duration,
    test: impl Fn(&Value) -> bool,
) -> Value {
    let mut last = Value::Null;
    let what = format!("{resource} {name} to be as expected");
    let waited = qemu::poll(&what, within, || {
        last = get(lab, resource, name);
        test(&last).then_some(())
    });
    waited.unwrap_or_else(|error| panic!("{error}\n{last:#}"));
    last
}

fn is_ready(object: &Value) -> bool {
    object["status"]["ready"] == true
}

/// Returns reason and message of a condition.
fn condition(object: &Value, kind: &str) -> (String, String) {
    let all = object["status"]["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|it| it["type"] == kind));
    let text = |field: &str| found.and_then(|it| it[field].as_str()).unwrap_or("").to_owned();
    (text("reason"), text("message"))
}

/// Returns the name of the Hardware of a machine that has enrolled itself.
fn name_of(lab: &Lab, number: usize) -> String {
    format!("discovery-{}", lab.rack.nuc(number).mac().dashed())
}

/// Switches both machines on by hand, and waits until each has enrolled itself. The box cannot
/// detect a BMC: a person adds it to the Hardware.
fn enroll(lab: &Lab) {
    for nuc in lab.rack.nucs() {
        nuc.power_on().unwrap();
    }
    for number in [OTHER, NUC] {
        let hardware = ("hardware", &*name_of(lab, number));
        wait(lab, hardware, WHOLE, |object| object["spec"]["disks"][0]["device"] == "/dev/vda");
    }
    let manifest = nuc_manifest(lab.rack.nuc(NUC), true, false, "", "");
    let (of_bmc, _) = manifest.rsplit_once("---\n").unwrap();
    kubectl(lab, &["apply", "-f", "-"], of_bmc);
    let bmc = format!("bmc-nuc{NUC}");
    let bmc = json!({ "apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": bmc });
    let patch = json!({ "spec": { "bmcRef": bmc } }).to_string();
    kubectl(lab, &["patch", "hardware", &name_of(lab, NUC), "--type=merge", "-p", &patch], "");
}

/// Applies the Secret and the OSImage that the guide names, and the guide.
fn apply_guide(lab: &Lab) {
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
    kubectl(lab, &["apply", "-f", "-"], &objects.to_string());
    kubectl(lab, &["apply", "-f", "-"], GUIDE);
}

/// Checks that the machine of the guide has the NUC, and that a second one of the same kind gets no
/// machine, with the reasons.
fn assert_selected(lab: &Lab) {
    let (other, nuc) = (name_of(lab, OTHER), name_of(lab, NUC));
    let claimed = |object: &Value| condition(object, "HardwareClaimed").0 == "HardwareClaimed";
    let machine = wait(lab, ("tinkerbellmachines", MACHINE), SOON, claimed);
    let (_, message) = condition(&machine, "HardwareClaimed");
    assert_eq!(message, format!("default/{nuc} was chosen; 1 of 2 Hardware can be used"));
    let manifests: Vec<&str> = GUIDE.split("---\n").collect();
    let second = manifests[2..].join("---\n").replace(MACHINE, SECOND);
    kubectl(lab, &["apply", "-f", "-"], &second);
    let refused = |object: &Value| condition(object, "Ready").0 == "NoHardware";
    let machine = wait(lab, ("tinkerbellmachines", SECOND), SOON, refused);
    let (_, message) = condition(&machine, "Ready");
    let expected = format!(
        "0 of 2 Hardware can be used: 1 has another plan (S2600WTT), 1 is in use. \
         default/{other} has another plan (S2600WTT); \
         default/{nuc} is in use by the machine default/{MACHINE}"
    );
    assert_eq!(message, expected);
    kubectl(lab, &["delete", "machines,tinkerbellmachines", SECOND], "");
}

#[test]
fn the_guide_installs_a_machine_and_its_deletion_frees_the_machine() {
    let mut config = LabConfig::new(rack());
    (config.images, config.network) = (true, POOL.to_owned());
    let lab = Lab::start(config).unwrap();
    let nuc = lab.rack.nuc(NUC);
    enroll(&lab);
    apply_guide(&lab);
    wait(&lab, ("tinkerbellclusters", "my-nuc-cluster-infra"), SOON, is_ready);
    assert_selected(&lab);
    lab.rack.nuc(OTHER).power_off();
    wait(&lab, ("tinkerbellmachines", MACHINE), WHOLE, is_ready);
    nuc.serial().wait_for("GUIDE=ready", WHOLE).unwrap();
    order::check(&lab, &name_of(&lab, NUC));
    assert_eq!(lab.rack.nuc(OTHER).count(Origin::Bmc, Action::On), 0);
    kubectl(&lab, &["delete", "tinkerbellmachines", MACHINE], "");
    assert!(!nuc.is_on(), "the deletion switched the machine off");
    let host = get(&lab, "hardware", &name_of(&lab, NUC));
    assert_eq!(host["spec"].get("userData"), None, "{host:#}");
    let owner = &host["metadata"]["labels"]["v1alpha1.tinkerbell.org/ownerName"];
    assert!(owner.is_null(), "{host:#}");
    lab.rack.succeed();
}

/// A machine runs a system that another server has installed. A person writes its Hardware, with
/// the name in the guide's provider ID, and marks it as provisioned.
#[test]
fn the_guides_provider_id_adopts_a_running_machine() {
    let rack = RackConfig::new("guide-adopted").nuc(NucConfig::bios());
    let lab = Lab::start(LabConfig::new(rack)).unwrap();
    install_directly(&lab);
    let nuc = lab.rack.nuc(1);
    nuc.power_on().unwrap();
    nuc.serial().wait_for("TINY-BOOTED", SMALL).unwrap();
    let (pid, events) = (nuc.pid(), nuc.power_events());
    let manifest = nuc_manifest(nuc, false, true, "", "#cloud-config\n");
    let own = "kind: Hardware\nmetadata: {name: nuc1}";
    let named = own.replace("nuc1", &format!("{MACHINE}, annotations: {PROVISIONED}"));
    assert!(manifest.contains(own), "{manifest}");
    kubectl(&lab, &["apply", "-f", "-"], &manifest.replace(own, &named));
    let before = get(&lab, "hardware", MACHINE);
    kubectl(&lab, &["apply", "-f", "-"], GUIDE);
    let machine = wait(&lab, ("tinkerbellmachines", MACHINE), SOON, is_ready);
    assert_eq!(condition(&machine, "Ready").0, "Provisioned", "{machine:#}");
    assert_eq!(machine["spec"]["providerID"], format!("tinkerbell://{MACHINE}"));
    assert_eq!(machine["spec"]["hardwareName"], MACHINE);
    assert_eq!(machine["status"]["addresses"][0]["address"], "10.77.0.11");
    let host = get(&lab, "hardware", MACHINE);
    assert_eq!(host["metadata"]["labels"]["v1alpha1.tinkerbell.org/ownerName"], MACHINE);
    assert_eq!(host["spec"], before["spec"], "neither user data nor permission to netboot");
    let made = "workflows,templates,jobs.bmc.tinkerbell.org";
    assert_eq!(kubectl(&lab, &["get", made, "-A", "-o", "name"], ""), "");
    assert_eq!((nuc.pid(), nuc.power_events()), (pid, events), "the same boot");
    lab.rack.succeed();
}
