//! Wiring of the reconcilers, and of the watches that wake them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::controllers::BmcDrivers;
use ::controllers::ages::Ages;
use ::controllers::job::JobReconciler;
use ::controllers::machine::{MachineReconciler, Polls, QueuedDrivers};
use ::controllers::runtime::{Controller, Reconciler, Signals};
use ::controllers::task::{ShownErrors, TaskReconciler};
use ::controllers::workflow::{Timeouts, WorkflowReconciler};
use anyhow::{Context as _, Result};
use box_owner::Owner;
use provisioning::object_watcher::{ControllerSignals, KINDS, ObjectWatcher};
use provisioning::references::EngineReferences;
use tokio::sync::oneshot;

use super::Wiring;
use super::sightings::BoxSightings;

/// Maximum time for reading all stored objects.
const LIST_WAIT: Duration = Duration::from_secs(60);

impl Wiring {
    fn controller(&mut self, name: &'static str, reconciler: impl Reconciler) -> Signals {
        let controller = Controller::new(Arc::new(reconciler));
        let signals = controller.signals();
        if self.safe.mode.is_some() {
            return signals;
        }
        let running = controller.run(self.shutdown.clone());
        self.spawn(name, async move {
            running.await;
            Ok(())
        });
        signals
    }

    /// Returns the drivers of BMCs, with the requests that the box received from machines.
    fn drivers(&self) -> BmcDrivers {
        let sightings = BoxSightings::new(
            self.index.clone(),
            (Arc::clone(&self.agents), Arc::clone(&self.power_hooks)),
            Arc::clone(&self.neighbor_times),
            Arc::clone(&self.observers),
            self.board.clone(),
            Arc::clone(&self.clock),
        );
        BmcDrivers { sightings: Some(Arc::new(sightings)) }
    }

    /// Starts the reader of the machines' answers to ARP.
    fn answers_to_arp(&mut self) {
        let (neighbors, shutdown) = (Arc::clone(&self.neighbor_times), self.shutdown.clone());
        self.spawn("answers to ARP", async move {
            neighbors.run(shutdown).await;
            Ok(())
        });
    }

    /// Starts the controllers, and waits until all stored objects are in the index. A machine that
    /// boots before that would be treated as a machine without a workflow.
    pub(super) async fn controllers(&mut self, state: &Path, owner: Arc<Owner>) -> Result<()> {
        self.answers_to_arp();
        let (objects, clock) = (Arc::clone(&self.objects), Arc::clone(&self.clock));
        let drivers = Arc::new(QueuedDrivers::new(Arc::new(self.drivers()), Arc::clone(&clock)));
        let timeouts = Timeouts {
            agent: Duration::from_secs(self.config.agents.silence_secs.into()),
            boot: Duration::from_secs(self.config.agents.boot_secs.into()),
        };
        let workflow = WorkflowReconciler {
            objects: Arc::clone(&objects),
            agents: Arc::clone(&self.agents) as _,
            references: Arc::new(EngineReferences::new(&self.engine, &self.config.templates)),
            clock: Arc::clone(&clock),
            timeouts,
            deadlines: Arc::default(),
            ages: Arc::default(),
            locks: Arc::default(),
        };
        let job = JobReconciler {
            objects: Arc::clone(&objects),
            clock: Arc::clone(&clock),
            ages: Ages::default(),
        };
        let task = TaskReconciler {
            objects: Arc::clone(&objects),
            drivers: drivers.clone(),
            clock: Arc::clone(&clock),
            ages: Ages::default(),
            shown: ShownErrors::default(),
        };
        let (poll, polls) = (self.config.bmc.poll(), Polls::default());
        let console_drivers = Arc::clone(&drivers);
        let machine = MachineReconciler { objects, drivers, clock, poll, polls };
        let (cluster_api, own) = self.cluster_api(state).await?;
        let controller_signals = ControllerSignals {
            cluster_api: own,
            all_cluster_api: cluster_api.signals(),
            workflow: self.controller("workflow controller", workflow),
            job: self.controller("job controller", job),
            task: self.controller("task controller", task),
            machine: self.controller("machine controller", machine),
        };
        let object_watcher = ObjectWatcher {
            engine: self.engine.clone(),
            objects: Arc::clone(&self.objects),
            index: self.index.clone(),
            controller_signals,
            images: self.images.clone(),
            observers: Arc::clone(&self.observers),
        };
        let mut lists = Vec::new();
        for resource in KINDS {
            let (listed, list) = oneshot::channel();
            lists.push((resource.kind, list));
            let running = object_watcher.clone().run(resource, listed, self.shutdown.clone());
            self.spawn("watch", async move {
                running.await;
                Ok(())
            });
        }
        for (kind, list) in lists {
            tokio::time::timeout(LIST_WAIT, list)
                .await
                .with_context(|| format!("cannot list every {kind} in time"))?
                .with_context(|| format!("cannot list every {kind}"))?;
        }
        self.management_clusters(cluster_api);
        self.consoles(state, (console_drivers, owner)).await
    }
}
