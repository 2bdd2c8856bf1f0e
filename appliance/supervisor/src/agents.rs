//! The agents' side of the workflow engine: who asks, what they are given, what they report.

mod assign;
mod wire;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::state::report::{self, Refused};
use api::tinkerbell::{ActionState, WORKFLOW, Workflow};
use controllers::{Agents, Life, ObjectError, Objects, fetch, write_status};
use jiff::Timestamp;
use status::story::Moment;
use stdx::Clock;
use wire::{api_report, workflow_key};
use workflow_rpc::{Assignment, Attributes, Hello, Pending, Progress, Refusal, Report, Workflows};

use crate::boot_token::BootTokens;
use crate::discovery::Discovery;
use crate::hardware_views::HardwareViews;
use crate::images::Images;
use crate::index::Index;
use crate::observers::Observers;

/// How often a report is tried again when somebody wrote the Workflow in between.
const CONFLICTS_MAX: usize = 10;
/// How many agents are remembered.
const AGENTS_MAX: usize = 4096;

/// How far an action has come, as an agent last said.
#[derive(Debug, Clone)]
pub struct Latest {
    /// What it said.
    pub progress: Progress,
    /// When the action's first progress came.
    pub since: Timestamp,
    /// When this came.
    pub at: Timestamp,
}

/// The workflow service.
pub struct AgentService {
    objects: Arc<dyn Objects>,
    index: Index,
    observers: Arc<Observers>,
    tokens: BootTokens,
    clock: Arc<dyn Clock>,
    permissive: bool,
    discovery: Discovery,
    views: Arc<HardwareViews>,
    images: Images,
    /// When the box began to listen: silence is counted from here at the earliest.
    since: Timestamp,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    heard: HashMap<String, Timestamp>,
    beating: HashSet<String>,
    /// The boot each is in, of those that say so.
    boots: HashMap<String, String>,
    progress: HashMap<String, Latest>,
}

