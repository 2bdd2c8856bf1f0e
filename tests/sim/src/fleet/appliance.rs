//! One life of the box, until it is killed: the product's services, controllers and watches, wired
//! as in `supervisor`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use agent_service::Service;
use config::Config;
use controllers::ages::Ages;
use controllers::enrollment::{Enrollment, ReportInbox};
use controllers::job::JobReconciler;
use controllers::machine::{MachineReconciler, Polls, QueuedDrivers};
use controllers::runtime::{Controller, Reconciler, Signals};
use controllers::task::{ShownErrors, TaskReconciler};
use controllers::workflow::{Timeouts, WorkflowReconciler};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use objects::Objects;
use provisioning::agent_backend::AgentBackend;
use provisioning::boot_token;
use provisioning::images::Images;
use provisioning::index::Index;
use provisioning::learned_loaders::{self, Loaders};
use provisioning::object_watcher::{ControllerSignals, KINDS, ObjectWatcher};
use provisioning::objects::EngineObjects;
use provisioning::observers::Observers;
use provisioning::recorder::recorder;
use provisioning::references::EngineReferences;
use stdx::Clock;
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::bmc::Controllers;
use super::objects::Store;
use super::time::{in_step, late};
use super::world::World;
use crate::rack;

/// Connections that wait to be accepted: Linux' own limit is 4096.
const BACKLOG: usize = 4096;
/// Maximum downtime of the box after a kill.
const AWAY: Duration = Duration::from_secs(20);

/// Number of the box's own random source, which decides its kills; no machine has this number.
const BOX: u64 = u64::MAX;

/// One life of the box.
pub struct Appliance {
    tasks: JoinSet<()>,
    world: Weak<World>,
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    config: Arc<Config>,
}

impl Appliance {
    /// Runs the box in an endless loop of start, kill and downtime.
    pub async fn live(world: Weak<World>) {
        let Some(chance) = world.upgrade().map(|world| world.chance.own(BOX)) else { return };
        loop {
            let Some(alive) = world.upgrade() else { return };
            alive.starts_life();
            let life = chance.life(chance.faults().kill);
            let dying = Arc::clone(&alive.dying);
            let its_time = async {
                match life {
                    Some(life) => tokio::time::sleep(life).await,
                    None => std::future::pending().await,
                }
            };
            // Dropping the box stops all its tasks at once.
            tokio::select! {
                () = its_time => {}
                () = dying.notified() => {}
                () = Self::run(alive) => return,
            }
            let Some(alive) = world.upgrade() else { return };
            alive.ends_life();
            alive.count(|summary| summary.kills += 1);
            let away = alive.time_away().unwrap_or_else(|| chance.upto(AWAY));
            drop(alive);
            tokio::time::sleep(away).await;
        }
    }

    /// Starts the box, and waits until every task of it has ended; no task ends before the
    /// simulation is over.
    async fn run(world: Arc<World>) {
        let mut tasks = Self::start(&world).await;
        drop(world);
        while let Some(part) = tasks.join_next().await {
            part.unwrap_or_else(|error| panic!("a part of the box ended: {error}"));
        }
    }

