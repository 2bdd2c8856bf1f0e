//! Stock clusterctl, pointed at the box by one URL: the provider is installed into a management
//! cluster and removed again.

pub mod transcript;

use std::fs;
use std::path::Path;

use peers::cluster_api::Series;
use peers::clusterctl::{
    HOST, LocalProvider, NAME, SECTIONS, Workstation, cert_manager, program as clusterctl,
};
use peers::{Cluster, ClusterConfig, Kubectl, Tinboxd, built};
use transcript::Transcript;

use crate::claim::program;

/// Versions of clusterctl. The first knows only contract v1beta1, and compares escaped paths.
const VERSIONS: [&str; 4] = ["1.8", "1.12", "1.13", "1.14"];
/// Flavors of the cluster template; the default has the empty name.
pub const FLAVORS: [&str; 5] = ["", "box-endpoint", "kube-vip", "topology", "workers-only"];

#[test]
fn each_clusterctl_reads_the_release_of_the_box() {
    let tinboxd = Tinboxd::start_named(NAME, SECTIONS).unwrap();
    let workstation = Workstation::of(&tinboxd).unwrap();
    let config = workstation.url();
    for version in VERSIONS {
        let program = clusterctl(version).unwrap();
        let read = |arguments: &[&str]| {
            let arguments = [arguments, &["--config", &config]].concat();
            workstation.good(&program, &arguments, None).unwrap()
        };
        let listed = read(&["config", "repositories"]);
        assert!(listed.contains("tinbox") && listed.contains(HOST), "{version}: {listed}");
        let all = read(&["generate", "provider", "--infrastructure", "tinbox:v0.1.0"]);
        let kinds = all.matches("kind: CustomResourceDefinition").count();
        assert!(kinds == 6 && !all.contains("kind: Deployment"), "{version}: {all}");
        assert!(all.contains("name: tinbox-system"), "{version}: {all}");
        let cluster = [
            &["generate", "cluster", "demo", "--target-namespace", "default"][..],
            &["--infrastructure", "tinbox:v0.1.0"],
        ];
        let cluster = cluster.concat();
        let version_and_count = ["--kubernetes-version", "v1.31.0", "--worker-machine-count", "2"];
        for flavor in FLAVORS {
            let flavor: &[&str] = if flavor.is_empty() { &[] } else { &["--flavor", flavor] };
            let variables = read(&[&cluster[..], flavor, &["--list-variables"]].concat());
            assert!(variables.contains("WORKER_MACHINE_COUNT"), "{version}: {variables}");
            // Without a management cluster, the class of a topology is read from the box too.
            let generate = [&cluster[..], flavor, &version_and_count].concat();
            let yaml = read(&generate);
            assert!(yaml.contains("kind: TinkerbellMachineTemplate"), "{version}: {yaml}");
            assert!(!yaml.contains("${"), "{version}: {yaml}");
            // A name that YAML reads as a number stays text.
            let number = ["OS_IMAGE=2404", &program.display().to_string()];
            let number = [&number[..], &generate, &["--config", &config]].concat();
            let yaml = workstation.good(Path::new("/usr/bin/env"), &number, None).unwrap();
            assert!(yaml.contains(": \"2404\"\n"), "{version}: {yaml}");
        }
        let missing = [&cluster[..], &["--flavor", "none", "--config", &config]].concat();
        let printed = workstation.run(&program, &missing, None).unwrap();
        assert!(!printed.success && printed.err.contains("cluster-template-none"), "{printed:?}");
    }
}

#[test]
fn a_workstation_without_the_name_of_the_box_copies_the_release() {
    let tinboxd = Tinboxd::start_named(NAME, SECTIONS).unwrap();
    let workstation = Workstation::of(&tinboxd).unwrap();
    let pages = format!("https://{}:8443", tinboxd.address());
    let kubeconfig = tinboxd.kubeconfig().display().to_string();
    let init = ["--kubeconfig", &kubeconfig, "capi", "init", "--pages", &pages];
    let printed = workstation.run(&program("tinbox"), &init, None).unwrap();
    assert!(printed.success, "{printed:?}");
    let (copy, install) = printed.out.trim_end().rsplit_once('\n').unwrap();
    // Twice: a later version replaces the files.
    for _ in 0..2 {
        workstation.good(Path::new("/bin/sh"), &["-c", copy], None).unwrap();
    }
    let home = workstation.folder().display().to_string();
    let config = install.split_once("--config ").unwrap().1.trim_matches('"');
    let config = config.replace("$HOME", &home);
    for version in VERSIONS {
        let provider = ["generate", "provider", "--infrastructure", "tinbox", "--config", &config];
        let clusterctl = clusterctl(version).unwrap();
        let all = workstation.good(&clusterctl, &provider, None).unwrap();
        assert!(all.contains("kind: TinkerbellClusterTemplate"), "{version}: {all}");
    }
}

