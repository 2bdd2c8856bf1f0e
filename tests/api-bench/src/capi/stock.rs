//! Stock CAPT, and Tinkerbell's own server, on the API server of a management cluster.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use peers::cluster_api::{Ports, WithWebhooks, is_healthy};
use peers::{Cluster, Kubectl, Process, built, loopback_port, poll};

use crate::management::{Management, apply};

/// Port of CAPT's webhooks, which it takes from no flag (v0.7.0, main.go).
const WEBHOOKS: u16 = 9443;
/// Folder of the webhooks' certificates under `TMPDIR`, the default of controller-runtime.
const CERTIFICATES: &str = "k8s-webhook-server/serving-certs";
/// Maximum time until a program is ready.
const START_LIMIT: Duration = Duration::from_secs(120);

/// The two programs, ended when dropped.
pub struct Stock {
    pub management: Management,
    capt: Process,
    _tinkerbell: Process,
    /// Address of the service for agents.
    pub authority: String,
}

impl Stock {
    /// Starts everything.
    ///
    /// # Errors
    /// A program cannot be built or does not start.
    pub fn start() -> Result<Self> {
        let programs = built("kubernetes", &["capt"])?;
        let manifest = built("cluster-api", &["tinkerbell.yaml"])?.remove(0);
        let server = built("tinkerbell-server", &[])?.remove(0);
        let [health, metrics, agents, http] =
            [loopback_port()?, loopback_port()?, loopback_port()?, loopback_port()?];
        let mut ports = Ports { address: Ipv4Addr::LOCALHOST, webhooks: WEBHOOKS, health, metrics };
        let management = Management::start(|cluster, kubectl| {
            ports.address = cluster.address();
            install(cluster, kubectl, ports, &manifest)
        })?;
        let cluster = &management.cluster;
        let tinkerbell = tinkerbell(cluster, &server, [agents, http])?;
        let wait = |kind: &str| {
            poll(&format!("the kind {kind}"), START_LIMIT, || {
                management.kubectl.run(&["get", kind], "").is_ok_and(|it| it.success)
            })
        };
        wait("workflows.tinkerbell.org").context("Tinkerbell's server")?;
        wait("jobs.bmc.tinkerbell.org").context("Tinkerbell's server")?;
        let capt = capt(cluster, &programs[0], ports)?;
        let authority = format!("{}:{agents}", cluster.address());
        Ok(Self { management, capt, _tinkerbell: tinkerbell, authority })
    }

    /// Process ID of CAPT.
    pub fn capt_id(&self) -> u32 {
        self.capt.id()
    }
}

fn install(cluster: &Cluster, kubectl: &Kubectl, ports: Ports, manifest: &Path) -> Result<()> {
    let authority = fs::read_to_string(cluster.folder().join("ca.crt"))?;
    let list = WithWebhooks { ports, authority: &authority }.read(manifest)?;
    apply(kubectl, &list.to_string())
}

fn tinkerbell(cluster: &Cluster, program: &Path, [agents, http]: [u16; 2]) -> Result<Process> {
    let address = cluster.address();
    let off = ["smee", "tootles", "secondstar", "ui"].map(|it| format!("--enable-{it}=false"));
    let mut arguments = vec![
        format!("--backend-kube-config={}", cluster.kubeconfig().display()),
        format!("--bind-address={address}"),
        format!("--public-ipv4={address}"),
        format!("--http-port={http}"),
        format!("--tink-server-bind-addr={address}"),
        format!("--tink-server-bind-port={agents}"),
    ];
    arguments.extend(off);
    Process::start(program, &arguments, &cluster.folder().join("tinkerbell.log"))
}

fn capt(cluster: &Cluster, program: &Path, ports: Ports) -> Result<Process> {
    let folder = cluster.folder().join(CERTIFICATES);
    fs::create_dir_all(&folder)?;
    for (from, to) in [("server.crt", "tls.crt"), ("server.key", "tls.key")] {
        fs::copy(cluster.folder().join(from), folder.join(to))?;
    }
    let arguments = [
        format!("KUBECONFIG={}", cluster.kubeconfig().display()),
        format!("TMPDIR={}", cluster.folder().display()),
        format!("TINKERBELL_IP={}", cluster.address()),
        program.display().to_string(),
        format!("--health-addr={}", ports.health_address()),
        format!("--metrics-bind-addr={}", ports.metrics_address()),
    ];
    let log = cluster.folder().join("capt.log");
    let mut process = Process::start("/usr/bin/env".as_ref(), &arguments, &log)?;
    let address = ports.health_address();
    process.wait_until("CAPT to be healthy", START_LIMIT, || is_healthy(&address))?;
    Ok(process)
}