    async fn start(world: &Arc<World>) -> JoinSet<()> {
        let (clock, config) = (world.clock(), Arc::new(rack::box_config()));
        let (engine, store) = (world.objects.engine.clone(), world.objects.store.clone());
        let (recorder, writer) = recorder();
        let mut tasks = JoinSet::new();
        tasks.spawn(in_step(store, writer.run(engine.clone(), CancellationToken::new())));
        let inner = EngineObjects { engine, recorder: recorder.clone() };
        let objects: Arc<dyn Objects> = Arc::new(Store { world: Arc::downgrade(world), inner });
        let (index, (loaders, lessons)) = (Index::default(), Loaders::new());
        let loaders = Arc::new(loaders);
        let observers =
            Observers::new(index.clone(), recorder, Arc::clone(&clock), Arc::clone(&loaders));
        let views = Arc::new(rack::views(index.clone(), loaders, &clock, &config));
        let images = Images::open(&config, world.objects.folder.path());
        let images = images.expect("the box has no cache of images");
        let (report_inbox, reports) = ReportInbox::new();
        let enrollment =
            Enrollment::new(&objects, Arc::new(index), &clock, config.agents.enrollment);
        let kept = Arc::clone(&objects);
        tasks.spawn(async move {
            tokio::join!(learned_loaders::keep(kept.as_ref(), lessons), enrollment.run(reports));
        });
        let backend = AgentBackend {
            views: Arc::clone(&views),
            observers: Arc::new(observers),
            report_inbox,
            images: images.clone(),
            log: Arc::default(),
        };
        let observers = Arc::clone(&backend.observers);
        let service = backend.service(&objects, CancellationToken::new());
        let state = world.objects.folder.path();
        boot_token::restore(&service, state);
        tasks.spawn(boot_token::keep(Arc::clone(&service), state.to_owned()));
        let mut appliance = Self { tasks, world: Arc::downgrade(world), objects, clock, config };
        let controller_signals = appliance.controllers(world, &service);
        let object_watcher = ObjectWatcher {
            engine: world.objects.engine.clone(),
            objects: Arc::clone(&appliance.objects),
            index: views.index.clone(),
            controller_signals,
            images,
            observers,
        };
        appliance.watch(&object_watcher).await;
        let (front, accepted) = mpsc::channel(BACKLOG);
        appliance.tasks.spawn(serve(accepted, service));
        world.serves(front, views);
        appliance.tasks
    }

    /// Starts the watches, which get each change late, and waits until they have listed all
    /// objects.
    async fn watch(&mut self, watcher: &ObjectWatcher) {
        let mut lists = Vec::new();
        for resource in KINDS {
            let (listed, list) = oneshot::channel();
            lists.push(list);
            let watching = watcher.clone().run(resource, listed, CancellationToken::new());
            self.tasks.spawn(late(Weak::clone(&self.world), watching));
        }
        for list in lists {
            list.await.expect("no watch ends");
        }
    }

    fn controllers(&mut self, world: &World, service: &Arc<Service>) -> ControllerSignals {
        let drivers = Arc::new(Controllers(Weak::clone(&self.world)));
        let (objects, clock) = (Arc::clone(&self.objects), Arc::clone(&self.clock));
        let drivers = Arc::new(QueuedDrivers::new(drivers, Arc::clone(&clock)));
        let agents = &self.config.agents;
        let timeouts = Timeouts {
            agent: Duration::from_secs(agents.silence_secs.into()),
            boot: Duration::from_secs(agents.boot_secs.into()),
        };
        let workflow = WorkflowReconciler {
            objects: Arc::clone(&objects),
            agents: Arc::clone(service) as _,
            references: Arc::new(EngineReferences::new(
                &world.objects.engine,
                &self.config.templates,
            )),
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
        let machine = MachineReconciler { objects, drivers, clock, poll, polls };
        ControllerSignals {
            workflow: self.controller(workflow),
            job: self.controller(job),
            task: self.controller(task),
            machine: self.controller(machine),
            cluster_api: Arc::default(),
            all_cluster_api: Arc::default(),
        }
    }

    fn controller(&mut self, reconciler: impl Reconciler) -> Signals {
        let controller = Controller::new(Arc::new(reconciler));
        let signals = controller.signals();
        self.tasks.spawn(controller.run(CancellationToken::new()));
        signals
    }
}

/// Serves the agent protocol; in the product this is port 42113.
async fn serve(mut accepted: mpsc::Receiver<DuplexStream>, service: Arc<Service>) {
    let routes = agent_rpc::server::routes(service);
    let mut connections = JoinSet::new();
    while let Some(stream) = accepted.recv().await {
        let routes = TowerToHyperService::new(routes.clone());
        connections.spawn(async move {
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            // The agent of a broken connection connects again.
            let _ = builder.serve_connection(TokioIo::new(stream), routes).await;
        });
        while connections.try_join_next().is_some() {}
    }
}
