//! A real Kubernetes control plane: etcd and kube-apiserver. kube-controller-manager is added for
//! tests that need deletion of namespaces and garbage collection. No kubelet runs, so no pods.

mod certificates;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::kubeconfig::{self, Identity};
use crate::{Kubectl, Process, built, loopback_address};

/// Maximum time for the start of each program; on an idle machine a start takes seconds.
const START_LIMIT: Duration = Duration::from_secs(180);
/// Issuer of service account tokens.
const ISSUER: &str = "https://kubernetes.default.svc";
/// Controllers that run here: those that an API without nodes needs.
const CONTROLLERS: &str = "namespace-controller,garbage-collector-controller,\
    serviceaccount-controller,root-ca-certificate-publisher-controller,\
    clusterrole-aggregation-controller,serviceaccount-token-controller,\
    legacy-serviceaccount-token-cleaner-controller";
/// Name, empty uid, and group of the administrator, the same as on the box.
const ADMIN: &str = "admin,,system:masters";

/// Configuration of a cluster.
#[derive(Default)]
pub struct ClusterConfig {
    /// True to run kube-controller-manager too, which deletes namespaces, collects garbage and
    /// creates service accounts.
    pub controllers: bool,
    /// True if etcd syncs its writes to disk, as it does by default. False is faster: a test does
    /// not need the data after a power cut.
    pub durable: bool,
    /// More arguments for kube-apiserver, such as `--v=4`.
    pub apiserver_arguments: Vec<String>,
    /// Listen address; default: a free address of the loopback network.
    pub address: Option<Ipv4Addr>,
}

/// A running cluster, ended when dropped.
pub struct Cluster {
    // The field order is the order in which the programs are stopped.
    controllers: Option<Process>,
    apiserver: Process,
    /// Program and arguments of kube-apiserver, for a restart.
    apiserver_command: (PathBuf, Vec<String>),
    etcd: Process,
    folder: TempDir,
    address: Ipv4Addr,
    url: String,
}

impl Cluster {
    /// Starts a cluster and waits until it is ready.
    ///
    /// # Errors
    /// A program cannot be built or does not start; the error contains the end of the program's
    /// log.
    pub fn start(config: &ClusterConfig) -> Result<Self> {
        let programs = built("kubernetes", &["etcd", "kube-apiserver"])?;
        let folder = TempDir::with_prefix("cluster-").context("cannot make a folder")?;
        let address = config.address.map_or_else(loopback_address, Ok)?;
        let at = |name: &str| folder.path().join(name);
        certificates::write(folder.path(), address)?;
        let token = token()?;
        fs::write(at("tokens"), format!("{token},{ADMIN}\n")).context("cannot write the tokens")?;
        let url = format!("https://{address}:6443");
        let identity = Identity::Token(&token);
        kubeconfig::write(&at("admin.kubeconfig"), &url, &at("ca.crt"), &identity)?;
        let (certificate, key) = (&at("admin.crt"), &at("admin.key"));
        let identity = Identity::Certificate { certificate, key };
        kubeconfig::write(&at("certificate.kubeconfig"), &url, &at("ca.crt"), &identity)?;

        let log = at("etcd.log");
        let etcd =
            Process::start(&programs[0], &etcd_arguments(address, &at("etcd"), config), &log)?;
        // kube-apiserver retries until etcd answers.
        let mut arguments = apiserver_arguments(address, folder.path());
        arguments.extend(config.apiserver_arguments.iter().cloned());
        let log = at("kube-apiserver.log");
        let apiserver = Process::start(&programs[1], &arguments, &log)?;
        let apiserver_command = (programs[1].clone(), arguments);
        let mut cluster =
            Self { controllers: None, apiserver, apiserver_command, etcd, folder, address, url };
        cluster.wait_for_apiserver()?;
        if config.controllers {
            cluster.start_controllers()?;
        }
        Ok(cluster)
    }

