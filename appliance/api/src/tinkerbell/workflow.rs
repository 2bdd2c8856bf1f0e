//! Kinds Template and Workflow: the tasks to run on a machine, and their progress.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::chosen_disk::ChosenDisk;
use super::retry::{ActionAttempt, Attempt, Requests, Retry, WorkflowEnd};
use crate::bmc::{Action as BmcAction, BMC_ERROR};
use crate::meta::Object;

/// Go template for the YAML of a workflow.
pub type Template = Object<TemplateSpec, TemplateStatus>;
/// Run of a Template on a machine.
pub type Workflow = Object<WorkflowSpec, WorkflowStatus>;

/// Spec of a Template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateSpec {
    /// Text of the Go template.
    pub data: Option<String>,
}

/// Status of a Template. Neither upstream nor the box writes this status.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateStatus {
    /// State; upstream does not use this field.
    pub state: Option<String>,
}

/// Template, machine and settings of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkflowSpec {
    /// Template in the same namespace.
    pub template_ref: String,
    /// Hardware in the same namespace.
    pub hardware_ref: String,
    /// Top-level variables of the template.
    pub hardware_map: BTreeMap<String, String>,
    /// True to exclude the Workflow from processing.
    pub disabled: Option<bool>,
    /// Ways to boot the machine into the agent OS.
    pub boot_options: BootOptions,
    /// Tinbox extension: rule for further attempts after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Tinbox extension: true to start no new action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// Ways to boot the machine into the agent OS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootOptions {
    /// True to permit network boot before the run and to forbid network boot after the run.
    pub toggle_allow_netboot: bool,
    /// URL of the ISO for `isoboot`.
    #[serde(rename = "isoURL")]
    pub iso_url: String,
    /// Kind of the BMC jobs before and after the run.
    pub boot_mode: Option<BootMode>,
    /// Actions for the boot mode `customboot`.
    #[serde(rename = "custombootConfig")]
    pub custom: Custom,
}

/// Kind of the BMC jobs before and after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BootMode {
    /// Power off, set the next boot to the network, power on.
    Netboot,
    /// Power off, insert the ISO, set the next boot to the ISO, power on.
    #[serde(alias = "iso")]
    Isoboot,
    /// Runs the actions of [`Custom`].
    Customboot,
}

/// Actions for the boot mode `customboot`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Custom {
    /// BMC actions before the run.
    pub preparing_actions: Vec<BmcAction>,
    /// BMC actions after the run.
    pub post_actions: Vec<BmcAction>,
}

/// State of a Workflow in upstream's spelling. The spelling of charts up to 0.6 is also accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum State {
    /// The Workflow is not processed yet (the empty string in JSON).
    #[default]
    #[serde(rename = "")]
    New,
    /// The box permits network boot and runs BMC jobs.
    #[serde(alias = "STATE_PREPARING")]
    Preparing,
    /// The Workflow waits for a request of the agent.
    #[serde(alias = "STATE_PENDING")]
    Pending,
    /// At least one action has started.
    #[serde(alias = "STATE_RUNNING")]
    Running,
    /// The box runs the steps after the last action, such as a BMC job.
    #[serde(alias = "STATE_POST")]
    Post,
    /// All actions, and the steps after the last action, succeeded.
    #[serde(alias = "STATE_SUCCESS")]
    Success,
    /// An action or a boot job failed.
    #[serde(alias = "STATE_FAILED")]
    Failed,
    /// An action or the whole workflow exceeded its time limit.
    #[serde(alias = "STATE_TIMEOUT")]
    Timeout,
}

/// State of one action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ActionState {
    /// The action has not started yet.
    #[default]
    #[serde(alias = "STATE_PENDING")]
    Pending,
    /// The agent runs the action.
    #[serde(alias = "STATE_RUNNING")]
    Running,
    /// The action ended with an error.
    #[serde(alias = "STATE_FAILED")]
    Failed,
    /// The action exceeded its time limit.
    #[serde(alias = "STATE_TIMEOUT")]
    Timeout,
    /// The action ended without an error.
    #[serde(alias = "STATE_SUCCESS")]
    Success,
}

/// Progress of a Workflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkflowStatus {
    /// Agent that must run the next action.
    #[serde(rename = "agentID", skip_serializing_if = "String::is_empty")]
    pub agent_id: String,
    /// State of the current attempt.
    pub state: State,
    /// Progress of the boot jobs.
    pub boot_options: BootOptionsStatus,
    /// Result of rendering: `successful` or `failed`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub template_rendering: String,
    /// Time limit in seconds, from the YAML; 0 means none.
    #[serde(skip_serializing_if = "is_zero")]
    pub global_timeout: i64,
    /// Time at which the whole workflow times out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_execution_stop: Option<Timestamp>,
    /// Action that was served or reported last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_state: Option<CurrentState>,
    /// Rendered tasks with their results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskStatus>,
    /// Conditions in upstream's shape (`time`, not `lastTransitionTime`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Tinbox extension: number of this attempt, from 1; 0 is read as 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempts: i64,
    /// Tinbox extension: start time of an attempt after the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_start: Option<Timestamp>,
    /// Tinbox extension: time and reason of the end, unset while the workflow can still run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<WorkflowEnd>,
    /// Tinbox extension: earlier attempts, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Attempt>,
    /// Tinbox extension: last retry and cancel requests that the box executed.
    #[serde(skip_serializing_if = "Requests::is_empty")]
    pub requests: Requests,
    /// Tinbox extension: the disk that each hint chose at its first use. Later actions and attempts
    /// must use the same disk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chosen_disks: Vec<ChosenDisk>,
}

