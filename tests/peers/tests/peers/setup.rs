//! A fresh box is set up in a real browser, from its claim to its restart (FB-5).

use std::path::Path;
use std::process::Command;

use peers::{Printed, built, find, run};

use crate::claim::{pictures, program};

#[test]
fn a_browser_sets_up_a_fresh_box() {
    find("chromium", "chromium").unwrap();
    let folder = tempfile::TempDir::with_prefix("setup-").unwrap();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser");
    let mut command = Command::new(find("unshare", "util-linux").unwrap());
    // Namespaces keep the box's changes of network, host name and process 1 away from the host.
    command.args(["--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]);
    command.arg("--mount-proc").arg("sh").arg(scripts.join("setup.sh"));
    command.arg(program("tinboxd")).arg(folder.path()).arg(find("node", "nodejs").unwrap());
    command.arg(scripts.join("setup.mjs")).arg(pictures());
    command.arg(built("browser", &[]).unwrap().remove(0));
    let printed: Printed = run(command, "").unwrap();
    assert!(printed.success, "{printed:?}");
    let want = "restart asked: yes\n\
        [[network]]\ninterface = \"eth1\"\naddress = \"10.99.0.1/24\"\nmode = \"reserved\"\n\n\
        [time]\nzone = \"Europe/Berlin\"\n\n\
        [update]\nhours = \"02:00-05:00\"\nrestart = \"ask\"\n\
        the rack has its address\n";
    assert_eq!(printed.out, want);
}
