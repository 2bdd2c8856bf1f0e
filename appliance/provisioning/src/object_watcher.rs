//! Watcher that passes changes of objects to the index, the image cache and the controllers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use api::bmc::{Action, BootDevice, JOB, Job, MACHINE, PowerAction, Provider, TASK, Task};
use api::meta::{ObjectKey, Resource};
use api::network::control_plane_endpoint::CONTROL_PLANE_ENDPOINT;
use api::tinkerbell::{HARDWARE, WORKFLOW};
use capi_controllers::signals::{self, AllClusterApiSignals, ClusterApiSignals};
use controllers::runtime::Signals;
use objects::{Objects, fetch, read};
use resources::{Engine, EventKind, ListOptions, StatusError, WatchOptions};
use serde_json::Value;
use status::boot_event::BootEvent;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::events::observers::Observers;
use crate::images::Images;
use crate::index::Index;
use crate::objects::id;
use crate::status_sources::contested;

/// Interval at which all objects are listed again and all controllers signaled, independent of
/// watch events.
const TICK: Duration = Duration::from_secs(300);
/// Maximum number of objects in one page of a list.
const PAGE: usize = 100;
/// Wait before a failed watch is restarted.
const RETRY: Duration = Duration::from_millis(500);

/// Handles to signal the controllers.
#[derive(Clone)]
pub struct ControllerSignals {
    /// Handle to signal the Workflow controller.
    pub workflow: Signals,
    /// Handle to signal the Job controller.
    pub job: Signals,
    /// Handle to signal the Task controller.
    pub task: Signals,
    /// Handle to signal the Machine controller.
    pub machine: Signals,
    /// Handles to signal the controllers of Cluster API kinds of the box's own API.
    pub cluster_api: Arc<ClusterApiSignals>,
    /// Handles to signal the controllers of Cluster API kinds of all management clusters.
    pub all_cluster_api: Arc<AllClusterApiSignals>,
}

/// Watcher of the kinds in [`KINDS`]; each kind has its own clone.
#[derive(Clone)]
pub struct ObjectWatcher {
    /// Engine that lists and watches objects.
    pub engine: Engine,
    /// Typed access to objects.
    pub objects: Arc<dyn Objects>,
    /// Index of the boot services.
    pub index: Index,
    /// Controllers to signal after a change.
    pub controller_signals: ControllerSignals,
    /// Image cache for the files that workflows mention.
    pub images: Images,
    /// Receiver of power events for the machine history.
    pub observers: Arc<Observers>,
}

/// Kinds of objects to watch: those of the box, then those of Cluster API on the box's own API.
pub const KINDS: [Resource; 11] = {
    let [cluster, machine, template, core_cluster, core_machine] = signals::KINDS;
    [
        HARDWARE,
        WORKFLOW,
        JOB,
        TASK,
        MACHINE,
        CONTROL_PLANE_ENDPOINT,
        cluster,
        machine,
        template,
        core_cluster,
        core_machine,
    ]
};

fn key(object: &Value) -> ObjectKey {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"))
}

