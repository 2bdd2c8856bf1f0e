//! Workflow service: records each call of an agent, and passes the call to its module.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use agent_rpc::AgentReport;
use agent_rpc::{
    ActionList, Assignment, Attributes, Credentials, DiskChoice, Hello, NamedReport, Pending,
    Progress, Refusal, Report, Turn, Workflows,
};
use api::meta::ObjectKey;
use api::state::agents::{Agents, Life};
use api::tinkerbell::{WORKFLOW, Workflow};
use jiff::Timestamp;
use objects::{Objects, fetch};
use status::boot_event::BootEvent;
use stdx::Clock;
use tokio_util::sync::CancellationToken;

use crate::agents::{AgentRecords, Latest, Record};
use crate::backend::Backend;
use crate::boots::Boots;
use crate::power::PowerRequests;
use crate::runs::Runs;
use crate::waits::Waits;
use crate::wire::workflow_key;

/// Maximum number of attempts to write a Workflow that other clients change at the same time.
pub(crate) const CONFLICTS_MAX: usize = 10;

/// Acceptance of agents without a token of a workflow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// True to accept agents without a token, such as upstream's agents.
    pub permissive: bool,
    /// True if rule sets may create workflows for agents.
    pub enrollment: bool,
}

/// Workflow service of Tinkerbell's protocol, for agents of both generations.
pub struct Service {
    pub(crate) objects: Arc<dyn Objects>,
    pub(crate) runs: Runs,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) agents: AgentRecords,
    pub(crate) boots: Boots,
    pub(crate) waits: Waits,
    pub(crate) power: PowerRequests,
    pub(crate) closing: CancellationToken,
    pub(crate) settings: Settings,
    /// Start of the service, by the monotonic clock. No agent counts as silent for a longer time.
    since: Duration,
}

impl Service {
    /// Creates a service on `objects` with `runs` as index of workflows. Waiting requests end when
    /// `closing` is canceled.
    pub fn new(
        objects: Arc<dyn Objects>,
        runs: Runs,
        backend: Arc<dyn Backend>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        closing: CancellationToken,
    ) -> Self {
        let since = clock.steady();
        let (agents, boots, waits) = (AgentRecords::default(), Boots::default(), Waits::default());
        let power = PowerRequests::default();
        Self {
            objects,
            runs,
            backend,
            clock,
            agents,
            boots,
            waits,
            power,
            closing,
            settings,
            since,
        }
    }

    pub(crate) fn record_message(&self, agent_id: &str) {
        // Unknown ids are not recorded: invented ids must not displace the records of real agents.
        if self.backend.knows(agent_id) || self.runs.know(agent_id) {
            self.agents.record_message(agent_id, self.clock.steady());
        }
    }

    /// Forwards the machine attributes of a request to the backend; an upstream agent sends them
    /// with each request. An agent without work is forwarded even without attributes, because a
    /// matching rule set may exist now.
    fn meet(&self, agent_id: &str, attributes: Option<Attributes>) {
        let may_enrol = || self.settings.enrollment && self.runs.of_agent(agent_id).is_empty();
        if attributes.is_some() || may_enrol() {
            let agent_id = agent_id.to_owned();
            self.backend
                .receive_report(AgentReport { agent_id, attributes, inventory: None }, true);
        }
    }

    /// Returns the bindings of tokens to boots.
    pub fn boots(&self) -> &Boots {
        &self.boots
    }

    /// Returns the time since an agent's last message; `None` without a record.
    pub fn silence_of(&self, agent_id: &str) -> Option<Duration> {
        let last_message = self.agents.record(agent_id).last_message?;
        Some(self.clock.steady().saturating_sub(last_message))
    }

    /// Returns the time of an agent's last message by the current clock; `None` without a record.
    pub fn last_seen(&self, agent_id: &str) -> Option<Timestamp> {
        let last_message = self.agents.record(agent_id).last_message?;
        let ago = self.clock.steady().saturating_sub(last_message);
        self.clock.now().checked_sub(ago).ok()
    }

    /// Returns the last progress of the workflow `namespace/name`.
    pub fn latest(&self, workflow_id: &str) -> Option<Latest> {
        self.agents.latest(workflow_id)
    }

