//! A box is paired with a management cluster, whose API server is the real one.

mod connection;
mod devices;
mod page;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use api::management_cluster::ManagementCluster;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capi::Repository;
use jiff::{SignedDuration, Timestamp};
use peers::{Cluster, ClusterConfig, Kubectl, Printed, Tinboxd, run};
use serde_json::json;
use stdx::testing::until;

use crate::claim::program;

/// Definition of a kind of Cluster API, with any fields.
const CORE: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: NAMES.cluster.x-k8s.io}
spec:
  group: cluster.x-k8s.io
  scope: Namespaced
  names: {kind: KIND, plural: NAMES, singular: ONE, listKind: KINDList}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
";

fn good(kubectl: &Kubectl, arguments: &[&str], input: &str) -> String {
    let printed = kubectl.run(arguments, input).unwrap();
    assert!(printed.success, "{arguments:?}: {printed:?}");
    printed.out
}

/// Installs Cluster API's kinds and the provider, as `clusterctl init` does.
fn install(kubectl: &Kubectl) {
    let kinds = [("Cluster", "cluster"), ("Machine", "machine")].map(|(kind, one)| {
        let plural = format!("{one}s");
        CORE.replace("NAMES", &plural).replace("KIND", kind).replace("ONE", one)
    });
    let repository = Repository::new("0.1.0");
    let all = format!("{}{}", kinds.concat(), repository.components());
    good(kubectl, &["apply", "-f", "-"], &all);
    let wait = ["wait", "crds", "--all", "--for=condition=Established", "--timeout=120s"];
    good(kubectl, &wait, "");
}

/// The administrator's kubeconfig with embedded files, as `kubectl config view --flatten` prints.
fn administrator(cluster: &Cluster) -> String {
    let file = |name: &str| STANDARD.encode(fs::read(cluster.folder().join(name)).unwrap());
    let document = json!({
        "current-context": "other",
        "clusters": [{ "name": "m", "cluster": {
            "server": cluster.url(), "certificate-authority-data": file("ca.crt"),
        } }],
        "users": [{ "name": "u", "user": {
            "client-certificate-data": file("admin.crt"), "client-key-data": file("admin.key"),
        } }],
        "contexts": [{ "name": "admin", "context": { "cluster": "m", "user": "u" } }],
    });
    document.to_string()
}

/// A box, a management cluster, and a workstation with the kubeconfigs of both.
struct Site {
    tinboxd: Tinboxd,
    cluster: Cluster,
    kubectl: Kubectl,
    administrator: PathBuf,
}

impl Site {
    fn new() -> Self {
        Self::of(Tinboxd::start().unwrap())
    }

    fn of(tinboxd: Tinboxd) -> Self {
        let cluster = Cluster::start(&ClusterConfig::default()).unwrap();
        let kubectl = cluster.kubectl().unwrap();
        let file = cluster.folder().join("flat.kubeconfig");
        fs::write(&file, administrator(&cluster)).unwrap();
        Self { tinboxd, cluster, kubectl, administrator: file }
    }

    fn tinbox(&self, arguments: &[&str]) -> Printed {
        let mut command = Command::new(program("tinbox"));
        command.env_clear().arg("--kubeconfig").arg(self.tinboxd.kubeconfig());
        command.arg("capi").args(arguments);
        run(command, "").unwrap()
    }

    /// Runs a command with the rights of the administrator.
    fn paired(&self, arguments: &[&str]) -> Printed {
        let file = self.administrator.display().to_string();
        let rights = ["--management-kubeconfig", &file, "--context", "admin"];
        self.tinbox(&[arguments, &rights].concat())
    }

