//! What an agent is given when it asks for work (upstream tink `internal/grpc`, GetAction).

use jiff::{SignedDuration, Timestamp};

use super::attempt::retry_left;
use crate::tinkerbell::{ActionState, ActionStatus, State, TaskStatus, WorkflowStatus};

/// An action without a limit, as it is told to agents, in seconds: upstream's takes 0 for an
/// expired one. Some ten years, which its nanoseconds still hold.
pub const NO_LIMIT_SECS: i64 = 315_360_000;
/// The least time from the beginning of an action that leaves the agent OS until an agent can be
/// heard again that was booted since; one that asks sooner lost its answer.
const BOOT_LEAST: SignedDuration = SignedDuration::from_secs(20);

/// The answer to an agent that asks.
#[derive(Debug, PartialEq)]
pub enum Serve<'a> {
    /// Run this.
    Action {
        /// The task it belongs to.
        task: &'a TaskStatus,
        /// The action.
        action: &'a ActionStatus,
    },
    /// This workflow has nothing for this agent now; the reason is for people.
    Wait(&'static str),
}

/// What `agent_id` is to do next in a workflow.
///
/// The first action that has not succeeded is served again for as long as it is pending or running:
/// an agent that comes back after a power cut starts it anew. For an action that leaves the agent
/// OS see [`came_back`].
pub fn serve<'a>(status: &'a WorkflowStatus, agent_id: &str, now: Timestamp) -> Serve<'a> {
    match status.state {
        State::New => return Serve::Wait("its template is not rendered yet"),
        State::Preparing => return Serve::Wait("its machine is being prepared"),
        State::Post => return Serve::Wait("its last action is done"),
        State::Success | State::Failed | State::Timeout => return Serve::Wait("it has ended"),
        State::Pending | State::Running => {}
    }
    for task in &status.tasks {
        for action in &task.actions {
            match action.state {
                ActionState::Success => {}
                ActionState::Failed | ActionState::Timeout => {
                    return Serve::Wait("an earlier action did not succeed");
                }
                ActionState::Pending if retry_left(action, now).is_some() => {
                    return Serve::Wait("it waits before an action is begun again");
                }
                ActionState::Pending | ActionState::Running if task.agent_id == agent_id => {
                    return Serve::Action { task, action };
                }
                ActionState::Pending | ActionState::Running => {
                    return Serve::Wait("it is another agent's turn");
                }
            }
        }
    }
    Serve::Wait("every action is done")
}

/// Whether the agent that asks is back from an action that leaves its OS, which then is done: an
/// upstream agent is killed by its own reboot before it can report, and would be told to reboot
/// for ever (CAPT #569).
///
/// Told by the image's repository name (`reboot`, `kexec`, or `waitdaemon` that runs one of these).
/// An agent of ours leaves only once its success is acknowledged: one that asks lost power before
/// that, and is to do it again, or its machine would stay in the agent's OS. Of an upstream agent
/// (`is_stock`) nothing is known but that it asks only when it is idle, so that it has forgotten
/// the action: it is taken to be back unless it asks sooner than any machine can boot.
pub fn came_back(action: &ActionStatus, is_stock: bool, now: Timestamp) -> bool {
    is_stock
        && action.state == ActionState::Running
        && leaves(action)
        && action.execution_start.is_some_and(|start| now.duration_since(start) >= BOOT_LEAST)
}

/// The action ends by leaving the agent's OS.
fn leaves(action: &ActionStatus) -> bool {
    let name = match repository(&action.image) {
        "waitdaemon" => action.environment.get("IMAGE").map_or("", |image| repository(image)),
        name => name,
    };
    matches!(name, "reboot" | "kexec")
}

/// The last part of an OCI reference's name, without tag and digest: by it an action is told,
/// whatever the registry.
pub fn repository(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    name.split(':').next().unwrap_or_default()
}

/// Why an agent must stop an action it says it runs; `None` while it is wanted.
pub fn unwanted(status: &WorkflowStatus, action_id: &str) -> Option<String> {
    if status.state.ended() {
        let why = status.ended.as_ref().map_or("it has ended", |ended| &ended.message);
        return Some(format!("its workflow is over: {why}"));
    }
    let mut actions = status.tasks.iter().flat_map(|task| &task.actions);
    match actions.find(|action| action.id == action_id).map(|action| action.state) {
        Some(ActionState::Pending | ActionState::Running) => None,
        Some(_) => Some("it has ended".to_owned()),
        None => Some("this attempt of it is over".to_owned()),
    }
}

/// The environment of an action: the task's, overlaid by the action's, as sorted `K=V`.
pub fn environment(task: &TaskStatus, action: &ActionStatus) -> Vec<String> {
    let mut merged = task.environment.clone();
    merged.extend(action.environment.iter().map(|(key, value)| (key.clone(), value.clone())));
    merged.into_iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// The binds of an action: the task's first, then the action's.
pub fn volumes(task: &TaskStatus, action: &ActionStatus) -> Vec<String> {
    task.volumes.iter().chain(&action.volumes).cloned().collect()
}

#[cfg(test)]
mod tests;
