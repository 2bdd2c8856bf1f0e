//! Connection to one management cluster: versions, watchers, work, renewal of the token, status.

mod id_check;
mod renewal;

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::infrastructure::cluster_api::WATCH_FILTER;
use api::infrastructure::{TINKERBELL_MACHINE, TINKERBELL_REMEDIATION};
use api::management_cluster::ManagementClusterSpec;
use api::meta::{ObjectKey, Resource};
use jiff::Timestamp;
use objects::{ObjectError, Objects};
use stdx::{Backoff, Clock, Secret};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::id_check::IdCheck;
use self::renewal::Renewal;
use super::admission::{Admission, Refusal};
use super::discovery::{Discovery, discover};
use super::heartbeat::Heartbeat;
use super::lease::Device;
use super::report::{Observation, Phase};
use super::status_writer::StatusWriter;
use super::work::{PairedCluster, StartedWork, WatchOnly, Work};
use crate::remote::{
    Cause, EventWriter, Kubeconfig, RemoteObjects, Scope, WatchedApi, WatchedObjects, Watcher,
};

/// Interval at which the states of the watchers are read.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which the served versions are read again.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(600);
/// Interval of the next read while a kind is not served, as during an upgrade of Cluster API.
const MISSING_INTERVAL: Duration = Duration::from_secs(15);
/// Wait after the first failed attempt to read the served versions.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Maximum wait: the box notices within half a minute that the provider was installed.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// All that a connection depends on.
#[derive(Clone)]
pub struct Input {
    /// UID of the ManagementCluster.
    pub uid: String,
    /// Spec of the ManagementCluster.
    pub spec: ManagementClusterSpec,
    /// Kubeconfig; `None` if the Secret or its key is missing.
    pub kubeconfig: Option<Secret>,
    /// True if the box has too many connections.
    pub is_too_many: bool,
    /// Kubeconfig that the connection itself wrote with a new token.
    pub renewed: Arc<Mutex<Option<Secret>>>,
}

impl Input {
    /// Returns true if a connection with this input need not be restarted for `other`.
    pub fn is_same(&self, other: &Self) -> bool {
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = self.kubeconfig == other.kubeconfig
            || (renewed.is_some() && *renewed == other.kubeconfig);
        is_known
            && self.uid == other.uid
            && self.spec == other.spec
            && self.is_too_many == other.is_too_many
    }
}

/// Connection to one management cluster.
pub struct Connection {
    /// Namespace and name of the ManagementCluster.
    pub key: ObjectKey,
    /// Credential and scope of the connection.
    pub input: Input,
    /// The box's own API.
    pub objects: Arc<dyn Objects>,
    /// Clock of the box.
    pub clock: Arc<dyn Clock>,
    /// Box and device, which the Lease of the box names.
    pub device: Device,
    /// Canceled before the stop if a person ended the connection.
    pub give_up: CancellationToken,
    /// Work on the objects.
    pub work: Arc<dyn Work>,
    /// Admission of the clusters of all connections.
    pub admission: Arc<Admission>,
}

/// Parts of an open connection.
struct Opened {
    remote: RemoteObjects,
    server: String,
    renewal: Renewal,
    heartbeat: Heartbeat,
}

