//! Status source for machines, their workflows, and unknown machines that sent DHCP requests.

use std::net::IpAddr;
use std::sync::Arc;

use agent_service::{Latest, Service};
use api::meta::ObjectKey;
use api::tinkerbell::{AGENT_ATTRIBUTES, Hardware, State};
use jiff::Timestamp;
use status::dhcp_client::DhcpClient;
use status::progress::Progress;
use status::source::{Filling, StatusSource};
use status::view::{Machine, MachineState, Power, StatusView, Work, machine::model};

use crate::events::observers::Observers;
use crate::index::{Index, WorkflowProgress};

/// Maximum number of unknown machines in the view, newest DHCP request first.
const NEW_MAX: usize = 32;
/// Maximum number of workflows in the view: unfinished workflows first, then the newest.
const WORKFLOWS_MAX: usize = 200;
/// Maximum number of DHCP clients in the view.
const HEARD_MAX: usize = 50;

/// Status source that combines index, workflow service and DHCP clients.
pub struct MachineSource {
    /// Index with the machines and their workflows.
    pub index: Index,
    /// Workflow service with the progress of running actions.
    pub agents: Arc<Service>,
    /// Observers with the list of DHCP clients.
    pub observers: Arc<Observers>,
}

/// Collected data about one machine.
#[derive(Default)]
struct MachineFacts {
    hardware: Arc<Hardware>,
    course: Option<Arc<WorkflowProgress>>,
    progress: Option<Progress>,
    power: Power,
    power_reason: Arc<str>,
    last_report: Option<Timestamp>,
    leased: Option<IpAddr>,
}

impl StatusSource for MachineSource {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        let known = self.index.machines().into_iter().map(|hardware| self.known(hardware));
        view.machines = known.map(|known| known.machine()).collect();
        view.heard = self.observers.dhcp_clients();
        view.machines.extend(unknown_machines(&view.heard));
        view.heard.truncate(HEARD_MAX);
        view.workflows = works(self.index.courses());
        Box::pin(std::future::ready(()))
    }
}

impl MachineSource {
    fn known(&self, hardware: Arc<Hardware>) -> MachineFacts {
        let latest = self.index.runs.latest(&hardware.key()).map(|(key, _)| key);
        let course = latest.as_ref().and_then(|key| self.index.course(key));
        let newest = latest.and_then(|key| self.agents.latest(&key.to_string()));
        let progress = newest.zip(course.as_ref()).and_then(|(newest, course)| of(&newest, course));
        let bmc = hardware.spec.bmc_ref.as_ref();
        let bmc = bmc.map(|bmc| ObjectKey::new(&hardware.metadata.namespace, &bmc.name));
        let agent = hardware.spec.agent_id.clone();
        let ids = agent.into_iter().chain(hardware.spec.macs().map(|mac| mac.to_string()));
        let last_report = ids.filter_map(|id| self.agents.last_seen(&id)).max();
        let leased = hardware.spec.macs().find_map(|mac| self.index.lease_of(mac));
        let power = bmc.as_ref().map(|bmc| self.index.power(bmc)).unwrap_or_default();
        let power_reason = bmc.map(|bmc| self.index.power_reason(&bmc)).unwrap_or_default();
        MachineFacts { hardware, course, progress, power, power_reason, last_report, leased }
    }
}

/// Returns the progress of the running action; `None` if `newest` is about another action.
fn of(newest: &Latest, course: &WorkflowProgress) -> Option<Progress> {
    let Latest { progress, since, at } = newest;
    (progress.action_id == course.running).then(|| Progress {
        action: course.work.step.to_string(),
        message: progress.message.clone(),
        bytes_done: progress.bytes_done,
        bytes_total: progress.bytes_total,
        millis: u64::try_from(at.duration_since(*since).as_millis()).unwrap_or(0),
    })
}

