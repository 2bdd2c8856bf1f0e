//! Service that has a task for each ControlPlaneEndpoint object, and writes the status of each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use api::network::control_plane_endpoint::{
    CONTROL_PLANE_ENDPOINT, ControlPlaneEndpoint, ControlPlaneEndpointStatus,
};
use api::network::{NETWORK, Network, NetworkPlan};
use objects::{ObjectError, Objects, read, write_status};
use platform::net::VirtualAddress;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::endpoint::{Endpoint, Shared};
use crate::forward;
use crate::host::AddressHost;
use crate::plan::{Planned, plan, stale};
use crate::probe::Prober;
use crate::state::State;

/// Interval between two reads of the objects.
const LOOK: Duration = Duration::from_secs(2);
/// Minimum time between two status writes that change only the numbers of machines.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

/// Control-plane endpoints of the box.
pub struct Endpoints {
    /// API of the box.
    pub objects: Arc<dyn Objects>,
    /// Addresses of the host.
    pub host: Arc<dyn AddressHost>,
}

/// Task of an endpoint.
struct Running {
    at: VirtualAddress,
    port: u16,
    machines: watch::Sender<Vec<SocketAddrV4>>,
    state: watch::Receiver<State>,
    stop: CancellationToken,
}

/// All tasks, and the times of the last status writes.
struct Tasks {
    shared: Shared,
    running: BTreeMap<String, Running>,
    tasks: JoinSet<String>,
    /// Names of stopped endpoints that did not give back their address yet.
    ending: BTreeSet<String>,
    written: BTreeMap<String, Instant>,
    is_swept: bool,
}

impl Endpoints {
    /// Runs until `shutdown`, and then gives back all addresses.
    ///
    /// # Errors
    /// The TLS library cannot be set up.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), rustls::Error> {
        let shared = Shared {
            host: Arc::clone(&self.host),
            prober: Prober::new()?,
            connections: forward::connections(),
        };
        let mut tasks = Tasks {
            shared,
            running: BTreeMap::new(),
            tasks: JoinSet::new(),
            ending: BTreeSet::new(),
            written: BTreeMap::new(),
            is_swept: false,
        };
        let follow = async {
            loop {
                if let Err(error) = self.look(&mut tasks).await {
                    tracing::warn!(%error, "cannot read the control-plane endpoints");
                }
                sleep(LOOK).await;
            }
        };
        shutdown.run_until_cancelled(follow).await;
        tasks.running.values().for_each(|running| running.stop.cancel());
        while let Some(ended) = tasks.tasks.join_next().await {
            tasks.ended(ended);
        }
        Ok(())
    }

    /// Compares the tasks with the objects once. Without readable objects, nothing changes.
    async fn look(&self, tasks: &mut Tasks) -> Result<(), ObjectError> {
        let objects = self.objects.list(CONTROL_PLANE_ENDPOINT, None).await?;
        let networks = self.objects.list(NETWORK, None).await?;
        let (objects, unreadable) = readable(objects);
        let networks = networks.into_iter().filter_map(|it| read::<Network>(it).ok());
        let networks: Vec<NetworkPlan> =
            networks.filter_map(|network| network.spec.plan().ok()).collect();
        let planned = plan(&objects, &networks);
        if !tasks.is_swept {
            tasks.is_swept = sweep(tasks.shared.host.as_ref(), &planned, &unreadable).await;
        }
        tasks.apply(&planned, &unreadable);
        for object in &objects {
            let name = &object.metadata.name;
            let state = match (planned.get(name), tasks.running.get(name)) {
                (Some(Err(state)), _) => state.clone(),
                (_, Some(running)) => running.state.borrow().clone(),
                _ => continue,
            };
            self.report(object, &state.status(name), tasks).await;
        }
        tasks.written.retain(|name, _| objects.iter().any(|it| it.metadata.name == *name));
        Ok(())
    }

    async fn report(
        &self,
        object: &ControlPlaneEndpoint,
        status: &ControlPlaneEndpointStatus,
        tasks: &mut Tasks,
    ) {
        let name = &object.metadata.name;
        let since = tasks.written.get(name).map(Instant::elapsed);
        if !is_due(&object.status, status, since) {
            return;
        }
        let objects = self.objects.as_ref();
        let written = write_status(objects, CONTROL_PLANE_ENDPOINT, &object.metadata, status).await;
        match written {
            Ok(()) => drop(tasks.written.insert(name.clone(), Instant::now())),
            // Deleted or changed meanwhile: the next look reads it again.
            Err(ObjectError::NotFound(_) | ObjectError::Conflict(_)) => {}
            Err(error) => tracing::warn!(endpoint = name, %error, "cannot write a status"),
        }
    }
}

