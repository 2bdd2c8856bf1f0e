//! One life of the box, until it is killed: the real service behind the real protocol, the real
//! controllers, and a watch that feeds them, wired as in `supervisor`.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use agent_rpc::AgentReport;
use agent_service::{Backend, Runs, Service, Settings, TokenUse};
use api::bmc::{JOB, MACHINE, TASK};
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{Reference, WORKFLOW};
use controllers::References;
use controllers::ages::Ages;
use controllers::job::JobReconciler;
use controllers::machine::{MachineReconciler, Refusals};
use controllers::runtime::{Controller, Reconciler, Signals};
use controllers::task::TaskReconciler;
use controllers::workflow::{Timeouts, WorkflowReconciler};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use objects::{ObjectError, Objects, Pending, read};
use serde_json::Value;
use status::boot_event::BootEvent;
use stdx::Clock;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::bmc::Controllers;
use super::objects::{Change, Store};
use super::world::World;

/// Timeouts of the product's default configuration.
const TIMEOUTS: Timeouts =
    Timeouts { agent: Duration::from_secs(60), boot: Duration::from_secs(300) };
/// The kinds that are watched.
const KINDS: [Resource; 4] = [WORKFLOW, JOB, TASK, MACHINE];
/// Interval of the periodic poll of a management controller.
const POLL: Duration = Duration::from_secs(300);
/// Connections that wait to be accepted: Linux' own limit is 4096.
const BACKLOG: usize = 4096;
/// Maximum downtime of the box after a kill.
const AWAY: Duration = Duration::from_secs(20);

/// Number of the box's own random source, which decides its kills; no machine has this number.
const BOX: u64 = u64::MAX;

/// One life of the box.
pub struct Appliance {
    tasks: JoinSet<()>,
    wakes: Wakes,
    runs: Runs,
}

/// References resolver for a rack in which no Hardware refers to another object.
struct NoReferences;

impl References for NoReferences {
    fn read<'a>(&'a self, from: &'a ObjectKey, _to: &'a Reference) -> Pending<'a, Value> {
        Box::pin(async move { Err(ObjectError::Invalid(format!("{from} refers to nothing"))) })
    }
}

#[derive(Clone)]
struct Wakes {
    workflow: Signals,
    job: Signals,
    task: Signals,
    machine: Signals,
}

