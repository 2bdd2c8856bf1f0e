//! Input of the decision about a Workflow.

use api::bmc::{JOB, Job, MACHINE, Machine, TASK, Task};
use api::meta::ObjectKey;
use api::state::agents::Life;
use api::state::queue;
use api::tinkerbell::{HARDWARE, Hardware, State, TEMPLATE, Template, WORKFLOW, Workflow};
use jiff::Timestamp;
use serde_json::Value;

use super::deadlines::TimeLeft;
use super::references::ReferencedObjects;
use super::{WorkflowReconciler, boot};
use crate::ages::Moments;
use crate::task::{may_be_off, task_name};
use objects::{ObjectError, fetch, find, read};

/// Workflow with all other inputs of the decision.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Workflow to decide about.
    pub workflow: Workflow,
    /// Template of the Workflow; `None` if it does not exist.
    pub template: Option<Template>,
    /// Hardware of the Workflow; `None` if it does not exist.
    pub hardware: Option<Hardware>,
    /// Hardware as stored JSON, for templates and for updates that keep unknown fields.
    pub hardware_json: Value,
    /// Objects that the Hardware refers to, read only before rendering.
    pub referred: ReferencedObjects,
    /// Existing boot Jobs of the Workflow.
    pub jobs: Vec<Job>,
    /// Names of boot Jobs that may have switched the machine off.
    pub off_jobs: Vec<String>,
    /// Liveness of the Workflow's agent.
    pub life: Life,
    /// True if the last request to the machine's BMC failed.
    pub bmc_away: bool,
    /// True if the machine's BMC reports that the machine is off.
    pub powered_off: bool,
    /// Name of the Workflow that this Workflow must wait for on the same Hardware, if any.
    pub ahead: Option<String>,
    /// Remaining times of the action and of the whole Workflow.
    pub left: TimeLeft,
    /// Times in the Workflow and its Jobs, as monotonic moments.
    pub moments: Moments,
}

impl Observed {
    /// Returns the boot Job `name`; `None` if it does not exist.
    pub fn job(&self, name: &str) -> Option<&Job> {
        self.jobs.iter().find(|job| job.metadata.name == name)
    }
}

/// Returns the times in the Workflow and its Jobs that decisions compare.
fn times(workflow: &Workflow, jobs: &[Job]) -> Vec<Timestamp> {
    let status = &workflow.status;
    let of_jobs = jobs.iter().flat_map(|job| {
        [job.metadata.creation_timestamp, job.status.completion_time].into_iter().flatten()
    });
    let conditions = status.conditions.iter().filter_map(|it| it.time);
    let ended = status.ended.iter().map(|ended| ended.time);
    of_jobs.chain(conditions).chain(ended).chain(status.attempt_start).collect()
}

impl WorkflowReconciler {
    pub(super) async fn observe(&self, key: &ObjectKey) -> Result<Observed, ObjectError> {
        let objects = self.objects.as_ref();
        let workflow: Workflow = fetch(objects, WORKFLOW, key).await?;
        let beside = |name: &str| ObjectKey::new(&key.namespace, name);

        let template = match workflow.spec.template_ref.as_str() {
            "" => None,
            name => find(objects, TEMPLATE, &beside(name)).await?,
        };
        let hardware_json = match workflow.spec.hardware_ref.as_str() {
            "" => Value::Null,
            name => match objects.get(HARDWARE, &beside(name)).await {
                Ok(object) => object,
                Err(ObjectError::NotFound(_)) => Value::Null,
                Err(error) => return Err(error),
            },
        };
        let hardware = match &hardware_json {
            Value::Null => None,
            object => Some(read::<Hardware>(object.clone())?),
        };
        let referred = match workflow.status.state {
            State::New => self.refer(key, &workflow.spec.hardware_ref, &hardware_json).await?,
            _ => ReferencedObjects::default(),
        };
        let mut jobs = Vec::new();
        for name in boot::job_names(&workflow) {
            jobs.extend(find::<Job>(objects, JOB, &beside(&name)).await?);
        }
        let mut off_jobs = Vec::new();
        for job in jobs.iter().filter(|job| !job.status.ended()) {
            if self.is_off(job).await? {
                off_jobs.push(job.metadata.name.clone());
            }
        }
        let bmc_ref = hardware.as_ref().and_then(|hardware| hardware.spec.bmc_ref.as_ref());
        let machine = match bmc_ref {
            Some(bmc) => find::<Machine>(objects, MACHINE, &beside(&bmc.name)).await?,
            None => None,
        };
        let power = machine.and_then(|machine| machine.status.power_state);
        let (bmc_away, powered_off) =
            (power.as_deref() == Some("unknown"), power.as_deref() == Some("off"));
        let ahead = self.ahead(&workflow).await?;
        let life = self.agents.life(&workflow.status.agent_id);
        let left = self.deadlines.left(key, &workflow.status, self.clock.as_ref());
        let moments = self.ages.look(key, times(&workflow, &jobs), self.clock.as_ref());
        Ok(Observed {
            workflow,
            template,
            hardware,
            hardware_json,
            referred,
            jobs,
            off_jobs,
            life,
            bmc_away,
            powered_off,
            ahead,
            left,
            moments,
        })
    }

    /// Returns true if a running Job may have switched its machine off.
    async fn is_off(&self, job: &Job) -> Result<bool, ObjectError> {
        for at in 0..job.spec.tasks.len() {
            let name = task_name(&job.metadata.name, at);
            let key = ObjectKey::new(&job.metadata.namespace, &name);
            let task: Option<Task> = find(self.objects.as_ref(), TASK, &key).await?;
            let own = |task: &Task| {
                task.metadata.owner_references.iter().any(|owner| owner.uid == job.metadata.uid)
            };
            if task.is_some_and(|task| own(&task) && may_be_off(&task)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the name of the Workflow that `workflow` must wait for; `None` if it need not wait.
    async fn ahead(&self, workflow: &Workflow) -> Result<Option<String>, ObjectError> {
        let waits = matches!(workflow.status.state, State::Preparing | State::Pending)
            && !queue::begun(&workflow.status);
        if !waits || workflow.spec.hardware_ref.is_empty() {
            return Ok(None);
        }
        let others = self.of_its_machine(workflow).await?;
        Ok(queue::ahead(workflow, others.iter()).map(str::to_owned))
    }
    /// Returns all other Workflows of the same Hardware. An unreadable Workflow is ignored, so that
    /// it does not block the others.
    async fn of_its_machine(&self, workflow: &Workflow) -> Result<Vec<Workflow>, ObjectError> {
        let objects = self.objects.as_ref();
        let (namespace, hardware) = (&workflow.metadata.namespace, &workflow.spec.hardware_ref);
        let Some(keys) = self.agents.workflows_of(&ObjectKey::new(namespace, hardware)) else {
            let all = objects.list(WORKFLOW, Some(namespace)).await?;
            let is_of_it = |it: &Value| {
                it.pointer("/spec/hardwareRef").and_then(Value::as_str) == Some(hardware)
            };
            return Ok(all.into_iter().filter(is_of_it).filter_map(|it| read(it).ok()).collect());
        };
        let mut others = Vec::new();
        for key in keys.iter().filter(|key| **key != workflow.key()) {
            match find(objects, WORKFLOW, key).await {
                Ok(other) => others.extend(other),
                Err(ObjectError::Unreadable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(others)
    }
}
