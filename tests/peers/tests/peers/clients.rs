//! Clients other than kubectl. Each runs against a real server first, to prove that the client
//! expects Kubernetes' behavior.

use std::path::{Path, PathBuf};
use std::process::Command;

use peers::{Cluster, ClusterConfig, Kubectl, Printed, Tinboxd, built, run};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Creates the kinds that the clients use, and waits until the server serves them.
pub fn define(kubectl: &Kubectl) {
    let file = folder().join("scripts/widgets.yaml").display().to_string();
    let created = kubectl.run(&["create", "--filename", &file], "").unwrap();
    assert!(created.success, "{created:?}");
    let wait = ["wait", "--for=condition=Established", "--timeout=120s", "--filename", &file];
    let waited = kubectl.run(&wait, "").unwrap();
    assert!(waited.success, "{waited:?}");
}

/// Runs `client` against a real server and then against the box.
fn with_both(client: impl Fn(&Kubectl, &Path)) {
    let mut cluster = Cluster::start(&ClusterConfig::default()).unwrap();
    define(&cluster.kubectl().unwrap());
    cluster.start_controllers().unwrap();
    client(&cluster.kubectl().unwrap(), &cluster.kubeconfig());
    drop(cluster);
    let tinboxd = Tinboxd::start().unwrap();
    define(&tinboxd.kubectl().unwrap());
    client(&tinboxd.kubectl().unwrap(), &tinboxd.kubeconfig());
}

#[test]
fn python_programs_get_what_they_expect() {
    let python = built("python", &[]).unwrap();
    let python = &python[0];
    with_both(|kubectl, kubeconfig| {
        let mut command = Command::new(python);
        kubectl.lend(&mut command);
        command.arg(folder().join("python/client.py")).arg(kubeconfig).arg("python");
        let said = run(command, "").unwrap();
        assert!(said.success, "{}{}", said.out, said.err);
    });
}

#[test]
fn helm_installs_upgrades_and_removes_a_chart() {
    let program = &built("helm", &[]).unwrap()[0];
    with_both(|kubectl, _| {
        let helm = |arguments: &[&str]| -> Printed {
            let mut command = Command::new(program);
            kubectl.lend(&mut command);
            command.args(arguments).current_dir(folder().join("helm"));
            run(command, "").unwrap()
        };
        let good = |arguments: &[&str]| -> String {
            let said = helm(arguments);
            assert!(said.success, "helm {arguments:?}: {}{}", said.out, said.err);
            said.out
        };
        let get = |arguments: &[&str]| kubectl.run(arguments, "").unwrap();
        assert!(good(&["template", "one", "chart"]).contains("name: one-left"));
        let install = ["install", "one", "chart", "--namespace", "charts", "--create-namespace"];
        assert!(good(&install).contains("STATUS: deployed"));
        assert!(!helm(&install).success, "a name is given once");
        let color = ["get", "widget", "one-left", "-n", "charts", "-o", "jsonpath={.spec.color}"];
        assert_eq!(get(&color).out, "red");
        let seen = ["get", "cm", "one", "-n", "charts", "-o", "jsonpath={.data}"];
        assert_eq!(get(&seen).out, r#"{"kubernetes":"1","widgets":"true"}"#);
        let release = ["get", "secret", "sh.helm.release.v1.one.v1", "-n", "charts", "-o"];
        let kind = get(&[&release[..], &["jsonpath={.type} {.metadata.labels.status}"]].concat());
        assert_eq!(kind.out, "helm.sh/release.v1 deployed");
        good(&["upgrade", "one", "chart", "-n", "charts", "--set", "color=blue"]);
        assert_eq!(get(&color).out, "blue");
        let wrong = helm(&["upgrade", "one", "chart", "-n", "charts", "--set", "color=pink"]);
        assert!(!wrong.success && wrong.err.contains("spec.color"), "{wrong:?}");
        good(&["rollback", "one", "1", "-n", "charts"]);
        assert_eq!(get(&color).out, "red");
        assert!(good(&["list", "-n", "charts", "--short"]).contains("one"));
        assert!(good(&["get", "manifest", "one", "-n", "charts"]).contains("kind: Widget"));
        good(&["uninstall", "one", "-n", "charts", "--wait"]);
        assert!(!get(&color).success);
        assert_eq!(good(&["list", "-n", "charts", "--short", "--all"]), "");
    });
}
