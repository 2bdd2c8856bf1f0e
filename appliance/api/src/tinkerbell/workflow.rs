//! Template and Workflow: what shall be done to a machine, and how far it got.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::chosen_disk::ChosenDisk;
use super::retry::{ActionAttempt, Attempt, Ended, Requests, Retry};
use crate::bmc::Action as BmcAction;
use crate::meta::Object;

/// The YAML of a workflow as a Go template.
pub type Template = Object<TemplateSpec, TemplateStatus>;
/// One run of a Template on a machine.
pub type Workflow = Object<WorkflowSpec, WorkflowStatus>;

/// Spec of a Template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateSpec {
    /// The text.
    pub data: Option<String>,
}

/// Status of a Template; nothing writes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateStatus {
    /// Unused upstream.
    pub state: Option<String>,
}

/// What to run, and where.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkflowSpec {
    /// Template in the same namespace.
    pub template_ref: String,
    /// Hardware in the same namespace.
    pub hardware_ref: String,
    /// Top-level template variables.
    pub hardware_map: BTreeMap<String, String>,
    /// Not processed while true.
    pub disabled: Option<bool>,
    /// How the machine is brought into the agent OS.
    pub boot_options: BootOptions,
    /// Ours: whether what failed is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Ours: nothing new is begun while true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// How the machine is brought into the agent OS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootOptions {
    /// Permit network boot before the run and forbid it after.
    pub toggle_allow_netboot: bool,
    /// ISO of `isoboot`.
    #[serde(rename = "isoURL")]
    pub iso_url: String,
    /// Which BMC jobs surround the run.
    pub boot_mode: Option<BootMode>,
    /// Actions of `customboot`.
    #[serde(rename = "custombootConfig")]
    pub custom: Custom,
}

/// Which BMC jobs surround a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BootMode {
    /// Off, next boot from the network, on.
    Netboot,
    /// Off, insert the ISO, next boot from it, on.
    #[serde(alias = "iso")]
    Isoboot,
    /// The listed actions.
    Customboot,
}

/// Actions of `customboot`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Custom {
    /// Before the run.
    pub preparing_actions: Vec<BmcAction>,
    /// After it.
    pub post_actions: Vec<BmcAction>,
}

/// State of a workflow, in upstream's spelling; that of its charts up to 0.6 is read too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum State {
    /// Not looked at yet (the empty string on the wire).
    #[default]
    #[serde(rename = "")]
    New,
    /// Network boot is being permitted and BMC jobs run.
    #[serde(alias = "STATE_PREPARING")]
    Preparing,
    /// Waits for its agent.
    #[serde(alias = "STATE_PENDING")]
    Pending,
    /// An action runs.
    #[serde(alias = "STATE_RUNNING")]
    Running,
    /// Steps after the last action.
    #[serde(alias = "STATE_POST")]
    Post,
    /// Done.
    #[serde(alias = "STATE_SUCCESS")]
    Success,
    /// An action or a boot job failed.
    #[serde(alias = "STATE_FAILED")]
    Failed,
    /// An action or the whole took too long.
    #[serde(alias = "STATE_TIMEOUT")]
    Timeout,
}

/// State of one action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ActionState {
    /// Not started.
    #[default]
    #[serde(alias = "STATE_PENDING")]
    Pending,
    /// The agent runs it.
    #[serde(alias = "STATE_RUNNING")]
    Running,
    /// It ended with an error.
    #[serde(alias = "STATE_FAILED")]
    Failed,
    /// It took too long.
    #[serde(alias = "STATE_TIMEOUT")]
    Timeout,
    /// It ended well.
    #[serde(alias = "STATE_SUCCESS")]
    Success,
}