impl Appliance {
    /// Runs the box in an endless loop of start, kill and downtime.
    pub async fn live(world: Weak<World>) {
        let Some(chance) = world.upgrade().map(|world| world.chance.own(BOX)) else { return };
        loop {
            let Some(alive) = world.upgrade() else { return };
            let mut appliance = Self::start(&alive);
            let life = chance.life(chance.faults().kill);
            let dying = Arc::clone(&alive.dying);
            drop(alive);
            let its_time = async {
                match life {
                    Some(life) => tokio::time::sleep(life).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = its_time => {}
                () = dying.notified() => {}
                () = ended(&mut appliance.tasks) => return,
            }
            let Some(alive) = world.upgrade() else { return };
            alive.set_life(None);
            alive.count(|summary| summary.kills += 1);
            let away = alive.time_away().unwrap_or_else(|| chance.upto(AWAY));
            // Dropping the box stops all its tasks at once.
            drop((appliance, alive));
            tokio::time::sleep(away).await;
        }
    }

    fn start(world: &Arc<World>) -> Self {
        let objects: Arc<dyn Objects> = Arc::new(Store(Arc::downgrade(world)));
        let (clock, runs) = (world.clock(), Runs::default());
        let service = Arc::new(Service::new(
            Arc::clone(&objects),
            runs.clone(),
            Arc::new(Machines(Arc::downgrade(world))),
            Arc::clone(&clock),
            Settings::default(),
            CancellationToken::new(),
        ));
        let mut tasks = JoinSet::new();
        let wakes = controllers(&mut tasks, world, &objects, &clock, &service);
        let mut appliance = Self { tasks, wakes, runs: runs.clone() };
        let changes = world.objects.watch();
        for resource in KINDS {
            for object in world.objects.all(resource) {
                let key = key(&object);
                if resource == MACHINE {
                    appliance.wakes.machine.signal(key.clone());
                }
                changed(&appliance.runs, &appliance.wakes, &(resource, key, Some(object)));
            }
        }
        appliance.runs.complete();
        appliance.follow(world, changes);
        let (front, accepted) = mpsc::channel(BACKLOG);
        appliance.tasks.spawn(serve(accepted, service));
        world.set_life(Some((front, runs)));
        appliance
    }

    /// Feeds changes to controllers and service, delayed and in order.
    fn follow(&mut self, world: &Arc<World>, mut changes: mpsc::Receiver<Change>) {
        let (world, wakes, runs) = (Arc::downgrade(world), self.wakes.clone(), self.runs.clone());
        self.tasks.spawn(async move {
            let mut batch = Vec::new();
            while changes.recv_many(&mut batch, usize::MAX).await > 0 {
                let Some(world) = world.upgrade() else { return };
                world.chance.delay().await;
                for change in batch.drain(..) {
                    self::changed(&runs, &wakes, &change);
                }
            }
        });
    }
}

/// Waits until every task of the box has ended; no task ends before the simulation is over.
async fn ended(tasks: &mut JoinSet<()>) {
    while let Some(part) = tasks.join_next().await {
        part.unwrap_or_else(|error| panic!("a part of the box ended: {error}"));
    }
}

fn key(object: &Value) -> ObjectKey {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"))
}

/// Signals the controllers that a change concerns; as `provisioning::object_watcher`.
fn changed(runs: &Runs, wakes: &Wakes, (resource, key, object): &Change) {
    let Some(object) = object else {
        if *resource == WORKFLOW {
            runs.remove(key);
        }
        return;
    };
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    for owner in owners.into_iter().flatten() {
        let name = owner["name"].as_str().unwrap_or_default();
        let owner_key = ObjectKey::new(&key.namespace, name);
        match owner["kind"].as_str() {
            Some("Workflow") => wakes.workflow.signal(owner_key),
            Some("Job") => wakes.job.signal(owner_key),
            _ => {}
        }
    }
    let signals = match resource.kind {
        "Workflow" => {
            runs.put(&read(object.clone()).expect("what controllers write can be read"));
            &wakes.workflow
        }
        "Job" => &wakes.job,
        "Task" => &wakes.task,
        // Only their own reconciler writes Machines here.
        _ => return,
    };
    signals.signal(key.clone());
}

fn controllers(
    tasks: &mut JoinSet<()>,
    world: &Arc<World>,
    objects: &Arc<dyn Objects>,
    clock: &Arc<dyn Clock>,
    service: &Arc<Service>,
) -> Wakes {
    let drivers = Arc::new(Controllers(Arc::downgrade(world)));
    let (objects, clock) = (|| Arc::clone(objects), || Arc::clone(clock));
    let workflow = WorkflowReconciler {
        objects: objects(),
        agents: Arc::clone(service) as _,
        references: Arc::new(NoReferences),
        clock: clock(),
        timeouts: TIMEOUTS,
        deadlines: Arc::default(),
        ages: Arc::default(),
        locks: Arc::default(),
    };
    let task = TaskReconciler {
        objects: objects(),
        drivers: drivers.clone(),
        clock: clock(),
        ages: Ages::default(),
    };
    let machine = MachineReconciler {
        objects: objects(),
        drivers,
        clock: clock(),
        poll: POLL,
        refusals: Refusals::default(),
    };
    let job = JobReconciler { objects: objects(), clock: clock(), ages: Ages::default() };
    Wakes {
        workflow: controller(tasks, workflow),
        job: controller(tasks, job),
        task: controller(tasks, task),
        machine: controller(tasks, machine),
    }
}

fn controller(tasks: &mut JoinSet<()>, reconciler: impl Reconciler) -> Signals {
    let controller = Controller::new(Arc::new(reconciler));
    let signals = controller.signals();
    tasks.spawn(controller.run(CancellationToken::new()));
    signals
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

/// Machine facts for the service; every machine is trusted to be what it claims.
struct Machines(Weak<World>);

/// The token that a machine was given at this boot.
pub fn token(agent_id: &str, workflow_uid: &str, boot_id: &str) -> String {
    format!("{agent_id} {workflow_uid} {boot_id}")
}

impl Backend for Machines {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn may_introduce_itself(&self, _: &str) -> bool {
        false
    }

    fn is_sender(&self, _: &str, _: Option<SocketAddr>) -> bool {
        true
    }

    fn verify(&self, shown: &str, agent_id: &str, workflow_uid: &str) -> Option<TokenUse> {
        let of_any_boot = token(agent_id, workflow_uid, "");
        shown.starts_with(&of_any_boot).then_some(TokenUse::OneBoot)
    }

    fn environment(&self, _: &str, _: bool, _: &str, environment: Vec<String>) -> Vec<String> {
        environment
    }

    fn receive_report(&self, _: AgentReport, _: bool) {}

    fn record_event(&self, agent_id: &str, event: &BootEvent) {
        if let Some(world) = self.0.upgrade() {
            world.history().moments.push((agent_id.to_owned(), format!("{event:?}")));
        }
    }

    fn record_output(&self, _: &str, _: Vec<String>) {}
}
