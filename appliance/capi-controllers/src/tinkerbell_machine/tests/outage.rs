//! Tests of outages of the management cluster, in simulated time: the controller retries, and after
//! the outage the machine has the state of a life without one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::bmc::JOB;
use api::infrastructure::TINKERBELL_MACHINE;
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use controllers::runtime::{Controller, Signals};
use objects::fake::Memory;
use objects::{ObjectError, Objects as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::World;
use super::deletion::{bmc, end_job};
use super::guarded::{Call, Guard, Guarded};

/// Lengths of the outage.
const OUTAGES: [Duration; 2] = [Duration::from_secs(600), Duration::from_secs(3600)];
/// Maximum time until the controller has noticed the end of an outage.
const NOTICE_MAX: Duration = Duration::from_secs(16);
/// Changes in the life of a machine.
const CHANGES: usize = 4;

/// Network that can fail.
#[derive(Default)]
struct Link {
    is_away: AtomicBool,
    /// Attempts to reach the objects during an outage.
    attempts: AtomicUsize,
    /// Kind and name of each created object.
    created: Mutex<Vec<(&'static str, String)>>,
}

impl Guard for Link {
    fn check(&self, call: &Call<'_>) -> Result<(), ObjectError> {
        if let Call::Create(resource, object) = call {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            self.created.lock().unwrap().push((resource.kind, name));
        }
        if !self.is_away.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.attempts.fetch_add(1, Ordering::SeqCst);
        let (what, why) = ("the management cluster".to_owned(), "timeout".to_owned());
        Err(ObjectError::Unavailable { what, why, hint: None })
    }
}

fn link(memory: &Arc<Memory>) -> Arc<Guarded<Link>> {
    Arc::new(Guarded { memory: Arc::clone(memory), guard: Link::default() })
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
    management: Arc<Guarded<Link>>,
    box_api: Arc<Guarded<Link>>,
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
            created: self.box_api.guard.created.lock().unwrap().clone(),
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
        life.management.guard.is_away.store(outage.is_some(), Ordering::SeqCst);
        life.change(number).await;
        if let Some(length) = outage {
            let before = life.all();
            tokio::time::sleep(length).await;
            assert_eq!(life.all(), before, "nothing happens to a machine in an outage");
            // The box retries at a limited rate.
            let attempts = life.management.guard.attempts.load(Ordering::SeqCst);
            let expected = usize::try_from(length.as_secs() / 15).unwrap();
            assert!((expected / 2..expected * 3).contains(&attempts), "{attempts} attempts");
            life.management.guard.is_away.store(false, Ordering::SeqCst);
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