    /// Starts kube-controller-manager, unless it runs already. The controllers notice kinds that
    /// are defined later only after a delay, so a test defines its kinds first.
    ///
    /// # Errors
    /// kube-controller-manager cannot be built or does not start; the error contains the end of its
    /// log.
    pub fn start_controllers(&mut self) -> Result<()> {
        if self.controllers.is_some() {
            return Ok(());
        }
        let program = built("kubernetes", &["kube-controller-manager"])?.remove(0);
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        let arguments = [
            format!("--kubeconfig={}", at("certificate.kubeconfig")),
            format!("--controllers={CONTROLLERS}"),
            format!("--root-ca-file={}", at("ca.crt")),
            format!("--service-account-private-key-file={}", at("accounts.key")),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        let log = self.folder.path().join("kube-controller-manager.log");
        let mut controllers = Process::start(&program, &arguments, &log)?;
        // The first objects that the controllers create.
        let kubectl = self.kubectl()?;
        controllers.wait_until("kube-controller-manager to work", START_LIMIT, || {
            let look = ["get", "serviceaccount/default", "configmap/kube-root-ca.crt"];
            kubectl.run(&look, "").is_ok_and(|output| output.success)
        })?;
        self.controllers = Some(controllers);
        Ok(())
    }

    /// Kills kube-apiserver, calls `meanwhile`, and starts kube-apiserver again.
    ///
    /// # Errors
    /// kube-apiserver does not start; the error contains the end of its log.
    pub fn restart_apiserver(&mut self, meanwhile: impl FnOnce()) -> Result<()> {
        self.apiserver.kill();
        meanwhile();
        let (program, arguments) = &self.apiserver_command;
        let log = self.folder.path().join("kube-apiserver.log");
        self.apiserver = Process::start(program, arguments, &log)?;
        self.wait_for_apiserver()
    }

    fn wait_for_apiserver(&mut self) -> Result<()> {
        let kubectl = self.kubectl()?;
        self.apiserver.wait_until("kube-apiserver to be ready", START_LIMIT, || kubectl.is_ready())
    }

    /// Process IDs of etcd and kube-apiserver.
    pub fn ids(&self) -> [u32; 2] {
        [self.etcd.id(), self.apiserver.id()]
    }

    /// Listen address of all programs.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// HTTPS URL of kube-apiserver.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The administrator's kubeconfig: user `admin` of the group `system:masters`, by token.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("admin.kubeconfig")
    }

    /// Folder with the certificates and logs of the cluster.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a kubectl of the same version for the administrator.
    ///
    /// # Errors
    /// kubectl cannot be built.
    pub fn kubectl(&self) -> Result<Kubectl> {
        let program = built("kubectl", &["1.35"])?.remove(0);
        Kubectl::new(program, self.kubeconfig(), self.folder.path().join("home"))
    }
}

/// 32 random bytes as hexadecimal digits.
fn token() -> Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).ok().context("the machine has no random numbers")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn etcd_arguments(address: Ipv4Addr, data: &Path, config: &ClusterConfig) -> Vec<String> {
    let (client, peer) = (format!("http://{address}:2379"), format!("http://{address}:2380"));
    let mut arguments = vec![
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--log-level=warn".to_owned(),
    ];
    if !config.durable {
        arguments.push("--unsafe-no-fsync".to_owned());
    }
    arguments
}

fn apiserver_arguments(address: Ipv4Addr, folder: &Path) -> Vec<String> {
    let at = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--etcd-servers=http://{address}:2379"),
        format!("--bind-address={address}"),
        "--secure-port=6443".to_owned(),
        // Only pods would use this address, and it must not be a loopback address.
        "--advertise-address=192.0.2.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/24".to_owned(),
        format!("--tls-cert-file={}", at("server.crt")),
        format!("--tls-private-key-file={}", at("server.key")),
        format!("--client-ca-file={}", at("ca.crt")),
        format!("--token-auth-file={}", at("tokens")),
        "--authorization-mode=RBAC".to_owned(),
        format!("--service-account-issuer={ISSUER}"),
        format!("--service-account-key-file={}", at("accounts.pub")),
        format!("--service-account-signing-key-file={}", at("accounts.key")),
        "--profiling=false".to_owned(),
    ]
}