/// How far a workflow got.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkflowStatus {
    /// The agent whose turn it is.
    #[serde(rename = "agentID", skip_serializing_if = "String::is_empty")]
    pub agent_id: String,
    /// State.
    pub state: State,
    /// Bookkeeping of the boot.
    pub boot_options: BootOptionsStatus,
    /// `successful` or `failed`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub template_rendering: String,
    /// Seconds, from the YAML; 0 means none.
    #[serde(skip_serializing_if = "is_zero")]
    pub global_timeout: i64,
    /// When the whole times out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_execution_stop: Option<Timestamp>,
    /// The action last served or reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_state: Option<CurrentState>,
    /// The rendered tasks with their results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskStatus>,
    /// Conditions, upstream's shape (`time`, not `lastTransitionTime`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Ours: which attempt this is, from 1; 0 is read as 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempts: i64,
    /// Ours: when a later attempt began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_start: Option<Timestamp>,
    /// Ours: how it ended, as long as it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Ours: the attempts before this one, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Attempt>,
    /// Ours: the requests that were answered last.
    #[serde(skip_serializing_if = "Requests::is_empty")]
    pub requests: Requests,
    /// Ours: the disk that each hint chose when it was first used; later actions and attempts use
    /// no other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chosen_disks: Vec<ChosenDisk>,
}

pub(super) fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Bookkeeping of the boot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootOptionsStatus {
    /// Which way network boot was toggled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_netboot: Option<NetbootToggle>,
    /// BMC jobs by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub jobs: BTreeMap<String, JobStatus>,
}

/// Which way network boot was toggled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetbootToggle {
    /// Permitted before the run.
    pub toggled_true: bool,
    /// Forbidden after it.
    pub toggled_false: bool,
}

/// One BMC job of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// Uid of the Job.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// It ended.
    pub complete: bool,
    /// A Job of that name from before is gone.
    pub existing_job_deleted: bool,
}

/// The action last served or reported.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CurrentState {
    /// Agent.
    #[serde(rename = "agentID")]
    pub agent_id: String,
    /// Task id.
    #[serde(rename = "taskID")]
    pub task_id: String,
    /// Action id.
    #[serde(rename = "actionID")]
    pub action_id: String,
    /// State of that action.
    pub state: ActionState,
    /// Name of the action.
    #[serde(rename = "actionName")]
    pub action_name: String,
    /// Name of the task.
    #[serde(rename = "taskName")]
    pub task_name: String,
}

/// One rendered task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskStatus {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// The agent that runs it.
    #[serde(rename = "agentID")]
    pub agent_id: String,
    /// Binds of every action in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// Environment of every action in it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Actions, in order.
    pub actions: Vec<ActionStatus>,
}

/// One rendered action with its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionStatus {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// Seconds; 0 means none.
    pub timeout: i64,
    /// Arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Binds, after the task's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// Deprecated upstream: `host`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pid: String,
    /// Namespaces to share with the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Namespaces>,
    /// Environment, over the task's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// State.
    pub state: ActionState,
    /// When the agent started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_start: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_stop: Option<Timestamp>,
    /// For people: `1m2s`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub execution_duration: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Ours: how often it may fail within one attempt of its workflow and be begun again.
    #[serde(skip_serializing_if = "is_zero")]
    pub retries: i64,
    /// Ours: how often that was done in this attempt of its workflow.
    #[serde(skip_serializing_if = "is_zero")]
    pub retried: i64,
    /// Ours: seconds before it is begun again after its first failure; they double with each.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_wait: i64,
    /// Ours: when it may be begun again, as long as that is to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// Arguments with which its image is run once after it failed for good; upstream's old worker
    /// has it, its new agent has not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_failure: Vec<String>,
    /// The same after its time was up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_timeout: Vec<String>,
    /// Ours: which attempt of this action this is, from 1; 0 is read as 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempts: i64,
    /// Ours: its attempts before this one, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ActionAttempt>,
    /// Ours: when the box gives up waiting for its end, by the box's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Ours: the boot of the machine on which it was begun, where the agent says that.
    #[serde(rename = "bootID", skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
}

/// Namespaces an action shares with its host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Namespaces {
    /// `host` or empty.
    pub network: String,
    /// `host` or empty.
    pub pid: String,
}

/// A condition in upstream's shape.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// Type, such as `TemplateRenderedSuccess`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` or `False`.
    pub status: String,
    /// Stable code.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}
