//! The box's own API server, and the controllers that work on its objects: ours or Rufio.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::bmc::{JOB, MACHINE, TASK};
use api::meta::{ObjectKey, Resource};
use apiserver::{AdminAccess, AuthConfig, Pki};
use axum::Router;
use controllers::BmcDrivers;
use controllers::ages::Ages;
use controllers::job::JobReconciler;
use controllers::machine::{MachineReconciler, Polls, QueuedDrivers};
use controllers::runtime::{Controller, Reconciler, Signals};
use controllers::task::{ShownErrors, TaskReconciler};
use jiff::Timestamp;
use objects::Objects;
use peers::{Process, built};
use provisioning::objects::{EngineObjects, id};
use provisioning::recorder::recorder;
use resources::{Engine, EventKind, WatchOptions, builtin, roles};
use serde_json::Value;
use stdx::SystemClock;
use store::{Options, Store};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Interval between two readings of a Machine; longer than a test.
const POLL: Duration = Duration::from_secs(3600);

/// Controllers of Machines, Jobs and Tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Tinkerbell's controllers for BMCs, in the Go program `rufio`.
    Rufio,
    /// Controllers of the box, which the crate `controllers` has.
    Box,
}

/// Running API server with controllers; dropping it ends both.
pub struct Api {
    pub objects: Arc<dyn Objects>,
    engine: Engine,
    kubeconfig: PathBuf,
    tasks: JoinSet<()>,
    rufio: Option<Process>,
    folder: TempDir,
}

impl Api {
    /// Starts an API server without objects, and the controllers of `side`.
    pub async fn start(side: Side) -> Self {
        let mut api = Self::serve().await;
        match side {
            Side::Rufio => {
                let program = built("rufio", &[]).unwrap().remove(0);
                let arguments = [api.kubeconfig.display().to_string(), "1h".to_owned()];
                let log = api.folder.path().join("rufio.log");
                api.rufio = Some(Process::start(&program, &arguments, &log).unwrap());
            }
            Side::Box => api.control(),
        }
        api
    }

    async fn serve() -> Self {
        let folder = TempDir::with_prefix("rufio-comparison-").unwrap();
        let state = folder.path().join("state");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let pki = Pki::ensure(&state, &["127.0.0.1".to_owned()], Timestamp::now()).unwrap();
        let access = AdminAccess::ensure(&state, &pki, &url).unwrap();
        let store = Store::open(&state.join("objects.redb"), Options::default()).unwrap();
        let engine = Engine::new(store, builtin::registry().unwrap(), Arc::new(SystemClock));
        engine.ensure_permanent().await.unwrap();
        roles::ensure(&engine).await.unwrap();
        let config = AuthConfig::open(&state, &url).unwrap();
        let router = apiserver::router(engine.clone(), config, Router::new());
        let tls = pki.server_config().unwrap();
        let (recorder, writer) = recorder();
        let mut tasks = JoinSet::new();
        tasks.spawn(writer.run(engine.clone(), CancellationToken::new()));
        tasks.spawn(async move {
            apiserver::serve(listener, tls, router, std::future::pending()).await.unwrap();
        });
        let objects = Arc::new(EngineObjects { engine: engine.clone(), recorder });
        let kubeconfig = access.kubeconfig;
        Self { objects, engine, kubeconfig, tasks, rufio: None, folder }
    }

    /// Starts the controllers of the box.
    fn control(&mut self) {
        let (objects, clock) = (Arc::clone(&self.objects), Arc::new(SystemClock));
        let drivers = Arc::new(QueuedDrivers::new(Arc::new(BmcDrivers::default()), clock.clone()));
        let job =
            JobReconciler { objects: objects.clone(), clock: clock.clone(), ages: Ages::default() };
        let task = TaskReconciler {
            objects: objects.clone(),
            drivers: drivers.clone(),
            clock: clock.clone(),
            ages: Ages::default(),
            shown: ShownErrors::default(),
        };
        let polls = Polls::default();
        let machine = MachineReconciler { objects, drivers, clock, poll: POLL, polls };
        let (job, task) = (self.run(job), self.run(task));
        let machine = self.run(machine);
        let jobs = job.clone();
        self.watch(JOB, move |object| jobs.signal(key(object)));
        self.watch(TASK, move |object| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            for owner in owners.into_iter().flatten() {
                let name = owner["name"].as_str().unwrap_or_default();
                job.signal(ObjectKey::new(&key(object).namespace, name));
            }
            task.signal(key(object));
        });
        self.watch(MACHINE, move |object| {
            // Signaled once: a write of the status must not cause the next reading.
            if object["status"]["powerState"].is_null() {
                machine.signal(key(object));
            }
        });
    }

    fn run(&mut self, reconciler: impl Reconciler) -> Signals {
        let controller = Controller::new(Arc::new(reconciler));
        let signals = controller.signals();
        self.tasks.spawn(controller.run(CancellationToken::new()));
        signals
    }

    fn watch(&mut self, resource: Resource, signal: impl Fn(&Value) + Send + 'static) {
        let engine = self.engine.clone();
        self.tasks.spawn(async move {
            let kind = id(resource);
            let watch = engine.watch(&kind, None, WatchOptions::default());
            let mut watch = watch.await.unwrap();
            loop {
                let event = watch.next().await.unwrap();
                if event.kind != EventKind::Bookmark {
                    signal(&event.object);
                }
            }
        });
    }

    /// Log of Rufio, for the message of a failed test.
    pub fn log(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("rufio.log"));
        let log = log.unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

fn key(object: &Value) -> ObjectKey {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    ObjectKey::new(text("namespace"), text("name"))
}