/// Type of the condition of a Workflow that waits for another Workflow on its machine.
pub const WAITING: &str = "Waiting";

impl WorkflowStatus {
    /// Returns the error of the machine's BMC during a boot; `None` without an error.
    pub fn bmc_error(&self) -> Option<&str> {
        let shown = self.conditions.iter().find(|it| it.kind == BMC_ERROR);
        shown.map(|it| it.message.as_str())
    }

    /// Returns the message of the condition [`WAITING`]; `None` without it or after the end.
    pub fn queued(&self) -> Option<&str> {
        let condition = self.conditions.iter().find(|it| it.kind == WAITING)?;
        (!self.state.ended()).then_some(condition.message.as_str())
    }
}

pub(super) fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Progress of the boot jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootOptionsStatus {
    /// Changes that the box made to the permission of network boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_netboot: Option<NetbootToggle>,
    /// State of each BMC job, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub jobs: BTreeMap<String, JobStatus>,
}

/// Changes that the box made to the permission of network boot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetbootToggle {
    /// True after network boot was permitted before the run.
    pub toggled_true: bool,
    /// True after network boot was forbidden after the run.
    pub toggled_false: bool,
}

/// State of a BMC job of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// UID of the Job.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// True after the Job has ended.
    pub complete: bool,
    /// True after an older Job of the same name was deleted.
    pub existing_job_deleted: bool,
}

/// Action that was served or reported last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CurrentState {
    /// Agent of the action.
    #[serde(rename = "agentID")]
    pub agent_id: String,
    /// ID of the task.
    #[serde(rename = "taskID")]
    pub task_id: String,
    /// ID of the action.
    #[serde(rename = "actionID")]
    pub action_id: String,
    /// State of the action.
    pub state: ActionState,
    /// Name of the action.
    #[serde(rename = "actionName")]
    pub action_name: String,
    /// Name of the task.
    #[serde(rename = "taskName")]
    pub task_name: String,
}

/// Rendered task with its actions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskStatus {
    /// Unique ID, assigned when the template is rendered.
    pub id: String,
    /// Name from the template.
    pub name: String,
    /// Agent that runs the task.
    #[serde(rename = "agentID")]
    pub agent_id: String,
    /// Bind mounts of every action in the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// Environment variables of every action in the task.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Actions, in the order of the template.
    pub actions: Vec<ActionStatus>,
}

/// Rendered action with its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionStatus {
    /// Unique ID of this attempt of the action.
    pub id: String,
    /// Name from the template.
    pub name: String,
    /// Reference of the container image.
    pub image: String,
    /// Time limit in seconds; 0 means none.
    pub timeout: i64,
    /// Arguments of the container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Bind mounts of the action only. The agent mounts the task's volumes first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// PID namespace, deprecated upstream: `host` or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pid: String,
    /// Linux namespaces to share with the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Namespaces>,
    /// Environment variables of the action. They override the task's variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// State of this attempt of the action.
    pub state: ActionState,
    /// Time at which the agent started the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_start: Option<Timestamp>,
    /// Time at which the action ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_stop: Option<Timestamp>,
    /// Duration for display, such as `1m2s`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub execution_duration: String,
    /// Last message about the action, for a person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Tinbox extension: maximum number of repeats within one attempt of the workflow.
    #[serde(skip_serializing_if = "is_zero")]
    pub retries: i64,
    /// Tinbox extension: number of repeats so far in this attempt of the workflow.
    #[serde(skip_serializing_if = "is_zero")]
    pub retried: i64,
    /// Tinbox extension: wait in seconds before the first repeat; doubles with each further repeat.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_wait: i64,
    /// Tinbox extension: time of the next repeat, set while the action waits for a repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// Arguments for one more run of the image after the action failed without repeats left.
    /// Upstream's old worker supports this field; upstream's new agent does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_failure: Vec<String>,
    /// Arguments for one more run of the image after the action timed out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_timeout: Vec<String>,
    /// Tinbox extension: number of this attempt of the action, from 1; 0 is read as 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempts: i64,
    /// Tinbox extension: earlier attempts of the action, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ActionAttempt>,
    /// Tinbox extension: time at which the box times the action out, by the box's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Tinbox extension: boot ID of the machine when the action started, if the agent reported one.
    #[serde(rename = "bootID", skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
}

/// Linux namespaces that an action shares with the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Namespaces {
    /// Network namespace: `host` or empty.
    pub network: String,
    /// PID namespace: `host` or empty.
    pub pid: String,
}

/// Condition of a Workflow in upstream's shape.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// Type, such as `TemplateRenderedSuccess`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Status of the condition: `True` or `False`.
    pub status: String,
    /// Machine-readable reason of the status; its spelling never changes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Description of the status, one sentence for a person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Time of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}
