//! Managers of Cluster API: core, bootstrap and control plane of kubeadm. They run as plain
//! processes beside a [`Cluster`], whose certificate their webhooks use.

mod webhooks;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

pub use self::webhooks::{Ports, WithWebhooks};
use crate::{Cluster, Process, built, loopback_port};

/// Names of the managers in `tests/peers/cluster-api`.
const MANAGERS: [&str; 3] = ["core", "bootstrap", "control-plane"];
/// Maximum time from the start of a manager until it is healthy.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Timeout of a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// Release series of Cluster API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// Version of `tests/peers/cluster-api/1.8.mod`, with contract v1beta1 only.
    V1_8,
    /// Version of `tests/peers/cluster-api/go.mod`, with contract v1beta2.
    V1_13,
}

impl Series {
    /// Name of a manager's program in `tests/peers/cluster-api`.
    fn program(self, manager: &str) -> String {
        match self {
            Self::V1_8 => format!("{manager}-1.8"),
            Self::V1_13 => manager.to_owned(),
        }
    }

    /// Name of a manager's manifest in `tests/peers/cluster-api`.
    pub fn manifest(self, manager: &str) -> String {
        self.program(manager) + ".yaml"
    }
}

/// Running managers of Cluster API, ended when dropped.
pub struct Managers {
    _processes: Vec<Process>,
}

/// Managers of Cluster API for one cluster, before their manifests are installed.
pub struct ManagerPlan {
    /// Release series of the managers.
    pub series: Series,
    managers: Vec<Manager>,
}

struct Manager {
    name: &'static str,
    program: PathBuf,
    ports: Ports,
    list: Value,
}

impl ManagerPlan {
    /// Reserves the ports of the managers, and writes these ports into their manifests.
    ///
    /// # Errors
    /// A program cannot be built.
    pub fn new(cluster: &Cluster, series: Series) -> Result<Self> {
        let names: Vec<String> = MANAGERS
            .iter()
            .flat_map(|name| [series.program(name), series.manifest(name)])
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let files = built("cluster-api", &names)?;
        let authority = fs::read_to_string(cluster.folder().join("ca.crt"))
            .context("cannot read the authority of the cluster")?;
        let mut managers = Vec::new();
        for (name, files) in MANAGERS.into_iter().zip(files.chunks_exact(2)) {
            let [webhooks, health, metrics] =
                [loopback_port()?, loopback_port()?, loopback_port()?];
            let ports = Ports { address: cluster.address(), webhooks, health, metrics };
            let list = WithWebhooks { ports, authority: &authority }.read(&files[1])?;
            managers.push(Manager { name, program: files[0].clone(), ports, list });
        }
        Ok(Self { series, managers })
    }

    /// Names of the managers (`core`, `bootstrap`, `control-plane`), each with a List of the
    /// objects to install.
    pub fn manifests(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.managers.iter().map(|manager| (manager.name, &manager.list))
    }

    /// Starts the managers, whose manifests are installed in `cluster`, and waits until they are
    /// healthy.
    ///
    /// # Errors
    /// A program does not start; the error contains the end of its log.
    pub fn start(&self, cluster: &Cluster) -> Result<Managers> {
        let wait = ["wait", "crds", "--all", "--for=condition=Established", "--timeout=120s"];
        let printed = cluster.kubectl()?.run(&wait, "")?;
        ensure!(printed.success, "the kinds of Cluster API are not served: {}", printed.err);
        let mut processes = Vec::new();
        // Before the first manager reads the files.
        let certificates = webhook_certificate(cluster)?;
        for Manager { name, program, ports, .. } in &self.managers {
            let arguments = [
                format!("KUBECONFIG={}", cluster.kubeconfig().display()),
                program.display().to_string(),
                format!("--webhook-cert-dir={certificates}"),
                format!("--webhook-port={}", ports.webhooks),
                format!("--health-addr={}", ports.health_address()),
                format!("--diagnostics-address={}", ports.metrics_address()),
                "--feature-gates=ClusterTopology=true".to_owned(),
            ];
            let log = cluster.folder().join(format!("capi-{name}.log"));
            processes.push(Process::start("/usr/bin/env".as_ref(), &arguments, &log)?);
        }
        for (Manager { name, ports, .. }, process) in self.managers.iter().zip(&mut processes) {
            let address = ports.health_address();
            let what = format!("Cluster API's {name} to be healthy");
            process.wait_until(&what, START_LIMIT, || is_healthy(&address))?;
        }
        Ok(Managers { _processes: processes })
    }
}

/// Copies the certificate of the API server to a folder with the file names that webhooks need.
fn webhook_certificate(cluster: &Cluster) -> Result<String> {
    let folder = cluster.folder().join("webhooks");
    fs::create_dir_all(&folder).context("cannot make the folder of the webhooks")?;
    for (from, to) in [("server.crt", "tls.crt"), ("server.key", "tls.key")] {
        fs::copy(cluster.folder().join(from), folder.join(to))
            .with_context(|| format!("cannot copy {from}"))?;
    }
    Ok(folder.display().to_string())
}

/// Returns true if the response to `GET /readyz` has the status 200.
pub fn is_healthy(address: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let mut head = [0; 12];
    stream.set_read_timeout(Some(HEALTH_TIMEOUT)).is_ok()
        && stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").is_ok()
        && stream.read_exact(&mut head).is_ok()
        && head.ends_with(b"200")
}