    /// Returns the name of the action of a progress report; its ID if the workflow was deleted.
    pub async fn action_name(&self, progress: &Progress) -> String {
        let id = &progress.action_id;
        let Ok(key) = workflow_key(&progress.workflow_id) else { return id.clone() };
        let workflow = fetch::<Workflow>(self.objects.as_ref(), WORKFLOW, &key).await;
        let tasks = workflow.map(|workflow| workflow.status.tasks).unwrap_or_default();
        let mut actions = tasks.into_iter().flat_map(|task| task.actions);
        actions.find(|action| action.id == *id).map_or_else(|| id.clone(), |action| action.name)
    }

    /// Records the progress of an action, if the agent has a task in the workflow.
    fn note(&self, progress: Progress) {
        if self.runs.runs_for(&progress.workflow_id, &progress.agent_id) {
            self.agents.note(progress, self.clock.now());
        }
    }
}

impl Workflows for Service {
    fn next<'a>(
        &'a self,
        agent_id: &'a str,
        attributes: Option<Attributes>,
        max_wait: Duration,
    ) -> Pending<'a, Result<Assignment, Refusal>> {
        self.record_message(agent_id);
        self.meet(agent_id, attributes);
        Box::pin(self.awaited(agent_id, max_wait))
    }

    fn report(&self, report: Report) -> Pending<'_, Result<(), Refusal>> {
        self.record_message(&report.agent_id);
        Box::pin(async move { self.take(&report).await })
    }

    fn progress(&self, mut progress: Progress) -> Pending<'_, Option<String>> {
        self.record_message(&progress.agent_id);
        let printed = std::mem::take(&mut progress.output);
        if !printed.is_empty() && self.runs.runs_for(&progress.workflow_id, &progress.agent_id) {
            self.backend.record_output(&progress.agent_id, printed);
        }
        self.note(progress.clone());
        Box::pin(async move {
            self.note_wait(&progress).await;
            let Progress { workflow_id, action_id, agent_id, .. } = &progress;
            self.unwanted(workflow_id, action_id, agent_id).await
        })
    }

    fn choose_disk(&self, choice: DiskChoice) -> Pending<'_, Result<(), Refusal>> {
        self.record_message(&choice.agent_id);
        Box::pin(async move { self.take_choice(&choice).await })
    }

    fn power_off_request<'a>(
        &'a self,
        agent_id: &'a str,
        boot: &'a str,
        max_wait: Duration,
    ) -> Pending<'a, Result<Option<String>, Refusal>> {
        Box::pin(self.awaited_power_off(agent_id, boot, max_wait))
    }

    fn confirm_power_off(&self, agent_id: &str, boot: &str, request_id: &str) -> bool {
        self.takes_confirmation(agent_id, boot, request_id)
    }

    fn turn<'a>(&'a self, worker_id: &'a str) -> Pending<'a, Result<Option<Turn>, Refusal>> {
        self.record_message(worker_id);
        Box::pin(self.turn_of(worker_id))
    }

    fn actions<'a>(&'a self, workflow_id: &'a str) -> Pending<'a, Result<ActionList, Refusal>> {
        Box::pin(self.list(workflow_id))
    }

    fn named_report(&self, report: NamedReport) -> Pending<'_, Result<(), Refusal>> {
        Box::pin(async move { self.take_named(&report).await })
    }

    fn hello(&self, hello: Hello, _peer: Option<SocketAddr>) {
        self.record_message(&hello.agent_id);
        let (agent_id, attributes) = (hello.agent_id.clone(), hello.attributes);
        self.backend.receive_report(
            AgentReport { agent_id, attributes, inventory: hello.inventory },
            false,
        );
        // An agent sends another Hello in the same boot when it has received LLDP data from its
        // switch.
        let is_boot = self.agents.boots(&hello.agent_id, &hello.boot_id);
        if is_boot {
            self.backend.record_event(
                &hello.agent_id,
                &BootEvent::AgentHello { version: hello.agent_version },
            );
        }
    }

    fn authenticate(&self, agent_id: &str, shown: &Credentials<'_>) -> Result<(), Refusal> {
        self.admit(agent_id, shown)
    }
}

impl Agents for Service {
    fn life(&self, agent_id: &str) -> Life {
        let Record { last_message, beats, forgotten, any_message } = self.agents.record(agent_id);
        // Without permissive mode all agents are agents of the box, which send heartbeats.
        let beats = !self.settings.permissive || beats;
        let listening_since = self.since.max(forgotten);
        Life {
            heard: last_message,
            listening_since,
            beats,
            any_heard: any_message,
            at_work: self.runs.at_work(),
        }
    }

    fn workflows_of(&self, hardware: &ObjectKey) -> Option<Vec<ObjectKey>> {
        self.runs.of_hardware(hardware)
    }
}
