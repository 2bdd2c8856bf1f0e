//! Processing of agent reports. A report is stored in the Hardware of its machine. For an unknown
//! machine, a Hardware is created first. A rule set may then create a Workflow for the machine.
//!
//! Names, label and annotation are those of Tinkerbell's auto-discovery, with two differences:
//! netboot is allowed, so that a workflow can run on the machine; and a known machine with a new
//! NIC does not become a second Hardware.

mod inventory;
mod machine_traits;
mod observe;
mod reports;
mod rules;
mod slots;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_rpc::AgentReport;
use api::core::ObjectEvent;
use api::identity::{Traits, Verdict};
use api::meta::ObjectKey;
use api::tinkerbell::{
    AGENT_ATTRIBUTES, AUTO_DISCOVERED, HARDWARE, Hardware, WORKFLOW, WORKFLOW_RULE_SET,
};
use dismissals::Dismissals;
use objects::{ObjectError, Objects, read};
use serde_json::{Value, json};
use stdx::{Clock, MacAddr};
use tokio::time::Instant;

pub use inventory::INVENTORY;
use machine_traits::MachineTraits;
pub use observe::{ENROLLED, KnownMachines, may_enroll};
pub use reports::ReportQueue;
use rules::RuleMistake;
use slots::EnrollmentSlots;
pub use slots::UNACCEPTED_MAX;

/// Namespace for the Hardware of enrolled machines.
const NAMESPACE: &str = "default";
/// Maximum number of disks that are stored for one machine.
const PARTS_MAX: usize = 64;
/// Minimum time between two processed reports of an agent that repeats its report.
const ONCE_EVERY: Duration = Duration::from_secs(10);
/// Maximum number of agents in the rate limiter.
const AGENTS_MAX: usize = 16_384;
/// Maximum number of stored event texts. An event with a stored text is not recorded again.
const REPORTED_MAX: usize = 1024;

/// Receiver of agent reports, with a rate limit for repeated reports.
#[derive(Clone, Default)]
pub struct ReportInbox {
    reports: ReportQueue,
    last: Arc<Mutex<HashMap<String, Instant>>>,
}

impl ReportInbox {
    /// Creates an inbox and the queue that receives its reports.
    pub fn new() -> (Self, ReportQueue) {
        let discovery = Self::default();
        let reports = discovery.reports.clone();
        (discovery, reports)
    }

    /// Adds a report that the agent repeats, at most one in ten seconds. Never waits.
    pub fn repeated(&self, report: AgentReport) {
        let now = Instant::now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = |at: &Instant| now.duration_since(*at) < ONCE_EVERY;
        if last.get(&report.agent_id).is_some_and(is_new) {
            return;
        }
        if last.len() >= AGENTS_MAX {
            last.retain(|_, at| is_new(at));
        }
        // Reports of an agent beyond this limit are always processed.
        if last.len() < AGENTS_MAX {
            last.insert(report.agent_id.clone(), now);
        }
        drop(last);
        self.once(report);
    }

    /// Adds a report that the agent sends only once. Never waits.
    pub fn once(&self, report: AgentReport) {
        let agent_id = report.agent_id.clone();
        if !self.reports.add(report) {
            tracing::warn!(
                agent_id,
                "too many agents report at once: restart this agent to enroll its machine"
            );
        }
    }
}

/// State of [`Enrollment::deal`] between two reports.
#[derive(Default)]
pub struct Memory {
    /// Texts of events that were already recorded.
    reported: Vec<String>,
    known: MachineTraits,
    slots: EnrollmentSlots,
}

/// Controller that processes agent reports.
pub struct Enrollment {
    /// Access to Hardware, Workflows and rule sets.
    pub objects: Arc<dyn Objects>,
    /// Index of machines and workflows.
    pub index: Arc<dyn KnownMachines>,
    /// Clock for the times of events.
    pub clock: Arc<dyn Clock>,
    /// True if rule sets may create workflows.
    pub enrollment: bool,
}

impl Enrollment {
    /// Creates a controller for `objects` and the machines of `index`.
    pub fn new(
        objects: &Arc<dyn Objects>,
        index: Arc<dyn KnownMachines>,
        clock: &Arc<dyn Clock>,
        enrollment: bool,
    ) -> Self {
        let (objects, clock) = (Arc::clone(objects), Arc::clone(clock));
        Self { objects, index, clock, enrollment }
    }

    /// Processes reports one after another. Never returns.
    pub async fn run(self, reports: ReportQueue) {
        let mut memory = Memory::default();
        loop {
            let report = tokio::select! {
                report = reports.next() => report,
                report = memory.slots.next() => report,
            };
            let agent_id = report.agent_id.clone();
            if let Err(error) = self.deal(&report, &mut memory).await {
                tracing::warn!(agent_id, %error, "cannot store the report of an agent");
            }
        }
    }