impl MachineFacts {
    fn machine(&self) -> Machine {
        let hardware = &self.hardware;
        let dhcp = hardware.spec.interfaces.iter().find_map(|it| it.dhcp.as_ref());
        let reserved = dhcp.and_then(|dhcp| dhcp.ip.as_ref()).map(|ip| ip.address.clone());
        let leased = || self.leased.map(|ip| ip.to_string());
        let work = self.course.as_ref().map(|course| &course.work);
        let progress = self.progress.as_ref();
        let state = self.state();
        Machine {
            name: hardware.metadata.name.as_str().into(),
            state,
            step: work.map_or("", |work| step(work, state, hardware.spec.bmc_ref.is_some())).into(),
            percent: progress.and_then(Progress::percent),
            bytes_done: progress.map_or(0, |it| it.bytes_done),
            bytes_total: progress.map_or(0, |it| it.bytes_total),
            bytes_per_second: progress.and_then(Progress::bytes_per_second),
            millis_left: progress.and_then(Progress::millis_left),
            mac: hardware.spec.macs().next(),
            model: model(hardware.metadata.annotations.get(AGENT_ATTRIBUTES)).into(),
            ip: reserved.filter(|ip| !ip.is_empty()).or_else(leased).unwrap_or_default().into(),
            power: self.power,
            power_reason: (*self.power_reason).into(),
            has_bmc: hardware.spec.bmc_ref.is_some(),
            workflow: work.map(|work| work.name.clone()).unwrap_or_default(),
            attempt: work.map_or(0, |work| work.attempt),
            attempts_max: work.map_or(0, |work| work.attempts_max),
            dismissed: work.is_some_and(|work| work.dismissed),
            trouble: work.and_then(|work| work.trouble.clone()),
            since: work.and_then(|work| work.since),
            last_seen: self.last_report,
            ..Machine::default()
        }
    }

    fn state(&self) -> MachineState {
        if self.hardware.metadata.deletion_timestamp.is_some() {
            return MachineState::Removing;
        }
        let settled = match self.course.as_ref().map(|course| &course.work) {
            Some(work) if work.cannot_begin() => return MachineState::Failed,
            Some(work) if work.held && !work.state.ended() => return MachineState::Held,
            Some(work) => match work.state {
                State::New | State::Preparing | State::Pending => return MachineState::Waiting,
                State::Running | State::Post => return MachineState::Installing,
                State::Failed if work.canceled => return MachineState::Canceled,
                State::Failed => return MachineState::Failed,
                State::Timeout => return MachineState::TimedOut,
                State::Success => MachineState::InService,
            },
            None => MachineState::Ready,
        };
        // A machine that is off must not be reported as silent.
        if self.power == Power::Off { MachineState::Off } else { settled }
    }
}

/// Returns the current step of a machine; empty if no step applies.
fn step(work: &Work, state: MachineState, has_bmc: bool) -> &str {
    match (state, work.state) {
        (MachineState::Waiting, State::Preparing) => "waits for its BMC",
        (MachineState::Waiting, State::Pending) if !has_bmc => "waits for its boot: switch it on",
        (MachineState::Waiting, State::Pending) => "waits for its agent",
        (MachineState::Installing, State::Post) => "finishing",
        (MachineState::Installing | MachineState::Failed | MachineState::TimedOut, _) => &work.step,
        _ => "",
    }
}

/// Returns the unknown machines: DHCP clients without a Hardware.
fn unknown_machines(clients: &[DhcpClient]) -> Vec<Machine> {
    let unknown = clients.iter().filter(|client| client.hardware.is_empty()).take(NEW_MAX);
    let machine = |client: &DhcpClient| Machine {
        name: client.mac.to_string().into(),
        state: MachineState::New,
        step: client.decision.as_str().into(),
        mac: Some(client.mac),
        last_seen: Some(client.asked),
        ..Machine::default()
    };
    unknown.map(machine).collect()
}

/// Returns the workflows for the view: unfinished first, each group with the newest first.
fn works(courses: Vec<(ObjectKey, Arc<WorkflowProgress>)>) -> Vec<Work> {
    let mut works: Vec<Work> = courses.into_iter().map(|(_, it)| it.work.clone()).collect();
    let age = |work: &Work| std::cmp::Reverse(work.since.unwrap_or(Timestamp::MAX));
    works.sort_by_cached_key(|work| (work.state.ended(), age(work), work.name.clone()));
    works.truncate(WORKFLOWS_MAX);
    works
}

#[cfg(test)]
mod tests;
