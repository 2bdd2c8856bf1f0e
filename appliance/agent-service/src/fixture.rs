//! Test fixture: service with one workflow in memory.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent_rpc::AgentReport;
use api::core::ObjectEvent;
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{ActionStatus, State, TaskStatus, Workflow};
use objects::{ObjectError, Objects, Pending};
use serde_json::Value;
use status::boot_event::BootEvent;
use stdx::SystemClock;
use tokio_util::sync::CancellationToken;

use crate::{Backend, Runs, Service, Settings, TokenUse};

pub const AGENT: &str = "52:54:00:77:00:01";

/// At most one workflow, and the number of reads.
#[derive(Default)]
pub struct One(pub Mutex<Option<Value>>, pub AtomicUsize);

fn never<'a, T>() -> Pending<'a, T> {
    Box::pin(async { Err(ObjectError::Internal("the test has no writer".to_owned())) })
}

impl Objects for One {
    fn get<'a>(&'a self, _: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        self.1.fetch_add(1, Ordering::Relaxed);
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

    fn delete_uid<'a>(&'a self, _: Resource, _: &'a ObjectKey, _: &'a str) -> Pending<'a, ()> {
        never()
    }

    fn record(&self, _: ObjectEvent) {}
}

struct Anybody;

impl Backend for Anybody {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn may_introduce_itself(&self, _: &str) -> bool {
        true
    }

    fn is_sender(&self, _: &str, peer: Option<SocketAddr>) -> bool {
        peer.is_none()
    }

    fn verify(&self, _: &str, _: &str, _: &str) -> Option<TokenUse> {
        Some(TokenUse::OneBoot)
    }

    fn environment(&self, _: &str, _: bool, _: &str, environment: Vec<String>) -> Vec<String> {
        environment
    }

    fn receive_report(&self, _: AgentReport, _: bool) {}

    fn record_event(&self, _: &str, _: &BootEvent) {}

    fn record_output(&self, _: &str, _: Vec<String>) {}
}

pub struct Fixture {
    pub objects: Arc<One>,
    pub runs: Runs,
    pub service: Arc<Service>,
    pub closing: CancellationToken,
}

pub fn fixture() -> Fixture {
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
    Fixture { objects, runs, service, closing }
}

impl Fixture {
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
}
