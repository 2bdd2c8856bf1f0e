//! A management cluster: the real API server with Cluster API's managers.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use api_bench::client::{Access, Client};
use peers::cluster_api::{ManagerPlan, Managers, Series};
use peers::{Cluster, ClusterConfig, Kubectl};
use serde_json::{Value, json};

use crate::requests::Requests;

/// A management cluster, ended when dropped.
pub struct Management {
    pub kubectl: Kubectl,
    pub client: Client,
    _managers: Managers,
    pub cluster: Cluster,
}

impl Management {
    /// Starts the API server, and Cluster API's managers after `install` has installed the kinds of
    /// the provider.
    ///
    /// # Errors
    /// A program does not start.
    pub fn start(install: impl FnOnce(&Cluster, &Kubectl) -> Result<()>) -> Result<Self> {
        let mut cluster = Cluster::start(&ClusterConfig { durable: true, ..Default::default() })?;
        let kubectl = cluster.kubectl()?;
        let plan = ManagerPlan::new(&cluster, Series::V1_13)?;
        for (_, list) in plan.manifests() {
            apply(&kubectl, &list.to_string())?;
        }
        install(&cluster, &kubectl)?;
        let managers = plan.start(&cluster)?;
        cluster.start_controllers()?;
        let client = Client::new(Access::read(&cluster.kubeconfig())?)?;
        Ok(Self { kubectl, client, _managers: managers, cluster })
    }

    /// Returns the requests that the API server has answered since its start.
    ///
    /// # Errors
    /// kubectl's own message.
    pub fn requests(&self) -> Result<Requests> {
        let metrics = good(&self.kubectl, &["get", "--raw", "/metrics"], "")?;
        Ok(Requests::read(&metrics))
    }
}

/// Writes a kubeconfig with embedded certificates, as the box needs it, and returns the path.
///
/// # Errors
/// kubectl's own message.
pub fn flat_kubeconfig(cluster: &Cluster) -> Result<PathBuf> {
    let view = ["config", "view", "--raw", "--minify", "--flatten"];
    let file = cluster.folder().join("flat.kubeconfig");
    fs::write(&file, good(&cluster.kubectl()?, &view, "")?)?;
    Ok(file)
}

/// Applies a manifest on the side of the server.
///
/// # Errors
/// kubectl's own message.
pub fn apply(kubectl: &Kubectl, manifest: &str) -> Result<()> {
    good(kubectl, &["apply", "--server-side", "-f", "-"], manifest).map(|_| ())
}

/// Creates objects by one `kubectl create`.
///
/// # Errors
/// kubectl's own message.
pub fn create(kubectl: &Kubectl, objects: &[Value]) -> Result<()> {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    good(kubectl, &["create", "-f", "-"], &list.to_string()).map(|_| ())
}

/// Runs kubectl and returns its output.
///
/// # Errors
/// kubectl's own message.
pub fn good(kubectl: &Kubectl, arguments: &[&str], input: &str) -> Result<String> {
    let printed = kubectl.run(arguments, input)?;
    ensure!(printed.success, "{arguments:?}: {}", printed.err.trim());
    Ok(printed.out)
}
