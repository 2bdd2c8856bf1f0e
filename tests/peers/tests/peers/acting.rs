//! A real browser does everything from the page: it installs a machine, retries, cancels, starts
//! over and dismisses, by mouse, by keyboard and without JavaScript. A real agent does the work.

use std::path::Path;
use std::process::Command;

use peers::{Printed, Tinboxd, built, find, run};
use serde_json::json;

use crate::claim::{code, pictures, program};

/// MAC address of the machine, and ID of its agent.
const MAC: &str = "52:54:00:77:00:01";

#[test]
fn a_browser_installs_retries_cancels_and_dismisses() {
    find("chromium", "chromium").unwrap();
    let sections = "[web]\nlisten = \"ADDRESS:8443\"\n\n[agents]\npermissive = true\n";
    let tinboxd = Tinboxd::start_with(sections).unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    // The interface does not exist, so the box answers no machine. The form needs a network.
    let network = json!({
        "apiVersion": "tinbox.dev/v1alpha1",
        "kind": "Network",
        "metadata": { "name": "rack9" },
        "spec": { "interface": "rack9", "address": "10.99.0.1/24", "mode": "reserved" },
    });
    let applied = kubectl.run(&["apply", "-f", "-"], &network.to_string()).unwrap();
    assert!(applied.success, "{applied:?}");

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
