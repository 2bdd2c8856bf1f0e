//! A backup of a paired box is restored on a second device: only one of the two serves the
//! management cluster, until a person orders the other to take over.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use api::management_cluster::ManagementCluster;
use peers::{Kubectl, Tinboxd};
use stdx::testing::until;

use super::{Site, good, install};
use crate::backup::{self, WORDS, moved, with};
use crate::claim::{claim, code, pin, program, unclaimed};

/// Second device of the box.
struct Second {
    tinboxd: Tinboxd,
    kubeconfig: PathBuf,
    kubectl: Kubectl,
}

impl Second {
    /// Restores a new backup of `first` on a device that has no owner yet.
    fn of(first: &Tinboxd) -> Self {
        let owners = first.folder().join("owner.kubeconfig");
        backup::good(claim(first, &owners, &pin(first), &code(first)));
        backup::good(backup::tinbox(first, &owners, &["backup", "create", "-o", "box.boxbak"]));
        let tinboxd = unclaimed();
        let (codes, words) = (tinboxd.folder().join("code"), tinboxd.folder().join("words"));
        fs::write(&codes, code(&tinboxd)).unwrap();
        fs::write(&words, WORDS).unwrap();
        let mut restore = Command::new(program("tinbox"));
        restore.args(["backup", "restore"]).arg(first.folder().join("box.boxbak"));
        restore.args(["--to", &format!("{}:8443", tinboxd.address()), "--pin", &pin(&tinboxd)]);
        restore.arg("--code-file").arg(codes).arg("--passphrase-file").arg(words);
        backup::good(restore.stdin(Stdio::null()).output().unwrap());
        let kubeconfig = moved(first, &tinboxd);
        let kubectl = with(&kubeconfig, &tinboxd);
        until("the second device to be the box", || kubectl.is_ready());
        Self { tinboxd, kubeconfig, kubectl }
    }

    fn capi(&self, arguments: &[&str]) -> Output {
        let mut tinbox = Command::new(program("tinbox"));
        tinbox.arg("--kubeconfig").arg(&self.kubeconfig).arg("capi").args(arguments);
        tinbox.current_dir(self.tinboxd.folder()).stdin(Stdio::null()).output().unwrap()
    }
}

/// Returns status and reason of the condition Active, and the other device that is active.
fn active(kubectl: &Kubectl) -> (String, String, Option<String>) {
    let get = ["get", "managementclusters", "fleet", "-o", "json"];
    let printed = kubectl.run(&get, "").unwrap();
    let cluster: ManagementCluster = serde_json::from_str(&printed.out).unwrap_or_default();
    let active = cluster.status.active().cloned().unwrap_or_default();
    (active.status, active.reason, cluster.status.active_device)
}

#[test]
fn a_second_device_with_a_backup_serves_only_by_an_order() {
    let mut site = Site::of(unclaimed());
    install(&site.kubectl);
    let paired = site.paired(&["pair", "fleet"]);
    assert!(paired.success, "{paired:?}");
    let first = site.tinboxd.kubectl().unwrap();
    until("the first device", || active(&first).1 == "LeaseHeld");
    let lease = |path: &str| {
        let path = format!("jsonpath={{.items[*].{path}}}");
        good(&site.kubectl, &["get", "leases", "-n", "tinbox-pairing", "-o", &path], "")
    };
    let holder = lease("spec.holderIdentity");

    let second = Second::of(&site.tinboxd);
    let waits = |kubectl: &Kubectl, other: &str| {
        active(kubectl)
            == ("False".to_owned(), "HeldByOtherDevice".to_owned(), Some(other.to_owned()))
    };
    until("the second device to wait", || waits(&second.kubectl, &holder));
    assert_eq!(active(&first).0, "True");
    assert_eq!(lease("spec.holderIdentity"), holder);

    // A power cut. The Lease ends after a second, so that the test does not wait a minute.
    site.tinboxd.kill();
    let name = lease("metadata.name");
    let patch = r#"{"spec":{"leaseDurationSeconds":1}}"#;
    let patch = ["patch", "lease", &name, "-n", "tinbox-pairing", "--type=merge", "-p", patch];
    good(&site.kubectl, &patch, "");
    let renewed = lease("spec.renewTime");
    until("the second device to see that the first is silent", || {
        lease("spec.renewTime") == renewed && waits(&second.kubectl, &holder)
    });
    let order = second.capi(&["take-over", "fleet"]);
    let shown = String::from_utf8_lossy(&order.stderr);
    assert!(order.status.success() && shown.contains("serves the management cluster"), "{order:?}");
    let now = lease("spec.holderIdentity");
    assert!(now != holder && lease("spec.leaseTransitions") == "1", "{now}");

    // The first device returns from its power cut and stays out.
    site.tinboxd.restart().unwrap();
    until("the first device to wait", || waits(&first, &now));
    assert_eq!(active(&second.kubectl).0, "True");

    // A person ends the connection of the second: the first serves the cluster again.
    let suspend = r#"{"spec":{"suspend":true}}"#;
    let suspend = ["patch", "managementcluster", "fleet", "--type=merge", "-p", suspend];
    good(&second.kubectl, &suspend, "");
    until("the first device to serve again", || active(&first).1 == "LeaseHeld");
    let unpaired = site.paired(&["unpair", "fleet"]);
    assert!(unpaired.success && lease("metadata.name").is_empty(), "{unpaired:?}");
}
