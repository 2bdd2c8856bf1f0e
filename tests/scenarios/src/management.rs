//! A management cluster beside the box, of stock programs: etcd, kube-apiserver and
//! kube-controller-manager, the managers of Cluster API (core, kubeadm's bootstrap and control
//! plane), and Cluster API Provider Tinkerbell, which uses the box as its external Tinkerbell, or
//! the box as the provider.
//!
//! All programs run in the box's network namespace in the rack, on loopback addresses. Only the
//! provider connects to the box, over TLS at the box's address in the rack.

mod programs;
mod server;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use capi::Repository;
use peers::cluster_api::{Ports, WithWebhooks, is_healthy};
use qemu::{BoxProcess, BoxProgram, poll};
use serde_json::Value;
use stdx::testing::PATIENCE;

use self::programs::Programs;
use self::server::Server;
use crate::Lab;

/// Cluster API's own managers, as `tests/peers/cluster-api` names them, and their ports.
const MANAGERS: [(&str, Ports); 3] = [
    ("core", ports(9343, 9340, 9341)),
    ("bootstrap", ports(9353, 9350, 9351)),
    ("control-plane", ports(9363, 9360, 9361)),
];
/// Ports of the provider. The provider does not use its own flags for the webhooks' port and
/// certificates (v0.7.0, main.go). The port and the folder under `TMPDIR` are the defaults of
/// controller-runtime.
const PROVIDER: Ports = ports(9443, 9440, 9441);
/// Folder of the webhooks' certificates, under `TMPDIR`.
const CERTIFICATES: &str = "k8s-webhook-server/serving-certs";

const fn ports(webhooks: u16, health: u16, metrics: u16) -> Ports {
    Ports { address: Ipv4Addr::LOCALHOST, webhooks, health, metrics }
}

/// A lab with a management cluster.
pub struct Management {
    /// The rack and the box.
    pub lab: Lab,
    folder: PathBuf,
    programs: Programs,
    server: Server,
    managers: Vec<BoxProcess>,
    provider: Option<BoxProcess>,
}

impl Management {
    /// Starts the API server, installs Cluster API and the kinds of stock CAPT, and starts the
    /// managers of Cluster API.
    ///
    /// # Errors
    /// The part that could not be built, or the program that did not start.
    pub fn start(lab: Lab) -> anyhow::Result<Self> {
        Self::start_with(lab, |new| {
            new.install_managers()?;
            new.install("tinkerbell", PROVIDER)
        })
    }

    /// Starts as [`Management::start`], with the kinds of the box's own provider, and pairs the box
    /// with the management cluster under the name `prod`.
    ///
    /// # Errors
    /// The part that could not be built, or the program that did not start.
    pub fn start_paired(lab: Lab) -> anyhow::Result<Self> {
        let new = Self::start_with(lab, |new| {
            new.install_managers()?;
            let release = Repository::new("0.1.0");
            let mut command = new.kubectl(new.kubeconfig());
            command.args(["apply", "--server-side", "-f", "-"]);
            run(command, release.components()).context("cannot install the box's kinds")?;
            Ok(())
        })?;
        run(new.pair("prod")?, "")?;
        Ok(new)
    }

    /// Returns the command that pairs the box with the management cluster under this name.
    ///
    /// # Errors
    /// The kubeconfig for the command cannot be written.
    pub fn pair(&self, name: &str) -> anyhow::Result<Command> {
        // The box accepts only kubeconfigs with embedded certificates.
        let mut view = self.kubectl(self.kubeconfig());
        view.args(["config", "view", "--raw", "--minify", "--flatten"]);
        let file = self.lab.file("management.kubeconfig", &run(view, "")?)?;
        let file = file.to_str().context("the path is not valid UTF-8")?;
        self.lab.command(&["capi", "pair", name, "--management-kubeconfig", file])
    }