impl Connection {
    /// Connects, and keeps the connection until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let (objects, clock) = (Arc::clone(&self.objects), Arc::clone(&self.clock));
        let mut writer =
            StatusWriter::new(objects, clock, self.key.clone(), self.input.uid.clone());
        let (mut opened, events) = match self.open() {
            Ok(opened) => opened,
            Err(phase) => {
                let seen = Observation::closed(phase);
                let report = async {
                    loop {
                        writer.write(&seen).await;
                        tokio::time::sleep(LOOK_INTERVAL).await;
                    }
                };
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = report => {}
                }
                return;
            }
        };
        let mut tasks = JoinSet::new();
        tokio::select! {
            () = stop.cancelled() => {}
            () = events.run(stop.clone()) => {}
            never = self.hold(&mut opened, &mut tasks, &mut writer) => match never {},
        }
        tasks.shutdown().await;
        if self.give_up.is_cancelled() {
            opened.heartbeat.release(&opened.remote).await;
        }
    }

    /// Creates the client. The error is a state that only another input changes.
    fn open(&self) -> Result<(Opened, EventWriter), Phase> {
        let Input { spec, kubeconfig, is_too_many, renewed, .. } = &self.input;
        if spec.suspend {
            return Err(Phase::Suspended);
        }
        if *is_too_many {
            return Err(Phase::TooMany);
        }
        let secret = spec.kubeconfig_secret_ref.name.clone();
        let Some(text) = kubeconfig else { return Err(Phase::NoKubeconfig { secret }) };
        let kubeconfig = Kubeconfig::parse(text.expose()).map_err(Phase::BadKubeconfig)?;
        let (remote, events) = RemoteObjects::new(&kubeconfig).map_err(Phase::BadKubeconfig)?;
        let renewal = Renewal::new(
            ObjectKey::new(&self.key.namespace, secret),
            text.clone(),
            kubeconfig.token(),
            Arc::clone(renewed),
        );
        let heartbeat = Heartbeat::new(
            self.device.clone(),
            spec.namespace.as_deref(),
            spec.take_over_from.clone(),
        );
        Ok((Opened { remote, server: kubeconfig.server(), renewal, heartbeat }, events))
    }

    /// Serves the management cluster, after each change of its versions again.
    async fn hold(
        &self,
        opened: &mut Opened,
        tasks: &mut JoinSet<()>,
        writer: &mut StatusWriter,
    ) -> Infallible {
        loop {
            let discovery = self.discover(opened, writer).await;
            self.serve(opened, discovery, tasks, writer).await;
            tasks.shutdown().await;
        }
    }

    /// Reads ID and served versions; repeats until the box can work with them.
    async fn discover(&self, opened: &mut Opened, writer: &mut StatusWriter) -> Discovery {
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
        loop {
            let phase = match discover(&opened.remote).await {
                Ok(discovery) => match self.admit(&discovery).await {
                    Ok(None) => return discovery,
                    Ok(Some(refusal)) => Some(Phase::Refused(refusal)),
                    Err(error) => {
                        tracing::warn!(cluster = %self.key, %error, "cannot admit the cluster");
                        None
                    }
                },
                Err(error) => Some(Phase::Blocked(error)),
            };
            tracing::debug!(cluster = %self.key, ?phase, "the management cluster is not ready");
            opened.renewal.step(&opened.remote, self.objects.as_ref(), self.clock.now()).await;
            if let Some(phase) = phase {
                writer.write(&opened.seen(None, None, phase)).await;
            }
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }

    async fn admit(&self, discovery: &Discovery) -> Result<Option<Refusal>, ObjectError> {
        let (objects, uid) = (self.objects.as_ref(), &self.input.uid);
        self.admission.admit(objects, &self.key, uid, &discovery.cluster_uid).await
    }

    /// Watches, and works if no other device of the box does, until the cluster, its contract or
    /// the device that works changes.
    async fn serve(
        &self,
        opened: &mut Opened,
        mut discovery: Discovery,
        tasks: &mut JoinSet<()>,
        writer: &mut StatusWriter,
    ) {
        opened.heartbeat.step(&opened.remote, self.clock.now()).await;
        let is_active = opened.heartbeat.is_active();
        let work = if is_active { Arc::clone(&self.work) } else { Arc::new(WatchOnly) as _ };
        let watched = self.start(work.as_ref(), &opened.remote, &discovery, tasks);
        let (mut discovered, mut contact) = (Instant::now(), Some(self.clock.now()));
        let mut id_check = IdCheck::default();
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                Some(ended) = tasks.join_next() => {
                    // A panic is passed on, because work that silently stops would hide the bug.
                    if let Err(error) = ended {
                        std::panic::resume_unwind(error.into_panic());
                    }
                    tracing::error!(cluster = %self.key, "a task ended early and starts again");
                    tokio::time::sleep(RETRY_FIRST).await;
                    return;
                }
            }
            opened.heartbeat.step(&opened.remote, self.clock.now()).await;
            if opened.heartbeat.is_active() != is_active {
                return;
            }
            opened.renewal.step(&opened.remote, self.objects.as_ref(), self.clock.now()).await;
            let states: Vec<_> = watched.iter().map(|(kind, it)| (*kind, it.state())).collect();
            let is_missing = states.iter().any(|(_, state)| {
                let hint = state.last_error.as_ref().and_then(|error| error.hint.as_deref());
                // `clusterctl delete` removes the rights together with the kinds.
                state.connected_since.is_none()
                    && matches!(Cause::of(hint), Cause::Definition | Cause::Rights)
            });
            let interval = if is_missing { MISSING_INTERVAL } else { DISCOVERY_INTERVAL };
            if discovered.elapsed() >= interval {
                discovered = Instant::now();
                match discover(&opened.remote).await {
                    Ok(new) if !new.is_same_work(&discovery) => return,
                    Ok(new) => discovery = new,
                    Err(error) if error.is_missing() => return,
                    Err(error) => tracing::debug!(cluster = %self.key, ?error, "no discovery"),
                }
            }
            if id_check.finds_another(&opened.remote, &discovery.cluster_uid, &states).await {
                return;
            }
            if states.iter().any(|(_, state)| state.connected_since.is_some()) {
                contact = Some(self.clock.now());
            }
            let phase = Phase::Watching(states);
            writer.write(&opened.seen(Some(&discovery), contact, phase)).await;
        }
    }

    /// Starts the watchers and the work.
    fn start(
        &self,
        work: &dyn Work,
        remote: &RemoteObjects,
        discovery: &Discovery,
        tasks: &mut JoinSet<()>,
    ) -> Vec<(Resource, WatchedObjects)> {
        let spec = &self.input.spec;
        let watchers: Vec<_> = discovery
            .kinds()
            .into_iter()
            .map(|kind| (kind, Watcher::new(remote, scope(spec, kind), Arc::clone(&self.clock))))
            .collect();
        let copies = watchers.iter().map(|(_, (_, objects))| objects.clone()).collect();
        let live = WatchedApi::live(remote, copies);
        let StartedWork { changed, run } = work.start(PairedCluster {
            key: self.key.clone(),
            cluster_uid: discovery.cluster_uid.clone(),
            watched: Arc::new(live.watched()),
            objects: Arc::new(live),
            contract: discovery.contract,
            namespace: spec.namespace.clone(),
            watch_filter: spec.watch_filter.clone(),
        });
        tasks.spawn(run);
        let mut watched = Vec::new();
        for (kind, (watcher, objects)) in watchers {
            let (changed, copy) = (Arc::clone(&changed), objects.clone());
            // The tasks are aborted when the connection ends.
            let never = CancellationToken::new();
            let changed = move |key| {
                let object = copy.get(&key);
                changed(kind, key, object.as_deref());
            };
            tasks.spawn(watcher.run(changed, never));
            watched.push((kind, objects));
        }
        watched
    }
}

impl Opened {
    fn seen(
        &self,
        discovery: Option<&Discovery>,
        contact: Option<Timestamp>,
        phase: Phase,
    ) -> Observation {
        Observation {
            server: Some(self.server.clone()),
            discovery: discovery.cloned(),
            expires: self.renewal.expires(),
            renewal_error: self.renewal.error().map(str::to_owned),
            contact,
            server_time: self.remote.server_time(),
            activity: Some(self.heartbeat.activity().clone()),
            phase,
        }
    }
}

fn scope(spec: &ManagementClusterSpec, resource: Resource) -> Scope {
    // Clusters, Machines and requests of Cluster API do not need the label.
    let needs_label =
        resource.group == TINKERBELL_MACHINE.group && resource != TINKERBELL_REMEDIATION;
    let filter = spec.watch_filter.as_ref().filter(|_| needs_label);
    Scope {
        resource,
        namespace: spec.namespace.clone().unwrap_or_default(),
        labels: filter.map(|value| format!("{WATCH_FILTER}={value}")).unwrap_or_default(),
    }
}