    /// Processes one report: stores the report, and enrolls the machine if that is allowed.
    ///
    /// # Errors
    /// An object cannot be read or written.
    pub async fn deal(&self, report: &AgentReport, memory: &mut Memory) -> Result<(), ObjectError> {
        let annotations = inventory::annotations(report);
        let hardware = match self.index.by_agent(&report.agent_id) {
            Some(hardware) => {
                let objects = self.objects.as_ref();
                Some(inventory::keep(objects, &hardware.key(), &annotations).await?)
            }
            None if report.attributes.is_none() || !self.may_become_hardware(&report.agent_id) => {
                None
            }
            None => match self.welcome(report, &annotations, memory).await? {
                Some(hardware) => Some(hardware),
                None => return Ok(()),
            },
        };
        if !self.enrollment || hardware.as_ref().is_some_and(|it| !self.may_enroll(it)) {
            return Ok(());
        }
        let kept = hardware.as_ref().and_then(|it| it.metadata.annotations.get(AGENT_ATTRIBUTES));
        match annotations.get(AGENT_ATTRIBUTES).or(kept) {
            Some(attributes) => {
                self.enroll(&report.agent_id, attributes, hardware.as_ref(), &mut memory.reported)
                    .await
            }
            None => Ok(()),
        }
    }

    fn may_enroll(&self, hardware: &Hardware) -> bool {
        may_enroll(hardware, self.index.has_workflow(&hardware.key()))
    }

    /// Returns true if the agent may become a new Hardware: a network allows enrollment, and no
    /// Hardware and no Workflow names the agent.
    fn may_become_hardware(&self, agent_id: &str) -> bool {
        self.index.enrolls() && !self.index.knows_agent(agent_id)
    }

