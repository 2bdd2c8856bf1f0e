//! Tests of outages of the management cluster, in simulated time: the controller retries, and after
//! the outage the machine has the state of a life without one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::bmc::JOB;
use api::core::ObjectEvent;
use api::infrastructure::TINKERBELL_MACHINE;
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use controllers::runtime::{Controller, Signals};
use objects::fake::Memory;
use objects::{ObjectError, Objects, Pending};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::World;
use super::deletion::{bmc, end_job};

/// Lengths of the outage.
const OUTAGES: [Duration; 2] = [Duration::from_secs(600), Duration::from_secs(3600)];
/// Maximum time until the controller has noticed the end of an outage.
const NOTICE_MAX: Duration = Duration::from_secs(16);
/// Changes in the life of a machine.
const CHANGES: usize = 4;

/// Objects behind a network that can fail.
#[derive(Default)]
struct Link {
    memory: Arc<Memory>,
    is_away: AtomicBool,
    /// Attempts to reach the objects during an outage.
    attempts: Mutex<usize>,
    /// Kind and name of each created object.
    created: Mutex<Vec<(&'static str, String)>>,
}

impl Link {
    fn pass<'a, T: Send + 'a>(&'a self, call: Pending<'a, T>) -> Pending<'a, T> {
        if !self.is_away.load(Ordering::SeqCst) {
            return call;
        }
        *self.attempts.lock().unwrap() += 1;
        let (what, why) = ("the management cluster".to_owned(), "timeout".to_owned());
        let error = ObjectError::Unavailable { what, why, hint: None };
        Box::pin(async { Err(error) })
    }
}

impl Objects for Link {
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        self.pass(self.memory.get(resource, key))
    }

    fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>> {
        self.pass(self.memory.list(resource, namespace))
    }

    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        self.created.lock().unwrap().push((resource.kind, name));
        self.pass(self.memory.create(resource, object))
    }

    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        self.pass(self.memory.update(resource, object))
    }

    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        self.pass(self.memory.update_status(resource, object))
    }

    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()> {
        self.pass(self.memory.delete(resource, key))
    }

    fn delete_uid<'a>(
        &'a self,
        resource: Resource,
        key: &'a ObjectKey,
        uid: &'a str,
    ) -> Pending<'a, ()> {
        self.pass(self.memory.delete_uid(resource, key, uid))
    }

    fn record(&self, happening: ObjectEvent) {
        self.memory.record(happening);
    }
}

fn link(memory: &Arc<Memory>) -> Arc<Link> {
    Arc::new(Link { memory: Arc::clone(memory), ..Link::default() })
}

/// State after a change.
#[derive(Debug, PartialEq)]
struct State {
    /// Reason of the condition `Ready`; `None` for a deleted machine.
    reason: Option<String>,
    /// All objects that the box has created for itself, also deleted ones.
    created: Vec<(&'static str, String)>,
    /// Reasons of all events.
    events: Vec<String>,
}

/// A machine with a running controller.
struct Life {
    world: World,
    management: Arc<Link>,
    box_api: Arc<Link>,
    signals: Signals,
}

impl Life {
    fn start() -> (Self, CancellationToken) {
        let world = World::paired();
        world.hardware("nuc1", bmc());
        let (management, box_api) = (link(&world.management), link(&world.box_api));
        let reconciler = world.reconciler_on(management.clone(), box_api.clone());
        let controller = Controller::new(Arc::new(reconciler));
        let (signals, stop) = (controller.signals(), CancellationToken::new());
        tokio::spawn(controller.run(stop.clone()));
        (Self { world, management, box_api, signals }, stop)
    }

    /// Does a change, and signals the controller.
    async fn change(&self, number: usize) {
        let key = ObjectKey::new("default", "worker");
        match number {
            0 => {}
            1 => self.world.set_workflow("worker", json!({ "state": "SUCCESS" })),
            2 => self.world.management.delete(TINKERBELL_MACHINE, &key).await.unwrap(),
            _ => end_job(&self.world),
        }
        self.signals.signal(key);
    }

    /// Returns all objects of the box.
    fn all(&self) -> Vec<Value> {
        let memory = &self.world.box_api;
        let of = |resource| memory.names(resource).into_iter().map(move |name| (resource, name));
        let all = [HARDWARE, TEMPLATE, WORKFLOW, JOB].into_iter().flat_map(of);
        all.filter_map(|(resource, name)| memory.peek(resource, &name)).collect()
    }

    fn state(&self) -> State {
        let machine = self.world.management.peek(TINKERBELL_MACHINE, "worker");
        State {
            reason: machine.map(|_| self.world.condition("worker", "Ready").1),
            created: self.box_api.created.lock().unwrap().clone(),
            events: self.world.reasons(),
        }
    }
}

/// Runs a life whose change `cut` happens in an outage. Returns the states after each change.
async fn live(cut: Option<(usize, Duration)>) -> Vec<State> {
    let (life, stop) = Life::start();
    let mut states = Vec::new();
    for number in 0..CHANGES {
        let outage = cut.filter(|(at, _)| *at == number).map(|(_, length)| length);
        life.management.is_away.store(outage.is_some(), Ordering::SeqCst);
        life.change(number).await;
        if let Some(length) = outage {
            let before = life.all();
            tokio::time::sleep(length).await;
            assert_eq!(life.all(), before, "nothing happens to a machine in an outage");
            // The box retries at a limited rate.
            let attempts = *life.management.attempts.lock().unwrap();
            let expected = usize::try_from(length.as_secs() / 15).unwrap();
            assert!((expected / 2..expected * 3).contains(&attempts), "{attempts} attempts");
            life.management.is_away.store(false, Ordering::SeqCst);
        }
        // No signal: the controller notices the end of the outage itself.
        tokio::time::sleep(NOTICE_MAX).await;
        states.push(life.state());
    }
    assert!(life.world.management.peek(TINKERBELL_MACHINE, "worker").is_none());
    stop.cancel();
    states
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_management_cluster_delays_and_repeats_nothing() {
    let expected = live(None).await;
    let created = &expected[CHANGES - 1].created;
    let once = [("Template", "worker"), ("Workflow", "worker"), ("Job", "worker-poweroff")];
    assert_eq!(*created, once.map(|(kind, name)| (kind, name.to_owned())));
    for length in OUTAGES {
        for number in 0..CHANGES {
            let found = live(Some((number, length))).await;
            assert_eq!(found, expected, "change {number}, {length:?}");
        }
    }
}