/// Returns true if a status must be written. A change of only the counts of machines waits, which
/// limits the writes for a machine with frequent restarts.
fn is_due(
    old: &ControlPlaneEndpointStatus,
    new: &ControlPlaneEndpointStatus,
    since: Option<Duration>,
) -> bool {
    let is_urgent = old.held != new.held || old.interface != new.interface;
    old != new && (is_urgent || since.is_none_or(|since| since >= STATUS_INTERVAL))
}

/// Returns the readable endpoints, and the names of the others, which keep their addresses.
fn readable(objects: Vec<Value>) -> (Vec<ControlPlaneEndpoint>, BTreeSet<String>) {
    let (mut endpoints, mut unreadable) = (Vec::new(), BTreeSet::new());
    for object in objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match read(object) {
            Ok(endpoint) => endpoints.push(endpoint),
            Err(error) => {
                tracing::warn!(endpoint = name, %error, "the object is not readable");
                unreadable.insert(name);
            }
        }
    }
    (endpoints, unreadable)
}

/// Gives back all virtual addresses of an earlier process, for a box that does not start the
/// service, such as in safe mode.
pub async fn give_back_all(host: &dyn AddressHost) {
    sweep(host, &BTreeMap::new(), &BTreeSet::new()).await;
}

/// Removes the addresses of an earlier process that no object has any more. Returns false if the
/// addresses are unknown.
async fn sweep(
    host: &dyn AddressHost,
    planned: &BTreeMap<String, Result<Planned, State>>,
    unreadable: &BTreeSet<String>,
) -> bool {
    let held = match host.all().await {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(reason = %stdx::chain(&error), "cannot list virtual addresses");
            return false;
        }
    };
    let is_old = |it: &VirtualAddress| !unreadable.contains(&it.address.to_string());
    for address in stale(held, planned).into_iter().filter(is_old) {
        tracing::info!(address = %address.address, "removing an old virtual address");
        if let Err(error) = host.give_back(&address).await {
            tracing::warn!(reason = %stdx::chain(&error), "cannot remove an address");
        }
    }
    true
}

impl Tasks {
    /// Records the end of a task, and passes on its panic.
    fn ended(&mut self, ended: Result<String, JoinError>) {
        match ended {
            Ok(name) => drop(self.ending.remove(&name)),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }

    /// Stops the tasks that are not planned, starts the missing ones, and passes on the machines.
    /// The tasks of unreadable objects continue.
    fn apply(
        &mut self,
        planned: &BTreeMap<String, Result<Planned, State>>,
        unreadable: &BTreeSet<String>,
    ) {
        while let Some(ended) = self.tasks.try_join_next() {
            self.ended(ended);
        }
        self.running.retain(|name, running| {
            let wanted = planned.get(name).and_then(|it| it.as_ref().ok());
            let is_same = |it: &Planned| it.at == running.at && it.port == running.port;
            let stays = unreadable.contains(name) || wanted.is_some_and(is_same);
            if !stays {
                running.stop.cancel();
                self.ending.insert(name.clone());
            }
            stays
        });
        for (name, wanted) in planned {
            let Ok(wanted) = wanted else { continue };
            match self.running.get(name) {
                Some(running) => {
                    running.machines.send_if_modified(|machines| {
                        let is_news = *machines != wanted.backends;
                        machines.clone_from(&wanted.backends);
                        is_news
                    });
                }
                // The old task would remove the address of the new one.
                None if self.ending.contains(name) => {}
                None => {
                    let running = self.start(name, wanted);
                    self.running.insert(name.clone(), running);
                }
            }
        }
    }

    fn start(&mut self, name: &str, wanted: &Planned) -> Running {
        let (machines, received) = watch::channel(wanted.backends.clone());
        let (shown, state) = watch::channel(State::Probing);
        let stop = CancellationToken::new();
        let endpoint = Endpoint {
            shared: self.shared.clone(),
            at: wanted.at.clone(),
            port: wanted.port,
            machines: received,
            state: shown,
        };
        let (name, stopped) = (name.to_owned(), stop.clone());
        self.tasks.spawn(async move {
            endpoint.run(stopped).await;
            name
        });
        Running { at: wanted.at.clone(), port: wanted.port, machines, state, stop }
    }
}

#[cfg(test)]
mod tests;
