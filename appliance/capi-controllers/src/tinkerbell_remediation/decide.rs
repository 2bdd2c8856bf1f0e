//! Decision about a TinkerbellRemediation, as a pure function of the observed objects and the time.

use std::time::Duration;

use api::bmc::{Action, JOB, Job, JobSpec, PowerAction, SecretRef};
use api::infrastructure::TinkerbellRemediationStatus;
use api::meta::{ObjectKey, ObjectMeta, Resource};
use api::tinkerbell::Hardware;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::observe::Observed;
use crate::conditions::{DecisionTime, Finding, PAUSED, READY, find};
use api::infrastructure::CLUSTER_UID;

/// Label of a Job with the name of the TinkerbellRemediation that requests the power cycle.
pub const REMEDIATION: &str = "tinbox.dev/remediation";
/// Label of a Job with the namespace of the TinkerbellRemediation.
pub const REMEDIATION_NAMESPACE: &str = "tinbox.dev/remediation-namespace";
/// Reason of the condition `Ready` after the BMC refused a power cycle.
const FAILED: &str = "PowerCycleFailed";
/// Characters of the UID in the name of a Job.
const UID_CHARS: usize = 8;
/// Interval at which a running Job is read.
const FOLLOW: Duration = Duration::from_secs(5);
/// Wait before a power cycle that the BMC refused is repeated.
const RETRY: Duration = Duration::from_secs(60);
/// Interval at which missing objects are read again.
const WAIT: Duration = Duration::from_secs(30);
/// Wait before the next step after a write that changes the input of the decision.
const NEXT: Duration = Duration::from_millis(1);

/// Decision about a TinkerbellRemediation.
pub type Decision = crate::decision::Decision<Step>;

/// One step of a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Creates an object of the box, unless an object with its name exists.
    Create(Resource, Value),
    /// Deletes an object of the box.
    Delete(Resource, ObjectKey),
    /// Requests the replacement of the Machine with this message.
    Replace(String),
    /// Replaces the status of the TinkerbellRemediation.
    Status(Box<TinkerbellRemediationStatus>),
    /// Records an Event about the TinkerbellRemediation.
    Record {
        /// Machine-readable reason of the Event.
        reason: &'static str,
        /// Description of the Event for a person.
        message: String,
        /// True for an Event of type `Warning`.
        warning: bool,
    },
}

/// Returns name and namespace of the Job of a power cycle; `number` counts from 1. The UID keeps
/// the Jobs of an earlier request for the same Hardware apart.
pub fn job_key(request: &ObjectMeta, host: &Hardware, number: u32) -> ObjectKey {
    let part = request.uid.get(..UID_CHARS).unwrap_or(&request.uid);
    let ObjectMeta { namespace, name, .. } = &host.metadata;
    ObjectKey::new(namespace, format!("{name}-remediation-{part}-{number}"))
}

/// Changes of the status in one decision.
struct Progress<'a> {
    observed: &'a Observed,
    status: TinkerbellRemediationStatus,
    moment: DecisionTime,
    steps: Vec<Step>,
}

/// Returns the steps that are due.
pub fn decide(observed: &Observed, now: Timestamp) -> Decision {
    let metadata = &observed.request.metadata;
    let Some(machine) = &observed.machine else { return Decision::default() };
    let is_deleted = |metadata: &ObjectMeta| metadata.deletion_timestamp.is_some();
    let Some(infrastructure) = &observed.infrastructure else {
        // The Machine of another box or provider, or one that has no Hardware yet.
        return Decision { steps: vec![], requeue: Some(WAIT) };
    };
    if is_deleted(metadata) || is_deleted(&machine.metadata) || is_deleted(&infrastructure.metadata)
    {
        // A Job that has not switched the machine off yet must not do so.
        let job = observed.job.as_ref();
        let steps = job.map(|job| Step::Delete(JOB, job.key())).into_iter().collect();
        return Decision { steps, requeue: None };
    }
    let moment = DecisionTime { generation: metadata.generation, now };
    let status = observed.request.status.clone();
    let mut progress = Progress { observed, status, moment, steps: vec![] };
    let cluster = observed.cluster.as_ref().map(|it| &it.spec);
    let pauses = |metadata| cluster.is_none_or(|cluster| cluster.pauses(metadata));
    if [metadata, &machine.metadata, &infrastructure.metadata].into_iter().any(pauses) {
        let message = "the Cluster, the Machine or the request is paused; the box changes nothing";
        progress.put(PAUSED, true, "Paused", message);
        return progress.end(Some(WAIT));
    }
    progress.put(PAUSED, false, "NotPaused", "");
    let has_id = !infrastructure.spec.provider_id.is_empty();
    if has_id && !infrastructure.status.is_provisioned() {
        // A moved machine has no status before its Hardware follows.
        return progress.end(Some(WAIT));
    }
    progress.repair(infrastructure.status.is_provisioned())
}