/// Writes Cluster API's own components to a local repository. Returns the configuration file with
/// the core and the providers `more`.
fn local_core(workstation: &Workstation, series: Series, more: &str) -> String {
    let components = built("cluster-api", &[&series.manifest("core")]).unwrap().remove(0);
    let components = fs::read_to_string(components).unwrap();
    let core = LocalProvider::of_manager(series, "core").unwrap();
    let core = core.write(&workstation.folder().join("core"), &components).unwrap();
    workstation.config("core", &[&core, more]).unwrap()
}

#[test]
fn a_management_cluster_gets_the_provider_and_gives_it_back() {
    let tinboxd = Tinboxd::start_named(NAME, SECTIONS).unwrap();
    let workstation = Workstation::of(&tinboxd).unwrap();
    let provider = workstation.provider().unwrap();
    let cluster =
        Cluster::start(&ClusterConfig { controllers: true, ..ClusterConfig::default() }).unwrap();
    let kubectl = cluster.kubectl().unwrap();
    assert!(kubectl.run(&["apply", "-f", "-"], &cert_manager()).unwrap().success);
    for version in VERSIONS {
        // Version 1.8 refuses a core with contract v1beta2.
        let series = if version == "1.8" { Series::V1_8 } else { Series::V1_13 };
        let config = local_core(&workstation, series, &provider);
        let (program, kubeconfig) = (clusterctl(version).unwrap(), cluster.kubeconfig());
        let mut transcript = Transcript::default();
        let mut run = |arguments: &[&str]| {
            let all = [arguments, &["--config", &config]].concat();
            let printed = workstation.run(&program, &all, Some(&kubeconfig)).unwrap();
            transcript.add(arguments, &printed);
        };
        run(&[
            "init",
            "--core=cluster-api",
            "--bootstrap=-",
            "--control-plane=-",
            "--infrastructure=tinbox",
        ]);
        check_installed(&kubectl);
        run(&["upgrade", "plan"]);
        run(&["delete", "--infrastructure=tinbox", "--include-crd", "--include-namespace"]);
        check_removed(&kubectl);
        run(&["delete", "--core=cluster-api", "--include-crd", "--include-namespace"]);
        let wait = ["wait", "namespace/capi-system", "--for=delete", "--timeout=120s"];
        assert!(kubectl.run(&wait, "").unwrap().success);
        transcript.check(&format!("clusterctl-init-{version}.txt"));
    }
}

fn get(kubectl: &Kubectl, what: &[&str]) -> String {
    let printed = kubectl.run(&[&["get"], what].concat(), "").unwrap();
    assert!(printed.success, "{printed:?}");
    printed.out
}

fn check_installed(kubectl: &Kubectl) {
    let providers = get(kubectl, &["providers.clusterctl.cluster.x-k8s.io", "-A"]);
    assert!(providers.contains("infrastructure-tinbox"), "{providers}");
    let wait = [
        "wait",
        "crd/tinkerbellmachines.infrastructure.cluster.x-k8s.io",
        "--for=condition=Established",
        "--timeout=60s",
    ];
    assert!(kubectl.run(&wait, "").unwrap().success);
    let all = |kinds: &str| {
        let label = "cluster.x-k8s.io/provider=infrastructure-tinbox";
        get(kubectl, &[kinds, "-A", "-l", label, "-o", "name"])
    };
    assert_eq!(all("crds").lines().count(), 6);
    let kinds = "deployments,pods,services,mutatingwebhookconfigurations,\
        validatingwebhookconfigurations,issuers,certificates";
    assert_eq!(all(kinds), "");
}

fn check_removed(kubectl: &Kubectl) {
    let wait = ["wait", "namespace/tinbox-system", "--for=delete", "--timeout=120s"];
    let gone = kubectl.run(&wait, "").unwrap();
    assert!(gone.success, "{gone:?}");
    let left = get(kubectl, &["crd,clusterroles,clusterrolebindings,namespaces", "-o", "name"]);
    let of_ours = |line: &&str| line.contains("tinbox") || line.contains("tinkerbell");
    assert_eq!(left.lines().filter(of_ours).collect::<Vec<_>>(), Vec::<&str>::new());
}
