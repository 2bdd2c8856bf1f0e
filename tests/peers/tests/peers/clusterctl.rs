//! Stock clusterctl, pointed at the box by one URL: the provider is installed into a management
//! cluster and removed again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::claim::program;
use peers::{Cluster, ClusterConfig, Printed, Tinboxd, built, printed, run};
use tempfile::TempDir;

/// Versions of clusterctl. The first knows only contract v1beta1, and compares escaped paths.
const VERSIONS: [&str; 4] = ["1.8", "1.12", "1.13", "1.14"];
/// Flavors of the cluster template; the default has the empty name.
const FLAVORS: [&str; 5] = ["", "box-endpoint", "kube-vip", "topology", "workers-only"];
/// Host name of the box.
const HOST: &str = "gitlab.box.test";
/// Version of Cluster API that is installed as its core.
const CORE: &str = "v1.13.5";
/// Definition of a kind. clusterctl does not install cert-manager if its kinds can be created.
const CERT_MANAGER: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: NAMES.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: KIND, plural: NAMES, singular: ONE, listKind: KINDList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
"#;

/// A workstation that knows the box by its name and trusts its CA.
struct Workstation {
    tinboxd: Tinboxd,
    folder: TempDir,
}

impl Workstation {
    fn new() -> Self {
        let sections = "[web]\nlisten = \"ADDRESS:8443\"\n";
        let tinboxd = Tinboxd::start_named("box.test", sections).unwrap();
        let folder = TempDir::with_prefix("workstation-").unwrap();
        let hosts = format!("127.0.0.1 localhost\n{} {HOST}\n", tinboxd.address());
        fs::write(folder.path().join("hosts"), hosts).unwrap();
        fs::create_dir_all(folder.path().join(".config/cluster-api")).unwrap();
        Self { tinboxd, folder }
    }

    /// Returns the provider as the box's own configuration names it.
    fn provider(&self) -> String {
        let authority = self.tinboxd.folder().join("state/pki/ca.crt").display().to_string();
        let arguments = ["-fsS", "--cacert", &authority, &self.url()];
        let text = self.good(Path::new("/usr/bin/curl"), &arguments, None);
        text.strip_prefix("providers:\n").unwrap().to_owned()
    }

    fn url(&self) -> String {
        format!("https://{HOST}:8443/clusterctl.yaml")
    }

    /// Runs a program with the box's name in `/etc/hosts`.
    fn run(&self, program: &Path, arguments: &[&str], kubeconfig: Option<&Path>) -> Printed {
        let mut command = Command::new("unshare");
        let hosts = "mount --bind \"$0\" /etc/hosts; exec \"$@\"";
        command.args(["--mount", "sh", "-euc", hosts]).arg(self.folder.path().join("hosts"));
        command.arg(program).args(arguments).env_clear();
        command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("HOME", self.folder.path());
        command.env("SSL_CERT_FILE", self.tinboxd.folder().join("state/pki/ca.crt"));
        command.env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true").env("GOPROXY", "off");
        command.envs(kubeconfig.map(|path| ("KUBECONFIG", path)));
        command.env("CONTROL_PLANE_VIP", "10.77.0.9");
        run(command, "").unwrap()
    }

    fn good(&self, program: &Path, arguments: &[&str], kubeconfig: Option<&Path>) -> String {
        let printed = self.run(program, arguments, kubeconfig);
        assert!(printed.success, "{arguments:?}: {printed:?}");
        printed.out + &printed.err
    }
}

fn clusterctl(version: &str) -> PathBuf {
    built("clusterctl", &[version]).unwrap().remove(0)
}

#[test]
fn each_clusterctl_reads_the_release_of_the_box() {
    let workstation = Workstation::new();
    let config = workstation.url();
    for version in VERSIONS {
        let program = clusterctl(version);
        let read = |arguments: &[&str]| {
            workstation.good(&program, &[arguments, &["--config", &config]].concat(), None)
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
            let yaml = read(&[&cluster[..], flavor, &version_and_count].concat());
            assert!(yaml.contains("kind: TinkerbellMachineTemplate"), "{version}: {yaml}");
            assert!(!yaml.contains("${"), "{version}: {yaml}");
        }
        let missing = [&cluster[..], &["--flavor", "none", "--config", &config]].concat();
        let printed = workstation.run(&program, &missing, None);
        assert!(!printed.success && printed.err.contains("cluster-template-none"), "{printed:?}");
    }
}

