//! Networks of the box: settings from the configuration file, changes through the API, and the DHCP
//! services. A change in either place takes effect without a restart.
//!
//! Each `[[network]]` of the file has a Network object, named after its interface. The spec is
//! copied from the file, and may then be changed through the API. A later change of the file
//! replaces the spec again.

pub mod board;
pub mod leases;
pub mod nic;
mod plan;
mod report;
mod serve;
mod v6;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use api::meta::{ObjectKey, ObjectMeta};
use api::network::{NETWORK, Network, NetworkSpec};
use objects::{Objects, find, read};
use resources::{Engine, EventKind, ListOptions, StatusError, WatchOptions};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use stdx::Clock;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use board::Board;
use config::Config;
use leases::OpenLeases;
use platform::liveness::LoopSignal;

use crate::events::observers::Observers;
use crate::index::Index;
use crate::machines::hardware_views::HardwareViews;
use crate::objects::id;

/// Annotation with the digest of the settings in the file from which the spec was copied.
const FROM_FILE: &str = "tinbox.dev/from-file";
/// Wait before a failed watch is restarted.
const RETRY: Duration = Duration::from_millis(500);

/// Interval at which the watch loop reports its liveness.
const TURN: Duration = Duration::from_secs(5);

/// Dependencies of all network services.
pub struct Networks {
    /// Engine whose watch reports changes of Network objects.
    pub engine: Engine,
    /// Typed access to objects.
    pub objects: Arc<dyn Objects>,
    /// Directory of machines for DHCP.
    pub views: Arc<HardwareViews>,
    /// Index that receives leases and prefixes.
    pub index: Index,
    /// Receiver of DHCP events for the machine history.
    pub observers: Arc<Observers>,
    /// Clock for leases and event times.
    pub clock: Arc<dyn Clock>,
    /// Configuration file with the networks.
    pub config: Arc<Config>,
    /// Board with the state of each network, for the status view.
    pub board: Board,
    /// Open lease files by interface.
    pub leases: OpenLeases,
    /// State folder, with the leases and the state of the search for other DHCP servers.
    pub state: PathBuf,
    /// Liveness signal of the watch loop.
    pub loop_signal: LoopSignal,
}

/// Network object with the desired settings.
type DesiredNetwork = Arc<Network>;

impl Networks {
    /// Creates a Network object for each network of the file, and replaces the spec of an existing
    /// object if the settings in the file have changed.
    ///
    /// # Errors
    /// An object cannot be read or written.
    pub async fn adopt(&self) -> anyhow::Result<()> {
        // A network without an address is skipped. The process that obtains the address later
        // serves it.
        for network in self.config.network.iter().filter(|network| !network.is_shared()) {
            let spec = network.spec();
            let name = name_of(&spec.interface);
            self.adopt_one(&name, spec)
                .await
                .with_context(|| format!("cannot store the network {name}"))?;
        }
        Ok(())
    }

    async fn adopt_one(&self, name: &str, spec: NetworkSpec) -> anyhow::Result<()> {
        let hash = stdx::hex(&Sha256::digest(serde_json::to_vec(&spec)?)[..16]);
        let found: Option<Network> =
            find(self.objects.as_ref(), NETWORK, &ObjectKey::new("", name)).await?;
        let Some(mut network) = found else {
            let metadata = ObjectMeta { name: name.to_owned(), ..ObjectMeta::default() };
            let mut network = Network { metadata, spec, ..Network::default() };
            network.metadata.annotations.insert(FROM_FILE.to_owned(), hash);
            self.objects.create(NETWORK, manifest(&network)?).await?;
            return Ok(());
        };
        if network.metadata.annotations.get(FROM_FILE) == Some(&hash) {
            return Ok(());
        }
        network.metadata.annotations.insert(FROM_FILE.to_owned(), hash);
        network.spec = spec;
        self.objects.update(NETWORK, manifest(&network)?).await?;
        Ok(())
    }