impl Progress<'_> {
    fn put(&mut self, kind: &'static str, is_true: bool, reason: &'static str, message: &str) {
        let finding = Finding { kind, is_true, reason, message: message.to_owned() };
        finding.put(&mut self.status.conditions, self.moment);
    }

    /// Sets phase and reason, and records an Event if the reason is new or `is_event`.
    fn report(&mut self, phase: &'static str, reason: &'static str, message: String) {
        phase.clone_into(&mut self.status.phase);
        let is_new = find(&self.status.conditions, READY).is_none_or(|it| it.reason != reason);
        self.put(READY, false, reason, &message);
        if is_new {
            let warning = reason == FAILED;
            self.steps.push(Step::Record { reason, message, warning });
        }
    }

    fn end(mut self, requeue: Option<Duration>) -> Decision {
        if self.status != self.observed.request.status {
            self.steps.push(Step::Status(Box::new(self.status)));
        }
        Decision { steps: self.steps, requeue }
    }

    fn repair(mut self, is_provisioned: bool) -> Decision {
        if let Some(counted) = &self.observed.counted {
            self.steps.push(Step::Delete(JOB, counted.key()));
        }
        if let Some(job) = &self.observed.job {
            return self.follow(job);
        }
        let (spec, done) = (&self.observed.request.spec, self.status.power_cycles);
        if let Some(left) = self.wait_left() {
            return self.end(Some(left));
        }
        let bmc = self.observed.host.as_ref().and_then(|host| host.spec.bmc_ref.as_ref());
        let why = match (&self.observed.host, bmc) {
            _ if !is_provisioned => "the installation of the machine did not end".to_owned(),
            (None, _) => "the machine has no Hardware".to_owned(),
            (Some(host), None) => format!("the Hardware {} has no BMC", host.key()),
            _ if spec.power_cycles == 0 => "the template requests no power cycle".to_owned(),
            _ if done >= spec.power_cycles => {
                format!("the machine is unhealthy after {done} of {} power cycles", done)
            }
            (Some(host), Some(bmc)) => return self.cycle(host, &bmc.name),
        };
        let message = format!("{why}; the box requests the replacement of the machine");
        self.report("Replacing", "Replacing", message.clone());
        self.steps.push(Step::Replace(message));
        self.end(Some(WAIT))
    }

    /// Returns the time in which the machine may still become healthy; `None` after it.
    fn wait_left(&self) -> Option<Duration> {
        let spec = &self.observed.request.spec;
        let since = self.moment.now.duration_since(self.status.last_power_cycle?);
        let is_failed =
            find(&self.status.conditions, READY).is_some_and(|ready| ready.reason == FAILED);
        let whole = match is_failed {
            true if self.status.power_cycles >= spec.power_cycles => Duration::ZERO,
            true => RETRY,
            false => Duration::from_secs(spec.health_timeout_seconds.into()),
        };
        let left = whole.saturating_sub(Duration::try_from(since).unwrap_or_default());
        (!left.is_zero()).then_some(left)
    }

    /// Starts a power cycle.
    fn cycle(mut self, host: &Hardware, bmc: &str) -> Decision {
        let number = self.status.power_cycles + 1;
        let message = format!(
            "power cycle {number} of {}: the BMC switches the Hardware {} off and on",
            self.observed.request.spec.power_cycles,
            host.key()
        );
        let Observed { request, cluster_uid, .. } = self.observed;
        let job = job(&request.metadata, cluster_uid, host, bmc, number);
        self.steps.push(Step::Create(JOB, job));
        self.report("PowerCycling", "PowerCycling", message);
        self.end(Some(FOLLOW))
    }

    /// Counts a power cycle that ended.
    fn follow(mut self, job: &Job) -> Decision {
        if !job.status.ended() {
            return self.end(Some(FOLLOW));
        }
        self.status.power_cycles += 1;
        self.status.last_power_cycle = Some(self.moment.now);
        if job.status.is("Completed") {
            let seconds = self.observed.request.spec.health_timeout_seconds;
            let message = format!(
                "the machine was switched off and on; it has {seconds} s to become healthy"
            );
            self.report("WaitingForHealth", "WaitingForHealth", message);
        } else {
            let why = job.status.condition("Failed").map_or("", |it| &it.message);
            self.report("PowerCycling", FAILED, format!("the BMC refused the power cycle: {why}"));
        }
        self.end(Some(NEXT))
    }
}

fn job(request: &ObjectMeta, cluster_uid: &str, host: &Hardware, bmc: &str, number: u32) -> Value {
    let key = job_key(request, host, number);
    let power = |action| Action { power_action: Some(action), ..Action::default() };
    let machine_ref = SecretRef { name: bmc.to_owned(), namespace: key.namespace.clone() };
    // A machine that is off refuses a power cycle of IPMI, so the box requests both states.
    let tasks = vec![power(PowerAction::Off), power(PowerAction::On)];
    json!({
        "apiVersion": JOB.api_version(),
        "kind": JOB.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {
                REMEDIATION: request.name,
                REMEDIATION_NAMESPACE: request.namespace,
                CLUSTER_UID: cluster_uid,
            },
        },
        "spec": JobSpec { machine_ref, tasks },
    })
}
