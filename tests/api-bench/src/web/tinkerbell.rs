//! Tinkerbell's own UI over a real kube-apiserver with the same machines.

use std::time::Duration;

use anyhow::Result;
use peers::{Cluster, ClusterConfig, Process, built, loopback_port, poll};

use super::browse::{Visit, visit};
use super::load::{MACHINES, hardware};

/// Maximum time until the kinds and the pages are served.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Costs of Tinkerbell's pages.
pub struct PeerVisits {
    /// First page, with the files that it names.
    pub first: Visit,
    /// Page with the list of the machines, with its files.
    pub list: Visit,
}

/// Starts Tinkerbell's UI, and returns the costs of its pages.
///
/// # Errors
/// A program cannot be built or does not start.
pub fn visits() -> Result<PeerVisits> {
    let server = built("tinkerbell-server", &[])?.remove(0);
    let cluster = Cluster::start(&ClusterConfig::default())?;
    let (address, http) = (cluster.address(), loopback_port()?);
    let parts = ["smee", "tootles", "secondstar", "tink-server", "tink-controller"];
    let mut arguments = vec![
        format!("--backend-kube-config={}", cluster.kubeconfig().display()),
        format!("--bind-address={address}"),
        format!("--public-ipv4={address}"),
        format!("--http-port={http}"),
        "--enable-rufio-controller=false".to_owned(),
        "--enable-ui=true".to_owned(),
        "--ui-enable-auto-login=true".to_owned(),
    ];
    arguments.extend(parts.map(|it| format!("--enable-{it}=false")));
    let log = cluster.folder().join("tinkerbell.log");
    let _server = Process::start(&server, &arguments, &log)?;
    let kubectl = cluster.kubectl()?;
    poll("the kind hardware", START_LIMIT, || {
        kubectl.run(&["get", "hardware"], "").is_ok_and(|it| it.success)
    })?;
    let all: Vec<String> = (0..MACHINES).map(|number| hardware(number, 0).to_string()).collect();
    let applied = kubectl.run(&["apply", "-f", "-"], &all.join("\n---\n"))?;
    anyhow::ensure!(applied.success, "{applied:?}");
    let page = |path: &str| visit(&format!("http://{address}:{http}{path}"), &[]);
    poll("Tinkerbell's page", START_LIMIT, || page("/").is_ok())?;
    Ok(PeerVisits { first: page("/")?, list: page("/hardware")? })
}