    /// Runs the services of all networks until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let networks = Arc::new(self);
        let mut services = Services { networks: Arc::clone(&networks), running: HashMap::new() };
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                followed = networks.follow(&mut services, &mut tasks, &shutdown) => {
                    if let Err(error) = followed {
                        tracing::warn!(%error, "the watch of networks starts again");
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
        drop(services);
        while let Some(ended) = tasks.join_next().await {
            resume_panic(ended);
        }
    }

    /// Starts the services of all networks, then follows changes until the watch fails.
    async fn follow(
        &self,
        services: &mut Services,
        tasks: &mut JoinSet<()>,
        shutdown: &CancellationToken,
    ) -> Result<(), StatusError> {
        let list = self.engine.list(&id(NETWORK), None, ListOptions::default()).await?;
        let mut gone: Vec<String> = services.running.keys().cloned().collect();
        for object in list.items {
            let name = services.want(object, tasks, shutdown);
            gone.retain(|other| Some(other) != name.as_ref());
        }
        gone.iter().for_each(|name| services.forget(name));
        let options = WatchOptions { after: Some(list.revision), ..WatchOptions::default() };
        let mut watch = self.engine.watch(&id(NETWORK), None, options).await?;
        let mut turns = tokio::time::interval(TURN);
        loop {
            let event = tokio::select! {
                event = watch.next() => event?,
                _ = turns.tick() => {
                    self.loop_signal.tick();
                    continue;
                }
                Some(ended) = tasks.join_next() => {
                    resume_panic(ended);
                    continue;
                }
            };
            match event.kind {
                EventKind::Added | EventKind::Modified => {
                    services.want(event.object, tasks, shutdown);
                }
                EventKind::Deleted => {
                    let name = event.object.pointer("/metadata/name").and_then(Value::as_str);
                    services.forget(name.unwrap_or_default());
                }
                EventKind::Bookmark => {}
            }
        }
    }
}

/// Senders of the desired settings to the running services, by name of the Network.
struct Services {
    networks: Arc<Networks>,
    running: HashMap<String, watch::Sender<DesiredNetwork>>,
}

impl Services {
    /// Starts or updates the service of a network. Returns the name of the Network; `None` if the
    /// object is invalid.
    fn want(
        &mut self,
        object: Value,
        tasks: &mut JoinSet<()>,
        shutdown: &CancellationToken,
    ) -> Option<String> {
        let network: Network = match read(object) {
            Ok(network) => network,
            Err(error) => {
                tracing::warn!(%error, "a network is not served");
                return None;
            }
        };
        let name = network.metadata.name.clone();
        let wanted = Arc::new(network);
        if let Some(running) = self.running.get(&name)
            && running.send(Arc::clone(&wanted)).is_ok()
        {
            return Some(name);
        }
        let (sender, receiver) = watch::channel(wanted);
        self.running.insert(name.clone(), sender);
        let (networks, shutdown) = (Arc::clone(&self.networks), shutdown.clone());
        let served = name.clone();
        tasks.spawn(async move { networks.keep_serving(served, receiver, shutdown).await });
        Some(name)
    }

    fn forget(&mut self, name: &str) {
        // Dropping the sender ends the service.
        self.running.remove(name);
    }
}

/// Converts the name of an interface to a valid object name.
fn name_of(interface: &str) -> String {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let name: String =
        interface.to_ascii_lowercase().chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    name.trim_matches('-').to_owned()
}

fn manifest(network: &Network) -> serde_json::Result<Value> {
    let mut object = serde_json::to_value(network)?;
    object["apiVersion"] = NETWORK.api_version().into();
    object["kind"] = NETWORK.kind.into();
    Ok(object)
}

fn resume_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn every_interface_has_a_name_that_objects_may_have() {
        assert_eq!(name_of("eth0"), "eth0");
        assert_eq!(name_of("enp3s0.100"), "enp3s0-100");
        assert_eq!(name_of("_Rack"), "rack");
    }
}