impl ObjectWatcher {
    /// Watches the kind `resource` until `shutdown`. Sends on `listed` after the first list.
    pub async fn run(
        self,
        resource: Resource,
        listed: oneshot::Sender<()>,
        shutdown: CancellationToken,
    ) {
        let mut known = HashMap::new();
        let mut listed = Some(listed);
        loop {
            let wait = match self.follow(resource, &mut known, &mut listed, &shutdown).await {
                Ok(()) => Duration::ZERO,
                Err(error) => {
                    tracing::debug!(kind = resource.kind, %error, "the watch starts again");
                    RETRY
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Lists all objects, then processes changes for one [`TICK`].
    async fn follow(
        &self,
        resource: Resource,
        known: &mut HashMap<ObjectKey, i64>,
        listed: &mut Option<oneshot::Sender<()>>,
        shutdown: &CancellationToken,
    ) -> Result<(), StatusError> {
        let revision = self.list(resource, known).await?;
        if let Some(listed) = listed.take() {
            if resource == WORKFLOW {
                self.index.runs.complete();
            }
            // The receiver is only gone while the box shuts down.
            let _ = listed.send(());
        }
        self.watch(resource, known, revision, shutdown).await
    }

    /// Lists and processes all objects in pages, because the inventories of a rack are large.
    /// Returns the revision of the list.
    async fn list(
        &self,
        resource: Resource,
        known: &mut HashMap<ObjectKey, i64>,
    ) -> Result<u64, StatusError> {
        known.values_mut().for_each(|generation| *generation = -1);
        let mut there = HashSet::new();
        let mut options = ListOptions { limit: PAGE, ..ListOptions::default() };
        loop {
            let page = self.engine.list(&id(resource), None, options.clone()).await?;
            for object in page.items {
                there.insert(key(&object));
                self.changed(resource, object, known, false).await;
            }
            options.continue_token = page.continue_token;
            if options.continue_token.is_none() {
                known.retain(|key, _| {
                    let stays = there.contains(key);
                    if !stays {
                        self.removed(resource, key.clone());
                    }
                    stays
                });
                return Ok(page.revision);
            }
        }
    }

    async fn watch(
        &self,
        resource: Resource,
        known: &mut HashMap<ObjectKey, i64>,
        revision: u64,
        shutdown: &CancellationToken,
    ) -> Result<(), StatusError> {
        let options = WatchOptions { after: Some(revision), ..WatchOptions::default() };
        let mut watch = self.engine.watch(&id(resource), None, options).await?;
        let tick = tokio::time::sleep(TICK);
        tokio::pin!(tick);
        loop {
            let event = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = &mut tick => return Ok(()),
                event = watch.next() => event?,
            };
            match event.kind {
                EventKind::Added | EventKind::Modified => {
                    self.changed(resource, event.object, known, true).await;
                }
                EventKind::Deleted => {
                    let key = key(&event.object);
                    known.remove(&key);
                    if resource == CONTROL_PLANE_ENDPOINT {
                        self.controller_signals.all_cluster_api.endpoint_changed(&event.object);
                        self.index.remove_endpoint(&key);
                        continue;
                    }
                    self.controller_signals
                        .all_cluster_api
                        .box_object_changed(resource, &event.object);
                    self.wake_owners(&key, &event.object);
                    self.removed(resource, key);
                }
                EventKind::Bookmark => {}
            }
        }
    }

    fn removed(&self, resource: Resource, key: ObjectKey) {
        if signals::KINDS.contains(&resource) {
            return self.controller_signals.cluster_api.removed(resource, &key);
        }
        match resource.kind {
            "Hardware" => self.index.remove_hardware(&key),
            "Workflow" => self.remove_workflow(&key),
            "Machine" => self.index.remove_controller(&key),
            "ControlPlaneEndpoint" => self.index.remove_endpoint(&key),
            _ => {}
        }
    }

    async fn changed(
        &self,
        resource: Resource,
        object: Value,
        known: &mut HashMap<ObjectKey, i64>,
        live: bool,
    ) {
        if signals::KINDS.contains(&resource) {
            known.insert(key(&object), 0);
            return self.controller_signals.cluster_api.changed(resource, &object);
        }
        if resource == CONTROL_PLANE_ENDPOINT {
            return self.endpoint_changed(&object, known);
        }
        self.controller_signals.all_cluster_api.box_object_changed(resource, &object);
        let key = key(&object);
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
        let before = known.insert(key.clone(), generation.unwrap_or(0));
        match resource.kind {
            "Hardware" => match read(object) {
                Ok(hardware) => {
                    for contested in self.index.put_hardware(hardware) {
                        let now = self.engine.clock().now();
                        let events = contested::events(&contested, now);
                        events.into_iter().for_each(|event| self.objects.record(event));
                    }
                }
                Err(error) => {
                    tracing::warn!(%key, %error, "hardware is not served");
                    self.index.remove_hardware(&key);
                }
            },
            "Workflow" => {
                match read(object) {
                    Ok(workflow) => {
                        // The files must be in the cache before an agent receives their URLs.
                        self.images.put_workflow(&workflow);
                        self.index.put_workflow(&workflow);
                    }
                    Err(error) => {
                        tracing::warn!(%key, %error, "workflow is not served");
                        self.remove_workflow(&key);
                    }
                }
                self.controller_signals.workflow.signal(key);
            }
            "Job" => {
                self.wake_owners(&key, &object);
                self.controller_signals.job.signal(key);
            }
            "Task" => {
                self.wake_owners(&key, &object);
                if live {
                    self.record_task(object).await;
                }
                self.controller_signals.task.signal(key);
            }
            _ => {
                let text = |path: &str| object.pointer(path).and_then(Value::as_str);
                let reason = text("/status/powerReason");
                self.index.put_power(key.clone(), text("/status/powerState"), reason);
                // A status write of the controller must not trigger another request to the BMC.
                if before != generation {
                    let host = text("/spec/connection/host").unwrap_or_default();
                    self.index.put_controller(key.clone(), host);
                    self.controller_signals.machine.signal(key);
                }
            }
        }
    }

    fn endpoint_changed(&self, object: &Value, known: &mut HashMap<ObjectKey, i64>) {
        let key = key(object);
        let address = object.pointer("/spec/address").and_then(Value::as_str);
        self.index.put_endpoint(key.clone(), address.unwrap_or_default());
        known.insert(key, 0);
        self.controller_signals.all_cluster_api.endpoint_changed(object);
    }

    fn remove_workflow(&self, key: &ObjectKey) {
        self.index.remove_workflow(key);
        self.images.remove_workflow(key);
    }

    fn wake_owners(&self, key: &ObjectKey, object: &Value) {
        for (kind, signals) in
            [("Workflow", &self.controller_signals.workflow), ("Job", &self.controller_signals.job)]
        {
            for owner in owners(object, kind) {
                signals.signal(ObjectKey::new(&key.namespace, owner));
            }
        }
    }

    /// Records a completed power action in the history of the machine, and has the power state read
    /// at once.
    async fn record_task(&self, object: Value) {
        let Ok(task) = read::<Task>(object) else { return };
        // These events quote the report of a BMC, which a machine with Wake-on-LAN does not have.
        let has_bmc = task.spec.connection.provider() != Ok(Provider::WakeOnLan);
        if !task.status.is("Completed") || !has_bmc {
            return;
        }
        let Some(boot_event) = task_moment(&task.spec.task) else { return };
        let owner = task.metadata.owner_references.first();
        let Some(job) = owner.map(|job| ObjectKey::new(&task.metadata.namespace, &job.name)) else {
            return;
        };
        let Ok(job) = fetch::<Job>(self.objects.as_ref(), JOB, &job).await else { return };
        let machine_ref = &job.spec.machine_ref;
        let namespace = match machine_ref.namespace.as_str() {
            "" => &job.metadata.namespace,
            other => other,
        };
        let machine = ObjectKey::new(namespace, &machine_ref.name);
        self.controller_signals.machine.signal(machine.clone());
        if let Some(hardware) = self.index.by_machine(&machine) {
            self.observers.record_event(&hardware, &boot_event);
        }
    }
}

fn task_moment(action: &Action) -> Option<BootEvent> {
    let armed = action
        .one_time_boot_device_action
        .as_ref()
        .is_some_and(|boot| boot.device.first() == Some(&BootDevice::Pxe))
        || action.boot_device.as_ref().is_some_and(|boot| boot.device == BootDevice::Pxe);
    match action.power_action {
        Some(PowerAction::On | PowerAction::Cycle | PowerAction::Reset) => {
            Some(BootEvent::PoweredOn)
        }
        Some(PowerAction::Off | PowerAction::Soft) => Some(BootEvent::PoweredOff),
        _ if armed => Some(BootEvent::NetworkBootArmed),
        _ => None,
    }
}

fn owners(object: &Value, kind: &str) -> Vec<String> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners
        .into_iter()
        .flatten()
        .filter(|owner| owner["kind"] == kind)
        .filter_map(|owner| owner["name"].as_str().map(str::to_owned))
        .collect()
}
