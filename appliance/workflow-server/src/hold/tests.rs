//! How long an agent waits, and for what.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::core::Happening;
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{ActionStatus, State, TaskStatus, Workflow};
use controllers::{ObjectError, Objects, Pending};
use serde_json::Value;
use status::story::Moment;
use stdx::SystemClock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use workflow_rpc::{Refusal, Workflows as _};

use crate::{Rack, Runs, Service, Settings, Told};

pub const AGENT: &str = "52:54:00:77:00:01";
const PATIENCE: Duration = Duration::from_secs(20);

/// One workflow, or none.
#[derive(Default)]
pub struct One(pub Mutex<Option<Value>>);

fn never<'a, T>() -> Pending<'a, T> {
    Box::pin(async { Err(ObjectError::Internal("nobody writes here".to_owned())) })
}

impl Objects for One {
    fn get<'a>(&'a self, _: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        let there = self.0.lock().unwrap().clone();
        Box::pin(async move { there.ok_or_else(|| ObjectError::NotFound(key.to_string())) })
    }

    fn list<'a>(&'a self, _: Resource, _: Option<&'a str>) -> Pending<'a, Vec<Value>> {
        never()
    }

    fn create(&self, _: Resource, _: Value) -> Pending<'_, Value> {
        never()
    }

    fn update(&self, _: Resource, _: Value) -> Pending<'_, Value> {
        never()
    }

    fn update_status(&self, _: Resource, object: Value) -> Pending<'_, Value> {
        let mut held = self.0.lock().unwrap();
        if let Some(held) = &mut *held {
            held["status"] = object["status"].clone();
        }
        Box::pin(async move { Ok(object) })
    }

    fn delete<'a>(&'a self, _: Resource, _: &'a ObjectKey) -> Pending<'a, ()> {
        never()
    }

    fn record(&self, _: Happening) {}
}

struct Anybody;

impl Rack for Anybody {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn may_introduce_itself(&self, _: &str) -> bool {
        true
    }

    fn verify(&self, _: &str, _: &str, _: &str) -> bool {
        true
    }

    fn environment(&self, _: &str, _: bool, _: &str, environment: Vec<String>) -> Vec<String> {
        environment
    }

    fn met(&self, _: Told, _: bool) {}

    fn tell(&self, _: &str, _: &Moment) {}

    fn printed(&self, _: &str, _: Vec<String>) {}
}

pub struct Desk {
    pub objects: Arc<One>,
    runs: Runs,
    pub service: Arc<Service>,
    closing: CancellationToken,
}

pub fn desk() -> Desk {
    let (objects, runs, closing) =
        (Arc::new(One::default()), Runs::default(), CancellationToken::new());
    let service = Arc::new(Service::new(
        objects.clone(),
        runs.clone(),
        Arc::new(Anybody),
        Arc::new(SystemClock),
        Settings::default(),
        closing.clone(),
    ));
    Desk { objects, runs, service, closing }
}

impl Desk {
    pub fn put(&self, state: State) {
        let mut workflow = Workflow::default();
        (workflow.metadata.namespace, workflow.metadata.name) = ("default".into(), "wf".into());
        workflow.status.state = state;
        let action = ActionStatus { id: "a".into(), name: "write".into(), ..Default::default() };
        let task =
            TaskStatus { agent_id: AGENT.into(), actions: vec![action], ..Default::default() };
        workflow.status.tasks = vec![task];
        *self.objects.0.lock().unwrap() = Some(serde_json::to_value(&workflow).unwrap());
        self.runs.put(&workflow);
    }

    /// What an agent is answered, and how long that takes.
    async fn ask(&self, patience: Duration) -> (Result<String, Refusal>, Duration) {
        let began = Instant::now();
        let answer = self.service.next(AGENT, None, patience).await;
        (answer.map(|given| given.name), began.elapsed())
    }
}

#[tokio::test(start_paused = true)]
async fn one_who_waits_is_told_at_once() {
    let desk = desk();
    let appear = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        desk.put(State::Pending);
    };
    let ((answer, took), ()) = tokio::join!(desk.ask(PATIENCE), appear);
    assert_eq!(answer.as_deref(), Ok("write"));
    assert_eq!(took.as_secs(), 7);
    assert_eq!(desk.ask(PATIENCE).await, (Ok("write".to_owned()), Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever() {
    let desk = desk();
    for (patience, waits) in [(0, 0), (20, 20), (255, 30)] {
        let (answer, took) = desk.ask(Duration::from_secs(patience)).await;
        assert!(matches!(answer, Err(Refusal::NotFound(_))), "{answer:?}");
        assert_eq!(took.as_secs(), waits, "a patience of {patience} s");
    }
    desk.put(State::Preparing);
    let (answer, took) = desk.ask(PATIENCE).await;
    assert!(matches!(answer, Err(Refusal::Precondition(_))), "{answer:?}");
    assert_eq!(took, PATIENCE);
}

#[tokio::test(start_paused = true)]
async fn a_box_that_stops_keeps_nobody() {
    let desk = desk();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        desk.closing.cancel();
    };
    let ((answer, took), ()) = tokio::join!(desk.ask(PATIENCE), stop);
    assert!(matches!(answer, Err(Refusal::Unavailable(_))), "{answer:?}");
    assert_eq!(took.as_secs(), 3);
}