    /// Creates a Hardware for an unknown machine; `None` if the machine must wait or may be known.
    async fn welcome(
        &self,
        report: &AgentReport,
        annotations: &BTreeMap<&'static str, String>,
        memory: &mut Memory,
    ) -> Result<Option<Hardware>, ObjectError> {
        let json = |key| annotations.get(key).and_then(|text| serde_json::from_str(text).ok());
        let value = |key| json(key).unwrap_or(Value::Null);
        let mut traits = Traits::of(&value(AGENT_ATTRIBUTES), &value(INVENTORY));
        traits.macs.insert(report.agent_id.to_lowercase());
        if Dismissals::new(Arc::clone(&self.objects)).ignores(&traits.macs).await? {
            return Ok(None);
        }
        let all = self.index.all_hardware();
        memory.known.update(all.clone());
        let resembled = resembling(&memory.known.who(&traits), &report.agent_id);
        if !resembled.is_empty() {
            for (key, sentence) in resembled {
                self.record_resemblance(&key, sentence, &mut memory.reported);
            }
            return Ok(None);
        }
        let Some(object) = hardware(report, annotations, self.enrollment) else {
            tracing::warn!(report.agent_id, "an agent whose id is not its MAC cannot enroll");
            return Ok(None);
        };
        if !memory.slots.take(Instant::now()) {
            let waits = memory.slots.wait(report.clone());
            tracing::warn!(report.agent_id, waits, "too many unknown machines at once");
            return Ok(None);
        }
        for eldest in slots::beyond(&all, |key| self.index.has_workflow(key)) {
            tracing::warn!(hardware = %eldest, "too many unknown machines: deleting the oldest");
            objects::gone_is_fine(self.objects.delete(HARDWARE, &eldest).await)?;
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match self.objects.create(HARDWARE, object).await {
            Ok(object) => {
                tracing::info!(name, agent_id = report.agent_id, "a machine enrolled");
                read(object).map(Some)
            }
            // The index was not updated yet.
            Err(ObjectError::AlreadyExists(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates the Workflow of the best matching rule set for a machine, if a rule set matches.
    async fn enroll(
        &self,
        agent_id: &str,
        attributes: &str,
        hardware: Option<&Hardware>,
        reported: &mut Vec<String>,
    ) -> Result<(), ObjectError> {
        if self.index.has_open_workflow(agent_id) {
            return Ok(());
        }
        let Ok(facts) = serde_json::from_str(attributes) else { return Ok(()) };
        let sets = self.objects.list(WORKFLOW_RULE_SET, None).await?;
        let (chosen, mistakes) = rules::choose(sets, &facts);
        for mistake in mistakes {
            self.record_mistake(&mistake, reported);
        }
        let Some(set) = chosen else { return Ok(()) };
        let object = match rules::workflow(&set, agent_id, hardware, attributes) {
            Ok(object) => object,
            Err(why) => {
                self.record_mistake(&RuleMistake::of(&set, why), reported);
                return Ok(());
            }
        };
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let key = ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"));
        match self.objects.create(WORKFLOW, object).await {
            Ok(_) => tracing::info!(workflow = %key, set = %set.key(), agent_id, "enrolled"),
            // An earlier attempt created the Workflow, and the annotation below may be missing.
            Err(ObjectError::AlreadyExists(_)) => {}
            Err(error) => {
                let why = format!("cannot create workflow {key}: {error}");
                self.record_mistake(&RuleMistake::of(&set, why), reported);
                return Ok(());
            }
        }
        if let Some(hardware) = hardware {
            let mark = BTreeMap::from([(ENROLLED, key.to_string())]);
            inventory::keep(self.objects.as_ref(), &hardware.key(), &mark).await?;
        }
        Ok(())
    }

    fn record_mistake(&self, mistake: &RuleMistake, reported: &mut Vec<String>) {
        if is_news(reported, format!("{} {} {}", mistake.uid, mistake.version, mistake.sentence)) {
            self.objects.record(mistake.happening(self.clock.now()));
        }
    }

    fn record_resemblance(&self, key: &ObjectKey, message: String, reported: &mut Vec<String>) {
        if !is_news(reported, format!("{key} {message}")) {
            return;
        }
        self.objects.record(ObjectEvent {
            about: HARDWARE,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: String::new(),
            reason: "Resembles".to_owned(),
            message,
            warning: true,
            component: "tinboxd".to_owned(),
            at: self.clock.now(),
        });
    }
}

/// Returns true if the event text `what` is new, and stores the text.
fn is_news(reported: &mut Vec<String>, what: String) -> bool {
    if reported.contains(&what) {
        return false;
    }
    if reported.len() >= REPORTED_MAX {
        reported.remove(0);
    }
    reported.push(what);
    true
}

/// Returns each Hardware that an unknown machine may be, with a message for its owner.
fn resembling(verdict: &Verdict, agent_id: &str) -> Vec<(ObjectKey, String)> {
    let agent_id = status::plain(agent_id);
    match verdict {
        Verdict::Nobody => Vec::new(),
        Verdict::One(key, same) => {
            let same = status::plain(&same.join(", "));
            let name = &key.name;
            let sentence = format!(
                "returned with the unknown MAC {agent_id}, recognized by its {same}: if its NIC \
                 was replaced, run tinbox machine adopt {name} {agent_id}"
            );
            vec![(key.clone(), sentence)]
        }
        Verdict::Several(keys) => {
            let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
            let sentence = format!(
                "may be the machine with the unknown MAC {agent_id}; the candidates are {}: \
                 nothing is done until one of them has this MAC",
                names.join(", ")
            );
            keys.iter().map(|key| (key.clone(), sentence.clone())).collect()
        }
    }
}

fn hardware(
    report: &AgentReport,
    annotations: &BTreeMap<&'static str, String>,
    enrollment: bool,
) -> Option<Value> {
    let attributes = report.attributes.as_ref()?;
    // The other MACs of the report are only stored as inventory. Only the network proves that a
    // machine has a MAC.
    let mac = report.agent_id.parse::<MacAddr>().ok()?.to_string();
    let interfaces = json!([{ "dhcp": { "mac": mac }, "netboot": { "allowPXE": true } }]);
    let sized = attributes.block.iter().filter(|disk| disk.size.is_some());
    let disks = sized.filter_map(|disk| disk.name.as_deref());
    let disks: Vec<Value> =
        disks.take(PARTS_MAX).map(|name| json!({ "device": device(name) })).collect();
    let name = format!("discovery-{}", name_of(&report.agent_id));
    // Without an instance ID, cloud-init finds no metadata, and so no user data.
    let instance = json!({ "id": report.agent_id, "hostname": name });
    let mut object = json!({
        "apiVersion": HARDWARE.api_version(),
        "kind": HARDWARE.kind,
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": { AUTO_DISCOVERED: "true" },
            "annotations": annotations,
        },
        "spec": {
            "agentID": report.agent_id,
            "interfaces": interfaces,
            "disks": disks,
            "metadata": { "instance": instance },
        },
    });
    if enrollment {
        object["spec"]["auto"] = json!({ "enrollmentEnabled": true });
    }
    Some(object)
}

fn device(name: &str) -> String {
    if name.starts_with('/') { name.to_owned() } else { format!("/dev/{name}") }
}

/// Converts an agent ID to a part of an object name: invalid characters become dashes.
fn name_of(agent_id: &str) -> String {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let lower = agent_id.to_ascii_lowercase();
    let name: String = lower.chars().map(|c| if allowed(c) { c } else { '-' }).take(200).collect();
    name.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests;
