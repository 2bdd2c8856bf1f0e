//! One management cluster: its API server, and the managers of Cluster API.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use peers::cluster_api::{Ports, WithWebhooks, is_healthy};
use qemu::{BoxProcess, BoxProgram, poll};
use serde_json::Value;
use stdx::testing::PATIENCE;

use super::programs::Programs;
use super::server::Server;
use super::{end_of, run};
use crate::Lab;

/// Names of Cluster API's own managers in `tests/peers/cluster-api`.
const MANAGERS: [&str; 3] = ["core", "bootstrap", "control-plane"];
/// Ports of the first manager of the first cluster: webhooks, health and metrics.
const PORTS: [u16; 3] = [9343, 9340, 9341];
/// Difference of the ports of two managers, and of two clusters. Webhooks listen on all addresses.
const MANAGER_STEP: u16 = 10;
const CLUSTER_STEP: u16 = 300;
/// Folder of the webhooks' certificates, under `TMPDIR`.
const CERTIFICATES: &str = "k8s-webhook-server/serving-certs";

/// A management cluster, ended when dropped.
pub struct ManagementCluster {
    name: &'static str,
    ports: [Ports; 3],
    folder: PathBuf,
    server: Server,
    managers: Vec<BoxProcess>,
}

impl ManagementCluster {
    /// Starts the API server of cluster `number`, from 1, on loopback address 127.0.0.`number`.
    /// `name` is the beginning of the names of its logs.
    pub(super) fn start(
        lab: &Lab,
        programs: &Programs,
        (number, name): (u8, &'static str),
    ) -> anyhow::Result<Self> {
        let folder = lab.rack.work_dir().join(name);
        fs::create_dir_all(&folder).context("cannot make the management cluster's folder")?;
        let address = Ipv4Addr::new(127, 0, 0, number);
        let server = Server::start(&lab.rack, programs, &folder, (address, name))?;
        webhook_certificates(&server, &folder)?;
        let first = CLUSTER_STEP * (u16::from(number) - 1);
        let ports = [0, 1, 2].map(|manager| {
            let [webhooks, health, metrics] =
                PORTS.map(|port| port + first + MANAGER_STEP * manager);
            Ports { address, webhooks, health, metrics }
        });
        Ok(Self { name, ports, folder, server, managers: Vec::new() })
    }

    /// Path of the administrator's kubeconfig, for programs in the box's namespace.
    pub fn kubeconfig(&self) -> &Path {
        self.server.kubeconfig()
    }

    /// Folder of the cluster, in which `k8s-webhook-server/serving-certs` has the certificate of
    /// webhooks.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Names of the managers of Cluster API, each with a List of the objects to install.
    pub(super) fn manifests(
        &self,
        programs: &Programs,
    ) -> anyhow::Result<Vec<(&'static str, Value)>> {
        let manifests = MANAGERS.into_iter().zip(self.ports);
        manifests.map(|(name, ports)| Ok((name, self.manifest(programs, name, ports)?))).collect()
    }

    /// The manifest of a provider's release, without its Pods.
    pub(super) fn manifest(
        &self,
        programs: &Programs,
        name: &str,
        ports: Ports,
    ) -> anyhow::Result<Value> {
        let with = WithWebhooks { ports, authority: self.server.authority() };
        with.read(programs.manifest(name)?)
    }

    /// Waits until the kinds of Cluster API are served, starts its managers, and waits until they
    /// are healthy.
    pub(super) fn start_managers(&mut self, lab: &Lab, programs: &Programs) -> anyhow::Result<()> {
        let mut wait = lab.rack.box_command(&programs.kubectl);
        wait.arg("--kubeconfig").arg(self.kubeconfig());
        wait.args(["wait", "crd", "--all", "--for=condition=Established", "--timeout=120s"]);
        run(wait, "").context("the kinds of Cluster API are not served")?;
        for (name, ports) in MANAGERS.into_iter().zip(self.ports) {
            let manager = self.start_manager(lab, programs, (name, ports))?;
            self.managers.push(manager);
        }
        for ((name, ports), process) in MANAGERS.iter().zip(self.ports).zip(&mut self.managers) {
            wait_healthy(lab, &format!("Cluster API's {name}"), ports, process)?;
        }
        Ok(())
    }

    fn start_manager(
        &self,
        lab: &Lab,
        programs: &Programs,
        (name, ports): (&str, Ports),
    ) -> anyhow::Result<BoxProcess> {
        let log = lab.rack.dir().join(format!("{}-capi-{name}.log", self.name));
        let manager = BoxProgram::new(programs.program(name)?, log)
            .env("KUBECONFIG", self.kubeconfig())
            .args(["--webhook-cert-dir".as_ref(), self.folder.join(CERTIFICATES).as_os_str()])
            .args(["--webhook-port".to_owned(), ports.webhooks.to_string()])
            .args(["--health-addr".to_owned(), ports.health_address()])
            .args(["--diagnostics-address".to_owned(), ports.metrics_address()]);
        Ok(lab.rack.spawn_box(manager)?)
    }
}

/// Waits for a manager's health check; a manager that ends first is started again, as a kubelet
/// would.
pub fn wait_healthy(
    lab: &Lab,
    what: &str,
    ports: Ports,
    process: &mut BoxProcess,
) -> anyhow::Result<()> {
    let address = ports.health_address();
    let healthy = || {
        if !process.is_running() {
            process.restart().ok()?;
        }
        lab.rack.in_box(|| is_healthy(&address)).ok()?.then_some(())
    };
    poll(&format!("{what} to be healthy"), PATIENCE, healthy).map_err(|error| {
        let log = fs::read_to_string(process.log()).unwrap_or_default();
        anyhow::Error::new(error).context(format!("its last words:\n{}", end_of(&log)))
    })
}

/// Copies the API server's own certificate for the managers' webhooks: it is valid for the loopback
/// address, and the API server trusts its authority.
fn webhook_certificates(server: &Server, folder: &Path) -> anyhow::Result<()> {
    let to = folder.join(CERTIFICATES);
    fs::create_dir_all(&to).context("cannot make the webhooks' folder")?;
    let [certificate, key] = server.certificate();
    for (from, name) in [(certificate, "tls.crt"), (key, "tls.key")] {
        let path = to.join(name);
        fs::copy(&from, &path).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    Ok(())
}
