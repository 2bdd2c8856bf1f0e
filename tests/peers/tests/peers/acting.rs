//! A real browser does everything from the page: it installs a machine, retries, cancels, starts
//! over and dismisses, by mouse, by keyboard and without JavaScript, while a real agent does the
//! work. It writes templates, searches and chooses colors. Users with roles see and do what they
//! may. It switches a machine by its BMC.

use std::path::Path;
use std::process::Command;

use peers::{IpmiSim, Kubectl, Printed, Tinboxd, built, find, run};
use serde_json::{Value, json};

use crate::claim::{code, pictures, program};

/// MAC address of the machine, and ID of its agent.
const MAC: &str = "52:54:00:77:00:01";

#[test]
fn a_browser_installs_retries_cancels_and_dismisses() {
    find("chromium", "chromium").unwrap();
    let sections = "[web]\nlisten = \"ADDRESS:8443\"\n\n[agents]\npermissive = true\n";
    let tinboxd = Tinboxd::start_with(sections).unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    apply(&kubectl, &network());

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/acting.mjs");
    let mut node = Command::new(find("node", "nodejs").unwrap());
    kubectl.lend(&mut node);
    node.arg(script).arg(format!("https://{}:8443", tinboxd.address()));
    node.arg(code(&tinboxd)).arg(pictures()).arg(built("browser", &[]).unwrap().remove(0));
    node.arg(MAC).arg(tinboxd.folder().join("disk.raw"));
    // The agent ends together with this test.
    node.args(["setpriv", "--pdeathsig", "KILL"]).arg(program("tinbox-agent"));
    node.args(["--grpc", &format!("{}:42113", tinboxd.address()), "--id", MAC]);
    node.arg("--allow-files");
    let printed: Printed = run(node, "").unwrap();
    assert!(printed.success, "{printed:?}");
}

#[test]
fn a_browser_writes_templates_searches_and_chooses_colors() {
    find("chromium", "chromium").unwrap();
    let tinboxd = Tinboxd::start_with("[web]\nlisten = \"ADDRESS:8443\"\n").unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    apply(&kubectl, &network());
    apply(&kubectl, &hardware());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/writing.mjs");
    let mut node = Command::new(find("node", "nodejs").unwrap());
    node.arg(script).arg(format!("https://{}:8443", tinboxd.address()));
    node.arg(code(&tinboxd)).arg(pictures()).arg(built("browser", &[]).unwrap().remove(0));
    let printed: Printed = run(node, "").unwrap();
    assert!(printed.success, "{printed:?}");
}

#[test]
fn browsers_of_an_owner_an_operator_and_a_viewer_may_do_what_their_roles_say() {
    find("chromium", "chromium").unwrap();
    let tinboxd = Tinboxd::start_with("[web]\nlisten = \"ADDRESS:8443\"\n").unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    apply(&kubectl, &network());
    apply(&kubectl, &hardware());
    let key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGQx6ZpUKmCYlIWsL/0pqW9Ck7QZPYbR3XcqlN1ZSkvR jane";
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/users.mjs");
    let mut node = Command::new(find("node", "nodejs").unwrap());
    node.arg(script).arg(format!("https://{}:8443", tinboxd.address()));
    node.arg(code(&tinboxd)).arg(pictures()).arg(built("browser", &[]).unwrap().remove(0));
    node.arg(key);
    let printed: Printed = run(node, "").unwrap();
    assert!(printed.success, "{printed:?}");
}

#[test]
fn a_browser_switches_a_machine_and_reads_its_bmc() {
    find("chromium", "chromium").unwrap();
    let sim = IpmiSim::start().unwrap();
    let tinboxd = Tinboxd::start_with("[web]\nlisten = \"ADDRESS:8443\"\n").unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    apply(&kubectl, &network());
    let login = json!({ "username": IpmiSim::USERNAME, "password": IpmiSim::PASSWORD });
    let metadata = json!({ "name": "bmc-nuc-01", "namespace": "default" });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": login,
    });
    apply(&kubectl, &secret);
    let connection = json!({
        "host": sim.address(), "port": IpmiSim::PORT, "authSecretRef": metadata,
        "insecureTLS": false,
    });
    let machine = json!({
        "apiVersion": "bmc.tinkerbell.org/v1alpha1", "kind": "Machine", "metadata": metadata,
        "spec": { "connection": connection },
    });
    apply(&kubectl, &machine);
    let mut hardware = hardware();
    hardware["spec"]["bmcRef"] = json!({
        "apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc-nuc-01",
    });
    apply(&kubectl, &hardware);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/power.mjs");
    let mut node = Command::new(find("node", "nodejs").unwrap());
    node.arg(script).arg(format!("https://{}:8443", tinboxd.address()));
    node.arg(code(&tinboxd)).arg(pictures()).arg(built("browser", &[]).unwrap().remove(0));
    let printed: Printed = run(node, "").unwrap();
    assert!(printed.success, "{printed:?}");
    assert_eq!(sim.commands(), ["power 1", "power 0", "identify 60 0"]);
}

/// Returns a Hardware with a disk.
fn hardware() -> Value {
    let dhcp = json!({ "mac": MAC });
    json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": { "name": "nuc-01" },
        "spec": { "disks": [{ "device": "/dev/sda" }], "interfaces": [{ "dhcp": dhcp }] },
    })
}

/// Returns a network whose interface does not exist, so that the box answers no machine. Forms and
/// templates need a network.
fn network() -> Value {
    json!({
        "apiVersion": "tinbox.dev/v1alpha1",
        "kind": "Network",
        "metadata": { "name": "rack9" },
        "spec": { "interface": "rack9", "address": "10.99.0.1/24", "mode": "reserved" },
    })
}

fn apply(kubectl: &Kubectl, object: &Value) {
    let applied = kubectl.run(&["apply", "-f", "-"], &object.to_string()).unwrap();
    assert!(applied.success, "{applied:?}");
}