    /// Returns the ManagementCluster as the box stores it.
    fn stored(&self, name: &str) -> ManagementCluster {
        let get = ["get", "managementclusters", name, "-o", "json"];
        let text = good(&self.tinboxd.kubectl().unwrap(), &get, "");
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the names of all objects that pairing created in the management cluster.
    fn traces(&self) -> String {
        let own = "serviceaccounts,roles.rbac.authorization.k8s.io,rolebindings";
        let names = ["-o", "name"];
        let own = good(&self.kubectl, &[&["get", own, "-A"][..], &names].concat(), "");
        let wide = good(&self.kubectl, &[&["get", "clusterrolebindings"][..], &names].concat(), "");
        let lines = own.lines().chain(wide.lines());
        let found: Vec<&str> = lines
            .filter(|line| line.contains("/tinbox-") && !line.contains("/tinbox-system"))
            .collect();
        found.join(" ")
    }
}

#[test]
fn a_box_is_paired_and_unpaired_by_the_command_line() {
    let site = Site::new();
    // Before the provider is installed: the way out is printed and stored.
    let printed = site.paired(&["pair", "fleet"]);
    assert!(printed.success && printed.err.contains("not connected yet"), "{printed:?}");
    assert!(printed.err.contains("clusterctl init"), "{printed:?}");
    let connected = |reason: &str| {
        let stored = site.stored("fleet");
        stored.status.connected().is_some_and(|condition| condition.reason == reason)
    };
    assert!(connected("ClusterAPIMissing"), "{:?}", site.stored("fleet").status);
    install(&site.kubectl);
    until("the connection", || connected("Connected"));

    let status = site.stored("fleet").status;
    assert_eq!(status.server.as_deref(), Some(site.cluster.url()));
    assert!(status.version.unwrap().starts_with("v1."));
    assert_eq!(status.contract, Some(api::infrastructure::Contract::V1beta1));
    assert!(status.last_contact.is_some());
    assert!(status.cluster_uid.is_some());
    assert!(status.credential_expires.unwrap() > Timestamp::now() + SignedDuration::from_hours(24));
    let skew = status.conditions.iter().find(|it| it.kind == "ProviderVersionSkew").unwrap();
    assert_eq!((skew.status.as_str(), skew.reason.as_str()), ("False", "SameFields"));
    let table = good(&site.tinboxd.kubectl().unwrap(), &["get", "managementclusters"], "");
    assert!(table.contains("CONNECTED") && table.contains("LAST CONTACT"), "{table}");

    // The identity may renew itself, and has no right beyond those of the provider.
    let account = site.traces();
    let account = account.split(' ').find(|it| it.starts_with("serviceaccount/")).unwrap();
    let account = account.trim_start_matches("serviceaccount/");
    let user = format!("--as=system:serviceaccount:tinbox-pairing:{account}");
    let can = |verb: &str, what: &str| {
        let ask = ["auth", "can-i", verb, what, "-n", "tinbox-pairing", &user];
        site.kubectl.run(&ask, "").unwrap().out.trim() == "yes"
    };
    let own = format!("serviceaccounts/{account}");
    let token = |of: &str| {
        let ask = ["auth", "can-i", "create", of, "--subresource=token", "-n", "tinbox-pairing"];
        site.kubectl.run(&[&ask[..], &[&user]].concat(), "").unwrap().out.trim() == "yes"
    };
    assert!(token(&own) && !token("serviceaccounts/default") && !token("serviceaccounts"));
    assert!(can("get", "secrets") && !can("list", "secrets") && !can("create", "pods"));
    assert!(can("watch", "tinkerbellmachines.infrastructure.cluster.x-k8s.io"));

    // Again: the same identity, another token.
    let before = site.traces();
    let again = site.paired(&["pair", "fleet"]);
    assert!(again.success && again.err.contains("the box is connected"), "{again:?}");
    assert!(!format!("{again:?}").contains("eyJ"), "a token is printed: {again:?}");
    assert_eq!(site.traces(), before);

    // Another user with rights in the namespace of the identities.
    let bind = ["create", "rolebinding", "guest", "--clusterrole=edit", "--user=jane"];
    good(&site.kubectl, &[&bind[..], &["-n", "tinbox-pairing"]].concat(), "");
    let refused = site.paired(&["pair", "second"]);
    assert!(!refused.success && refused.err.contains("RoleBinding guest"), "{refused:?}");
    good(&site.kubectl, &["delete", "rolebinding", "guest", "-n", "tinbox-pairing"], "");

    let printed = site.paired(&["unpair", "fleet"]);
    assert!(printed.success, "{printed:?}");
    assert_eq!(site.traces(), "");
    let kubectl = site.tinboxd.kubectl().unwrap();
    let left = good(&kubectl, &["get", "managementclusters,secrets", "-o", "name"], "");
    assert!(!left.contains("fleet"), "{left}");
}

#[test]
fn a_box_is_paired_by_a_credential_of_its_owner_or_for_one_namespace() {
    let site = Site::new();
    install(&site.kubectl);
    let scoped = site.paired(&["pair", "scoped", "--management-namespace", "default"]);
    assert!(scoped.success && scoped.err.contains("the box is connected"), "{scoped:?}");
    let traces = site.traces();
    assert!(!traces.contains("clusterrolebinding"), "{traces}");
    // Without the administrator's kubeconfig, the command that deletes the rest is printed.
    let printed = site.tinbox(&["unpair", "scoped"]);
    assert!(printed.success, "{printed:?}");
    let delete = printed.out.lines().last().unwrap();
    for command in delete.split(" && ") {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        good(&site.kubectl, &words, "");
    }
    assert_eq!(site.traces(), "");

    let text = administrator(&site.cluster).replace("other", "admin");
    fs::write(&site.administrator, &text).unwrap();
    let file = site.administrator.display().to_string();
    let pasted = site.tinbox(&["pair", "pasted", "--credential", &file]);
    assert!(pasted.success && pasted.err.contains("the box is connected"), "{pasted:?}");
    assert_eq!(
        (site.traces().as_str(), site.stored("pasted").status.credential_expires),
        ("", None)
    );
    fs::write(&site.administrator, text.replace("client-key-data", "client-key")).unwrap();
    let files = site.tinbox(&["pair", "files", "--credential", &file]);
    assert!(!files.success && files.err.contains("--flatten"), "{files:?}");
    assert!(site.tinbox(&["unpair", "pasted"]).success);
}