impl AgentService {
    /// A service over `objects`.
    pub fn new(
        objects: Arc<dyn Objects>,
        views: Arc<HardwareViews>,
        observers: Arc<Observers>,
        discovery: Discovery,
        images: Images,
    ) -> Self {
        Self {
            objects,
            index: views.index.clone(),
            observers,
            tokens: views.tokens.clone(),
            clock: Arc::clone(&views.clock),
            permissive: views.config.agents.permissive,
            discovery,
            since: views.clock.now(),
            known: Mutex::default(),
            views,
            images,
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The boot of its machine that an agent is in; empty where it never said.
    fn boot_of(&self, agent_id: &str) -> String {
        self.known().boots.get(agent_id).cloned().unwrap_or_default()
    }

    fn hear(&self, agent_id: &str) {
        let now = self.clock.now();
        // Whoever makes up names is not remembered, so that those with a name have room.
        if !self.index.knows_agent(agent_id) {
            return;
        }
        let mut known = self.known();
        if known.heard.len() < AGENTS_MAX || known.heard.contains_key(agent_id) {
            known.heard.insert(agent_id.to_owned(), now);
        }
    }

    /// Takes in an agent that nobody knows.
    fn meet(&self, agent_id: &str, attributes: Option<Attributes>) {
        if let Some(attributes) = attributes
            && self.index.enrolls()
            && !self.index.knows_agent(agent_id)
        {
            self.discovery.meet(agent_id, attributes);
        }
    }

    fn tell(&self, agent_id: &str, moment: &Moment) {
        if let Some(hardware) = self.index.by_agent(agent_id) {
            self.observers.tell(&hardware, moment);
        }
    }

    /// The last progress of a workflow (`namespace/name`).
    pub fn latest(&self, workflow_id: &str) -> Option<Latest> {
        self.known().progress.get(workflow_id).cloned()
    }

    /// The name of the action a progress is about; its id when the workflow is gone.
    pub async fn action_name(&self, progress: &Progress) -> String {
        let id = &progress.action_id;
        let Ok(key) = workflow_key(&progress.workflow_id) else { return id.clone() };
        let workflow = fetch::<Workflow>(self.objects.as_ref(), WORKFLOW, &key).await;
        let tasks = workflow.map(|workflow| workflow.status.tasks).unwrap_or_default();
        let mut actions = tasks.into_iter().flat_map(|task| task.actions);
        actions.find(|action| action.id == *id).map_or_else(|| id.clone(), |action| action.name)
    }

    /// Remember how far an action has come.
    fn note(&self, progress: Progress) {
        let at = self.clock.now();
        let mut known = self.known();
        if !self.index.runs_for(&progress.workflow_id, &progress.agent_id) {
            return;
        }
        let before = known.progress.get(&progress.workflow_id);
        let since = match before {
            Some(latest) if latest.progress.action_id == progress.action_id => latest.since,
            _ => at,
        };
        if known.progress.len() < AGENTS_MAX || before.is_some() {
            let latest = Latest { since, at, progress };
            known.progress.insert(latest.progress.workflow_id.clone(), latest);
        }
    }

    async fn take(&self, from: &Report) -> Result<(), Refusal> {
        let key = workflow_key(&from.workflow_id)?;
        for _ in 0..CONFLICTS_MAX {
            let workflow: Workflow = match fetch(self.objects.as_ref(), WORKFLOW, &key).await {
                Ok(workflow) => workflow,
                Err(ObjectError::NotFound(why)) => return Err(Refusal::NotFound(why)),
                Err(error) => return Err(Refusal::Internal(error.to_string())),
            };
            let mut status = workflow.status.clone();
            let said = api_report(from, &workflow, self.boot_of(&from.agent_id));
            let held = match &workflow.spec {
                spec if spec.disabled == Some(true) => Some("disabled"),
                spec if spec.paused == Some(true) => Some("paused"),
                _ => None,
            };
            if let (Some(held), ActionState::Running) = (held, said.state) {
                return Err(Refusal::Precondition(format!("workflow {key} is {held}")));
            }
            let changed = report::take(&mut status, &said, self.clock.now());
            match changed {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error @ (Refused::Action { .. } | Refused::Agent { .. })) => {
                    return Err(Refusal::NotFound(error.to_string()));
                }
                Err(error @ Refused::Late { .. }) => {
                    return Err(Refusal::Precondition(error.to_string()));
                }
            }
            let objects = self.objects.as_ref();
            match write_status(objects, WORKFLOW, &workflow.metadata, &status).await {
                Ok(()) => {
                    self.known().progress.remove(&from.workflow_id);
                    self.tell_report(&said, from, &status);
                    return Ok(());
                }
                Err(ObjectError::Conflict(_)) => {}
                Err(error) => return Err(Refusal::Internal(error.to_string())),
            }
        }
        Err(Refusal::Unavailable(format!("workflow {key} is being written too often")))
    }

    fn tell_report(
        &self,
        said: &report::Report,
        from: &Report,
        status: &api::tinkerbell::WorkflowStatus,
    ) {
        let mut actions = status.tasks.iter().flat_map(|task| &task.actions);
        let Some(action) = actions.find(|action| action.id == said.action_id) else { return };
        let name = action.name.clone();
        let millis = match (action.execution_start, action.execution_stop) {
            (Some(start), Some(stop)) => stop.duration_since(start).as_millis(),
            _ => 0,
        };
        let moment = match said.state {
            ActionState::Pending => return,
            ActionState::Running => Moment::ActionStarted { name },
            state => Moment::ActionEnded {
                name,
                ok: state == ActionState::Success,
                message: from.message.clone(),
                millis: u64::try_from(millis).unwrap_or(0),
            },
        };
        self.tell(&said.agent_id, &moment);
    }
}

impl Workflows for AgentService {
    fn next<'a>(
        &'a self,
        agent_id: &'a str,
        attributes: Option<Attributes>,
    ) -> Pending<'a, Result<Assignment, Refusal>> {
        self.hear(agent_id);
        self.meet(agent_id, attributes);
        Box::pin(self.assignment(agent_id))
    }

    fn report(&self, report: Report) -> Pending<'_, Result<(), Refusal>> {
        self.hear(&report.agent_id);
        Box::pin(async move { self.take(&report).await })
    }

    fn progress(&self, progress: Progress) -> Pending<'_, Option<String>> {
        self.hear(&progress.agent_id);
        let (workflow_id, action_id) = (progress.workflow_id.clone(), progress.action_id.clone());
        self.note(progress);
        Box::pin(async move { self.unwanted(&workflow_id, &action_id).await })
    }

    fn hello(&self, hello: Hello, _peer: Option<SocketAddr>) {
        self.hear(&hello.agent_id);
        self.meet(&hello.agent_id, hello.attributes);
        let mut known = self.known();
        if known.beating.len() < AGENTS_MAX && known.heard.contains_key(&hello.agent_id) {
            known.beating.insert(hello.agent_id.clone());
            known.boots.insert(hello.agent_id.clone(), hello.boot_id.clone());
        }
        drop(known);
        self.tell(&hello.agent_id, &Moment::AgentHello { version: hello.agent_version });
    }

    fn authenticate(
        &self,
        agent_id: &str,
        token: Option<&str>,
        _peer: Option<SocketAddr>,
    ) -> Result<(), Refusal> {
        if token.is_none() && self.permissive {
            return Ok(());
        }
        let uids = self.index.uids_of_agent(agent_id);
        if uids.is_empty() {
            if self.index.enrolls() && !self.index.knows_agent(agent_id) {
                return Ok(());
            }
            // Nothing is given away by this, and an agent whose workflow was deleted goes on asking
            // instead of repeating a report that nobody can take.
            return Err(Refusal::NotFound(format!("no workflow for agent {agent_id}")));
        }
        let Some(token) = token else {
            return Err(Refusal::Unauthenticated("the agent showed no token".into()));
        };
        // The last report of a workflow may come twice, the second time after it has ended.
        if uids.iter().any(|uid| self.tokens.verify(token, agent_id, uid)) {
            return Ok(());
        }
        let why = "its token is of no workflow of this machine";
        self.tell(agent_id, &Moment::Refused { what: "work".to_owned(), why: why.to_owned() });
        Err(Refusal::Unauthenticated(why.to_owned()))
    }
}

impl Agents for AgentService {
    fn life(&self, agent_id: &str) -> Life {
        let known = self.known();
        let heard = known.heard.get(agent_id).copied();
        // Without permissive mode every agent is one of ours, and ours beat.
        let beats = !self.permissive || known.beating.contains(agent_id);
        Life { heard, listening_since: self.since, beats }
    }
}