#[test]
fn a_workstation_without_the_name_of_the_box_copies_the_release() {
    let workstation = Workstation::new();
    let pages = format!("https://{}:8443", workstation.tinboxd.address());
    let kubeconfig = workstation.tinboxd.kubeconfig().display().to_string();
    let init = ["--kubeconfig", &kubeconfig, "capi", "init", "--pages", &pages];
    let printed = workstation.run(&program("tinbox"), &init, None);
    assert!(printed.success, "{printed:?}");
    let (copy, install) = printed.out.trim_end().rsplit_once('\n').unwrap();
    // Twice: a later version replaces the files.
    for _ in 0..2 {
        workstation.good(Path::new("/bin/sh"), &["-c", copy], None);
    }
    let home = workstation.folder.path().display().to_string();
    let config = install.split_once("--config ").unwrap().1.trim_matches('"');
    let config = config.replace("$HOME", &home);
    for version in VERSIONS {
        let provider = ["generate", "provider", "--infrastructure", "tinbox", "--config", &config];
        let all = workstation.good(&clusterctl(version), &provider, None);
        assert!(all.contains("kind: TinkerbellClusterTemplate"), "{version}: {all}");
    }
}

/// Writes Cluster API's own components to a local repository. Returns the configuration file with
/// the core and the providers `more`.
fn local_core(folder: &Path, more: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster-api/build.sh");
    let components = printed(&script, &["core.yaml"]).unwrap().remove(0);
    let release = folder.join(format!("core/cluster-api/{CORE}"));
    fs::create_dir_all(&release).unwrap();
    fs::copy(components, release.join("core-components.yaml")).unwrap();
    let metadata = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n\
                    releaseSeries: [{major: 1, minor: 13, contract: v1beta2}]\n";
    fs::write(release.join("metadata.yaml"), metadata).unwrap();
    let path = folder.join("core.yaml");
    let url = release.join("core-components.yaml");
    let core = format!(
        "providers:\n- {{name: cluster-api, type: CoreProvider, url: {}}}\n{more}",
        url.display()
    );
    fs::write(&path, core).unwrap();
    path.display().to_string()
}

#[test]
fn a_management_cluster_gets_the_provider_and_gives_it_back() {
    let workstation = Workstation::new();
    let cluster =
        Cluster::start(&ClusterConfig { controllers: true, ..ClusterConfig::default() }).unwrap();
    let kubectl = cluster.kubectl().unwrap();
    let stub = |kind: &str, names: &str, one: &str| {
        CERT_MANAGER.replace("KIND", kind).replace("NAMES", names).replace("ONE", one)
    };
    let stubs =
        stub("Issuer", "issuers", "issuer") + &stub("Certificate", "certificates", "certificate");
    assert!(kubectl.run(&["apply", "-f", "-"], &stubs).unwrap().success);
    let (program, kubeconfig) = (clusterctl("1.13"), cluster.kubeconfig());
    let run = |arguments: &[&str]| workstation.good(&program, arguments, Some(&kubeconfig));

    let config = local_core(workstation.folder.path(), &workstation.provider());
    let none = ["--bootstrap", "-", "--control-plane", "-", "--config", &config];
    let init = ["init", "--core", "cluster-api", "--infrastructure", "tinbox"];
    let said = run(&[&init[..], &none].concat());
    assert!(said.contains("infrastructure-tinbox"), "{said}");

    let get = |what: &[&str]| kubectl.run(&[&["get"], what].concat(), "").unwrap().out;
    let providers = get(&["providers.clusterctl.cluster.x-k8s.io", "-A"]);
    assert!(providers.contains("infrastructure-tinbox"), "{providers}");
    let wait = [
        "wait",
        "crd/tinkerbellmachines.infrastructure.cluster.x-k8s.io",
        "--for=condition=Established",
        "--timeout=60s",
    ];
    assert!(kubectl.run(&wait, "").unwrap().success);
    let pods =
        get(&["deployments,validatingwebhookconfigurations", "-n", "tinbox-system", "-o", "name"]);
    assert!(!pods.contains("tinbox"), "{pods}");

    let delete = ["delete", "--infrastructure", "tinbox", "--include-crd", "--include-namespace"];
    run(&[&delete[..], &["--config", &config]].concat());
    let wait = ["wait", "namespace/tinbox-system", "--for=delete", "--timeout=120s"];
    let gone = kubectl.run(&wait, "").unwrap();
    assert!(gone.success, "{gone:?}");
    let left = get(&["crd,clusterroles,clusterrolebindings,namespaces", "-o", "name"]);
    let of_ours = |line: &&str| line.contains("tinbox") || line.contains("tinkerbell");
    assert_eq!(left.lines().filter(of_ours).collect::<Vec<_>>(), Vec::<&str>::new());
}
