//! Stock CAPT as a plain process, with the box as its external Tinkerbell.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use peers::cluster_api::{Ports, WithWebhooks, is_healthy};
use peers::clusterctl::{LocalProvider, program as clusterctl};
use peers::{Cluster, Process, built, loopback_port, poll};
use serde_json::{Value, json};

use crate::claim::program;
use crate::cluster_moves::world::{Side, VERSION, World};
use crate::cluster_nodes::management::{Management, good};

/// Port of the webhooks, the default of controller-runtime: CAPT 0.7 ignores its own flag.
const WEBHOOKS: u16 = 9443;
/// Maximum time until CAPT is healthy, and until clusterctl stops it.
const LIMIT: Duration = Duration::from_secs(120);
/// Kinds that clusterctl deletes, and that nothing runs here.
const WITHOUT_PODS: [&str; 4] = ["Certificate", "Deployment", "Issuer", "Service"];
const DEPLOYMENT: &str = "deployment/capt-controller-manager";

/// Installs Cluster API and CAPT by the commands of `tinbox capi init --mode capt`. Returns the
/// configuration of clusterctl.
pub fn init(world: &World, cluster: &Cluster, own: &str) -> String {
    let folder = world.workstation.folder();
    // Path of the configuration that clusterctl reads without `--config`.
    let name = ".config/cluster-api/clusterctl";
    let config = world.workstation.config(name, &[own, &release(folder, cluster)]).unwrap();
    let programs = folder.join("programs");
    fs::create_dir(&programs).unwrap();
    symlink(clusterctl(VERSION).unwrap(), programs.join("clusterctl")).unwrap();
    symlink(built("kubectl", &["1.35"]).unwrap().remove(0), programs.join("kubectl")).unwrap();
    let [file, kubeconfig] =
        [folder.join("capt.kubeconfig"), world.hosts.rack.tinboxd.kubeconfig()]
            .map(|path| path.display().to_string());
    let tinbox = ["--kubeconfig", &kubeconfig, "capi", "init", "--mode", "capt"];
    let tinbox = [&tinbox[..], &["--credential-file", &file]].concat();
    let printed = world.workstation.run(&program("tinbox"), &tinbox, None).unwrap();
    assert!(printed.success && Path::new(&file).exists(), "{printed:?}");
    let commands = format!("PATH={}:$PATH\n{}", programs.display(), printed.out);
    let sh = ["-c", &commands];
    let said =
        world.workstation.good(Path::new("/bin/sh"), &sh, Some(&cluster.kubeconfig())).unwrap();
    assert!(said.contains("infrastructure-tinkerbell-tinkerbell"), "{said}");
    assert!(!Path::new(&file).exists());
    config
}

/// Writes the release of CAPT to a local repository, and returns the lines for the configuration of
/// clusterctl.
fn release(folder: &Path, cluster: &Cluster) -> String {
    let manifest = built("cluster-api", &["tinkerbell.yaml"]).unwrap().remove(0);
    let authority = fs::read_to_string(cluster.folder().join("ca.crt")).unwrap();
    let ports = ports(cluster.address());
    let list = WithWebhooks { ports, authority: &authority }.read(&manifest).unwrap();
    let objects = list["items"].as_array().unwrap().iter().map(Value::to_string);
    let text = fs::read_to_string(&manifest).unwrap();
    let is_left_out = |document: &&str| {
        WITHOUT_PODS.iter().any(|kind| document.contains(&format!("\nkind: {kind}\n")))
    };
    let others = text.split("\n---\n").filter(is_left_out).map(str::to_owned);
    let documents: Vec<String> = objects.chain(others).collect();
    let provider = LocalProvider {
        name: "tinkerbell-tinkerbell",
        kind: "InfrastructureProvider",
        label: "infrastructure-tinkerbell-tinkerbell",
        version: "v0.7.0",
        series: "major: 0, minor: 7, contract: v1beta2",
    };
    provider.write(&folder.join("capt"), &documents.join("\n---\n")).unwrap()
}

fn ports(address: Ipv4Addr) -> Ports {
    let [health, metrics] = [loopback_port().unwrap(), loopback_port().unwrap()];
    Ports { address, webhooks: WEBHOOKS, health, metrics }
}

/// The running provider, ended when dropped.
pub struct StockProvider {
    process: Process,
}

impl StockProvider {
    /// Starts the provider, and reports it as running in its Deployment, as a kubelet would.
    pub fn start(side: &Side) -> Self {
        let is_free = || TcpListener::bind((Ipv4Addr::UNSPECIFIED, WEBHOOKS)).is_ok();
        poll("the port of the webhooks to be free", LIMIT, is_free).unwrap();
        let kubeconfig = side.management.kubeconfig();
        let folder = kubeconfig.parent().unwrap();
        copy_certificate(folder);
        // The Deployment mounts this Secret.
        let secret = ["get", "secret", "external-tinkerbell-kubeconfig", "-n", "capt-system"];
        let output = ["-o", "go-template={{.data.kubeconfig | base64decode}}"];
        let text = good(&side.management.kubectl, &[&secret[..], &output].concat(), "");
        fs::write(folder.join("external.kubeconfig"), text).unwrap();
        let ports = ports(Ipv4Addr::LOCALHOST);
        let arguments = [
            format!("KUBECONFIG={}", kubeconfig.display()),
            format!("TMPDIR={}", folder.display()),
            built("kubernetes", &["capt"]).unwrap().remove(0).display().to_string(),
            format!("--health-addr={}", ports.health_address()),
            format!("--metrics-bind-addr={}", ports.metrics_address()),
            format!("--external-kubeconfig={}", folder.join("external.kubeconfig").display()),
        ];
        let log = folder.join("capt.log");
        let mut process = Process::start("/usr/bin/env".as_ref(), &arguments, &log).unwrap();
        let health = ports.health_address();
        process.wait_until("CAPT to be healthy", LIMIT, || is_healthy(&health)).unwrap();
        report_replicas(&side.management, 1);
        Self { process }
    }

    /// Ends the provider as soon as its Deployment is scaled to zero.
    pub fn end_with_the_deployment(&mut self, management: &Management) {
        let get = ["get", DEPLOYMENT, "-n", "capt-system", "-o", "jsonpath={.spec.replicas}"];
        poll("clusterctl to stop CAPT", LIMIT, || good(&management.kubectl, &get, "") == "0")
            .unwrap();
        self.process.kill();
        report_replicas(management, 0);
    }
}

fn report_replicas(management: &Management, replicas: u32) {
    let patch = json!({ "status": { "replicas": replicas } }).to_string();
    let patch = ["--subresource=status", "--type=merge", "-p", &patch];
    let patch = [&["patch", DEPLOYMENT, "-n", "capt-system"], &patch[..]].concat();
    good(&management.kubectl, &patch, "");
}

/// Copies the certificate of the API server to the folder where the webhooks of CAPT look for one.
fn copy_certificate(folder: &Path) {
    let to = folder.join("k8s-webhook-server/serving-certs");
    fs::create_dir_all(&to).unwrap();
    for (from, name) in [("server.crt", "tls.crt"), ("server.key", "tls.key")] {
        fs::copy(folder.join(from), to.join(name)).unwrap();
    }
}