    /// Starts the API server, calls `install`, which must install the kinds of Cluster API and of a
    /// provider, and starts the managers of Cluster API.
    ///
    /// # Errors
    /// The part that could not be built, or the program that did not start.
    pub(crate) fn start_with(
        lab: Lab,
        install: impl FnOnce(&Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let programs = Programs::build()?;
        let folder = lab.rack.work_dir().join("management");
        fs::create_dir_all(&folder).context("cannot make the management cluster's folder")?;
        let server = Server::start(&lab.rack, &programs, &folder)?;
        webhook_certificates(&server, &folder)?;
        let managers = Vec::new();
        let mut new = Self { lab, folder, programs, server, managers, provider: None };
        install(&new)?;
        let mut wait = new.kubectl(new.kubeconfig());
        wait.args(["wait", "crd", "--all", "--for=condition=Established", "--timeout=120s"]);
        run(wait, "").context("the kinds of Cluster API are not served")?;
        for (name, ports) in MANAGERS {
            new.start_manager(name, ports)?;
        }
        let mut managers = std::mem::take(&mut new.managers);
        for ((name, ports), process) in MANAGERS.iter().zip(&mut managers) {
            new.wait_healthy(&format!("Cluster API's {name}"), *ports, process)?;
        }
        new.managers = managers;
        Ok(new)
    }

    fn start_manager(&mut self, name: &str, ports: Ports) -> anyhow::Result<()> {
        let log = self.lab.rack.dir().join(format!("capi-{name}.log"));
        let manager = BoxProgram::new(self.programs.program(name)?, log)
            .env("KUBECONFIG", self.server.kubeconfig())
            .args(["--webhook-cert-dir".as_ref(), self.folder.join(CERTIFICATES).as_os_str()])
            .args(["--webhook-port".to_owned(), ports.webhooks.to_string()])
            .args(["--health-addr".to_owned(), ports.health_address()])
            .args(["--diagnostics-address".to_owned(), ports.metrics_address()]);
        self.managers.push(self.lab.rack.spawn_box(manager)?);
        Ok(())
    }

    fn install_managers(&self) -> anyhow::Result<()> {
        MANAGERS.into_iter().try_for_each(|(name, ports)| self.install(name, ports))
    }

    /// Names of the managers of Cluster API, each with a List of the objects to install.
    ///
    /// # Errors
    /// A manifest cannot be built or read.
    pub(crate) fn manifests(&self) -> anyhow::Result<Vec<(&'static str, Value)>> {
        let manifests = MANAGERS.into_iter();
        manifests.map(|(name, ports)| Ok((name, self.manifest(name, ports)?))).collect()
    }

    /// The manifest of a provider's release, without its Pods.
    fn manifest(&self, name: &str, ports: Ports) -> anyhow::Result<Value> {
        let with = WithWebhooks { ports, authority: self.server.authority() };
        with.read(self.programs.manifest(name)?)
    }

    /// Applies the manifest of a provider's release, without its Pods.
    fn install(&self, name: &str, ports: Ports) -> anyhow::Result<()> {
        let list = self.manifest(name, ports)?;
        let mut command = self.kubectl(self.kubeconfig());
        command.args(["apply", "--server-side", "-f", "-"]);
        run(command, &list.to_string()).with_context(|| format!("cannot install {name}"))?;
        Ok(())
    }

    /// Starts stock CAPT with the box as its external Tinkerbell.
    ///
    /// # Errors
    /// It does not start; with the end of its log.
    pub fn start_provider(&mut self, kubeconfig: &Path) -> anyhow::Result<()> {
        let log = self.lab.rack.dir().join("capt.log");
        let provider = BoxProgram::new(self.programs.program("capt")?, log)
            .env("KUBECONFIG", self.server.kubeconfig())
            .env("TMPDIR", &self.folder)
            // Metadata address for the machines of the provider's own template.
            .env("TINKERBELL_IP", "10.77.0.1")
            .args(["--health-addr".to_owned(), PROVIDER.health_address()])
            .args(["--metrics-bind-addr".to_owned(), PROVIDER.metrics_address()])
            .args(["--external-kubeconfig".as_ref(), kubeconfig.as_os_str()]);
        let mut provider = self.lab.rack.spawn_box(provider)?;
        self.wait_healthy("the Tinkerbell provider", PROVIDER, &mut provider)?;
        self.provider = Some(provider);
        Ok(())
    }

    /// Kills the provider with SIGKILL and starts it again.
    ///
    /// # Errors
    /// It does not become healthy again.
    pub fn restart_provider(&mut self) -> anyhow::Result<()> {
        let mut provider = self.provider.take().context("the provider was never started")?;
        provider.restart()?;
        let healthy = self.wait_healthy("the Tinkerbell provider", PROVIDER, &mut provider);
        self.provider = Some(provider);
        healthy
    }

    /// Log of the provider, empty before its start.
    pub fn provider_log(&self) -> String {
        let path = self.provider.as_ref().map(BoxProcess::log);
        path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
    }

    /// The administrator's kubeconfig of the management cluster.
    pub fn kubeconfig(&self) -> &Path {
        self.server.kubeconfig()
    }

    /// Stock kubectl inside the rack, with a kubeconfig.
    pub fn kubectl(&self, kubeconfig: &Path) -> Command {
        let mut command = self.lab.rack.box_command(&self.programs.kubectl);
        command.arg("--kubeconfig").arg(kubeconfig);
        command
    }

    /// Applies a manifest to the management cluster.
    ///
    /// # Errors
    /// kubectl's own message.
    pub fn apply(&self, manifest: &str) -> anyhow::Result<String> {
        let mut command = self.kubectl(self.kubeconfig());
        command.args(["apply", "-f", "-"]);
        run(command, manifest)
    }

    /// An object of the management cluster, or of the box with the box's kubeconfig; `None` when it
    /// does not exist.
    ///
    /// # Errors
    /// kubectl's own message.
    pub fn object(
        &self,
        kubeconfig: &Path,
        resource: &str,
        name: &str,
    ) -> anyhow::Result<Option<Value>> {
        let mut command = self.kubectl(kubeconfig);
        command.args(["get", resource, name, "--ignore-not-found", "-o", "json"]);
        let text = run(command, "")?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        serde_json::from_str(&text).map(Some).context("kubectl printed no JSON")
    }

    /// Waits for the only `TinkerbellMachine` of a cluster, and returns its name, which the control
    /// plane chooses.
    ///
    /// # Errors
    /// The cluster has no machine in time.
    pub fn machine_of(&self, cluster: &str, within: Duration) -> anyhow::Result<String> {
        let label = format!("cluster.x-k8s.io/cluster-name={cluster}");
        let path = "jsonpath={.items[*].metadata.name}";
        let found = poll(&format!("a machine of cluster {cluster}"), within, || {
            let mut command = self.kubectl(self.kubeconfig());
            command.args(["get", "tinkerbellmachines", "-l", &label, "-o", path]);
            run(command, "").ok().filter(|name| !name.is_empty())
        });
        Ok(found?)
    }

    /// Waits until `test` is true of an object; servers that are down for a while are tolerated.
    ///
    /// # Errors
    /// It does not become true in time; with the last state of the object.
    pub fn wait_object(
        &self,
        kubeconfig: &Path,
        (resource, name): (&str, &str),
        within: Duration,
        mut test: impl FnMut(Option<&Value>) -> bool,
    ) -> anyhow::Result<Option<Value>> {
        let mut last = None;
        let what = format!("{resource} {name} to be as expected");
        let found = poll(&what, within, || {
            let object = self.object(kubeconfig, resource, name).ok()?;
            let good = test(object.as_ref());
            last.clone_from(&object);
            good.then_some(object)
        });
        found.map_err(|error| {
            let seen = last.map_or_else(|| "nothing".to_owned(), |object| object.to_string());
            let log = end_of(&self.provider_log());
            anyhow::Error::new(error).context(format!("it is {seen}\nthe provider said:\n{log}"))
        })
    }

    /// Stops everything and removes the rack's output.
    pub fn succeed(self) {
        let Self { lab, server, managers, provider, .. } = self;
        drop((provider, managers, server));
        lab.rack.succeed();
    }

    /// Waits for a manager's health check; a manager that ends first is started again, as a kubelet
    /// would.
    fn wait_healthy(
        &self,
        what: &str,
        ports: Ports,
        process: &mut BoxProcess,
    ) -> anyhow::Result<()> {
        let address = ports.health_address();
        let healthy = || {
            if !process.is_running() {
                process.restart().ok()?;
            }
            self.lab.rack.in_box(|| is_healthy(&address)).ok()?.then_some(())
        };
        poll(&format!("{what} to be healthy"), PATIENCE, healthy).map_err(|error| {
            let log = fs::read_to_string(process.log()).unwrap_or_default();
            anyhow::Error::new(error).context(format!("its last words:\n{}", end_of(&log)))
        })
    }
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

/// Runs a command with `input`; returns its output, or its error output as an error.
fn run(command: Command, input: &str) -> anyhow::Result<String> {
    let printed = peers::run(command, input)?;
    ensure!(printed.success, "{}", printed.err.trim());
    Ok(printed.out)
}

fn end_of(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
