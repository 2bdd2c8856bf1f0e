//! A real browser shows a real agent's installation of a machine, and a failed one: the pages
//! update by themselves.

use std::path::Path;
use std::process::Command;

use peers::{Printed, Tinboxd, built, find, run};
use serde_json::json;

use crate::claim::{code, pictures, program};

/// Name of the machine, and ID of its agent.
const MACHINE: &str = "nuc-01";

#[test]
fn a_browser_watches_an_install_and_a_failure() {
    find("chromium", "chromium").unwrap();
    let sections = "[web]\nlisten = \"ADDRESS:8443\"\n\n[agents]\npermissive = true\n";
    let tinboxd = Tinboxd::start_with(sections).unwrap();
    let hardware = json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": { "name": MACHINE },
        "spec": {
            "agentID": MACHINE,
            "interfaces": [{ "dhcp": {
                "mac": "52:54:00:77:00:01", "ip": { "address": "10.99.0.51" },
            } }],
        },
    });
    let kubectl = tinboxd.kubectl().unwrap();
    let applied = kubectl.run(&["apply", "-f", "-"], &hardware.to_string()).unwrap();
    assert!(applied.success, "{applied:?}");

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/watching.mjs");
    let mut node = Command::new(find("node", "nodejs").unwrap());
    kubectl.lend(&mut node);
    node.arg(script).arg(format!("https://{}:8443", tinboxd.address()));
    node.arg(code(&tinboxd)).arg(pictures()).arg(built("browser", &[]).unwrap().remove(0));
    node.arg(MACHINE).arg(tinboxd.folder().join("disk.raw"));
    // The agent ends together with this test.
    node.args(["setpriv", "--pdeathsig", "KILL"]).arg(program("tinbox-agent"));
    node.args(["--grpc", &format!("{}:42113", tinboxd.address()), "--id", MACHINE]);
    node.arg("--allow-files");
    let printed: Printed = run(node, "").unwrap();
    assert!(printed.success, "{printed:?}");
}
