//! A management cluster beside the box, of stock programs: etcd, kube-apiserver and
//! kube-controller-manager, the managers of Cluster API (core, kubeadm's bootstrap and control
//! plane), and Cluster API Provider Tinkerbell, which uses the box as its external Tinkerbell, or
//! the box as the provider.
//!
//! All programs run in the box's network namespace in the rack, on loopback addresses. Only the
//! provider connects to the box, over TLS at the box's address in the rack.

mod cluster;
mod programs;
mod server;

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use capi::Repository;
use peers::cluster_api::Ports;
use qemu::{BoxProcess, BoxProgram, poll};
use serde_json::Value;

pub use self::cluster::ManagementCluster;
use self::cluster::wait_healthy;
use self::programs::Programs;
use crate::Lab;

/// Ports of the provider. The provider does not use its own flags for the webhooks' port and
/// certificates (v0.7.0, main.go). The port and the folder under `TMPDIR` are the defaults of
/// controller-runtime.
const PROVIDER: Ports =
    Ports { address: Ipv4Addr::LOCALHOST, webhooks: 9443, health: 9440, metrics: 9441 };

/// A lab with a management cluster.
pub struct Management {
    /// The rack and the box.
    pub lab: Lab,
    programs: Programs,
    /// Cluster in which [`Management::apply`] creates objects.
    pub cluster: ManagementCluster,
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
            let name = "tinkerbell";
            new.install(name, &new.cluster.manifest(&new.programs, name, PROVIDER)?)
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
        run(new.pair(&new.cluster, "prod")?, "")?;
        Ok(new)
    }

    /// Returns the command that pairs the box with a management cluster under this name.
    ///
    /// # Errors
    /// The kubeconfig for the command cannot be written.
    pub fn pair(&self, cluster: &ManagementCluster, name: &str) -> anyhow::Result<Command> {
        // The box accepts only kubeconfigs with embedded certificates.
        let mut view = self.kubectl(cluster.kubeconfig());
        view.args(["config", "view", "--raw", "--minify", "--flatten"]);
        let file = self.lab.file(&format!("{name}.kubeconfig"), &run(view, "")?)?;
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
        let cluster = ManagementCluster::start(&lab, &programs, (1, "management"))?;
        let mut new = Self { lab, programs, cluster, provider: None };
        install(&new)?;
        new.cluster.start_managers(&new.lab, &new.programs)?;
        Ok(new)
    }

    /// Starts a second management cluster, as [`Management::start_with`] does the first.
    ///
    /// # Errors
    /// The program that did not start.
    pub(crate) fn start_second(
        &self,
        install: impl FnOnce(&ManagementCluster) -> anyhow::Result<()>,
    ) -> anyhow::Result<ManagementCluster> {
        let mut second = ManagementCluster::start(&self.lab, &self.programs, (2, "second"))?;
        install(&second)?;
        second.start_managers(&self.lab, &self.programs)?;
        Ok(second)
    }

    fn install_managers(&self) -> anyhow::Result<()> {
        let manifests = self.manifests(&self.cluster)?;
        manifests.iter().try_for_each(|(name, list)| self.install(name, list))
    }

    /// Names of the managers of a cluster, each with a List of the objects to install.
    ///
    /// # Errors
    /// A manifest cannot be built or read.
    pub(crate) fn manifests(
        &self,
        cluster: &ManagementCluster,
    ) -> anyhow::Result<Vec<(&'static str, Value)>> {
        cluster.manifests(&self.programs)
    }

    /// Applies the manifest of a provider's release.
    fn install(&self, name: &str, list: &Value) -> anyhow::Result<()> {
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
            .env("KUBECONFIG", self.kubeconfig())
            .env("TMPDIR", self.cluster.folder())
            // Metadata address for the machines of the provider's own template.
            .env("TINKERBELL_IP", "10.77.0.1")
            .args(["--health-addr".to_owned(), PROVIDER.health_address()])
            .args(["--metrics-bind-addr".to_owned(), PROVIDER.metrics_address()])
            .args(["--external-kubeconfig".as_ref(), kubeconfig.as_os_str()]);
        let mut provider = self.lab.rack.spawn_box(provider)?;
        wait_healthy(&self.lab, "the Tinkerbell provider", PROVIDER, &mut provider)?;
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
        let healthy = wait_healthy(&self.lab, "the Tinkerbell provider", PROVIDER, &mut provider);
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
        self.cluster.kubeconfig()
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
        self.apply_to(self.kubeconfig(), manifest)
    }

    /// Applies a manifest to the API of a kubeconfig.
    ///
    /// # Errors
    /// kubectl's own message.
    pub fn apply_to(&self, kubeconfig: &Path, manifest: &str) -> anyhow::Result<String> {
        let mut command = self.kubectl(kubeconfig);
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
        let Self { lab, cluster, provider, .. } = self;
        drop((provider, cluster));
        lab.rack.succeed();
    }
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
