//! Response to an agent's request for work (upstream tink `internal/grpc`, GetAction).

use jiff::{SignedDuration, Timestamp};

use super::attempt::retry_left;
use crate::tinkerbell::{ActionState, ActionStatus, State, TaskStatus, WorkflowStatus};

/// Time limit in seconds that agents receive for an action without a limit: about ten years.
/// Upstream's agent treats 0 as expired, and its nanosecond counter does not overflow at this
/// value.
pub const NO_LIMIT_SECS: i64 = 315_360_000;
/// Minimum time from the start of a reboot action until a newly booted agent can send a request. An
/// agent that sends a request earlier did not reboot: the response to its last request was lost.
const BOOT_LEAST: SignedDuration = SignedDuration::from_secs(20);

/// Response of the box to an agent that requests work.
#[derive(Debug, PartialEq)]
pub enum ServeDecision<'a> {
    /// Action to run now.
    Action {
        /// Task of the action.
        task: &'a TaskStatus,
        /// First action that has not succeeded.
        action: &'a ActionStatus,
    },
    /// The workflow has no work for the agent now; the text is the reason for a person.
    Wait(&'static str),
}

/// Decides the next step of the agent `agent_id` in a workflow.
///
/// The box serves the first action that has not succeeded, and serves a running action again. An
/// agent that returns after a power failure starts the action again. For an action that leaves the
/// agent OS, see [`came_back`].
pub fn serve<'a>(status: &'a WorkflowStatus, agent_id: &str, now: Timestamp) -> ServeDecision<'a> {
    match status.state {
        State::New => return ServeDecision::Wait("its template is not rendered yet"),
        State::Preparing => return ServeDecision::Wait("its machine is being prepared"),
        State::Post => return ServeDecision::Wait("its last action is done"),
        State::Success | State::Failed | State::Timeout => {
            return ServeDecision::Wait("it has ended");
        }
        State::Pending | State::Running => {}
    }
    for task in &status.tasks {
        for action in &task.actions {
            match action.state {
                ActionState::Success => {}
                ActionState::Failed | ActionState::Timeout => {
                    return ServeDecision::Wait("an earlier action did not succeed");
                }
                ActionState::Pending if retry_left(action, now).is_some() => {
                    return ServeDecision::Wait("an action waits before its retry");
                }
                ActionState::Pending | ActionState::Running if task.agent_id == agent_id => {
                    return ServeDecision::Action { task, action };
                }
                ActionState::Pending | ActionState::Running => {
                    return ServeDecision::Wait("the next action is for another agent");
                }
            }
        }
    }
    ServeDecision::Wait("all actions are complete")
}

/// Returns true if the requesting agent has returned from an action that leaves the agent OS; the
/// action is then complete. An upstream agent is killed by its own reboot before it can report.
/// Without this rule the box would order a reboot again and again (CAPT #569).
///
/// The repository name of the image identifies such an action (`reboot`, `kexec`, or `waitdaemon`
/// that runs either). An upstream agent (`is_stock`) requests work only when it is idle, so it no
/// longer knows the action: it has returned, unless the request comes sooner than a machine can
/// boot. A Tinbox agent leaves only after the box acknowledged its success. Its request means that
/// power failed earlier, and that the agent must repeat the action to leave the agent OS.
pub fn came_back(action: &ActionStatus, is_stock: bool, now: Timestamp) -> bool {
    is_stock
        && action.state == ActionState::Running
        && leaves(action)
        && action.execution_start.is_some_and(|start| now.duration_since(start) >= BOOT_LEAST)
}

/// Returns true if the action ends by leaving the agent OS (reboot or kexec).
fn leaves(action: &ActionStatus) -> bool {
    let name = match repository(&action.image) {
        "waitdaemon" => action.environment.get("IMAGE").map_or("", |image| repository(image)),
        name => name,
    };
    matches!(name, "reboot" | "kexec")
}

/// Returns the last part of an OCI reference's name, without tag and digest. This name identifies
/// an action independently of the registry.
pub fn repository(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    name.split(':').next().unwrap_or_default()
}

/// Returns the reason why an agent must stop a running action; `None` if the agent must continue.
pub fn unwanted(status: &WorkflowStatus, action_id: &str) -> Option<String> {
    if status.state.ended() {
        let why = status.ended.as_ref().map_or("it has ended", |ended| &ended.message);
        return Some(format!("its workflow is over: {why}"));
    }
    let mut actions = status.tasks.iter().flat_map(|task| &task.actions);
    match actions.find(|action| action.id == action_id).map(|action| action.state) {
        Some(ActionState::Pending | ActionState::Running) => None,
        Some(_) => Some("it has ended".to_owned()),
        None => Some("this attempt of the action is over".to_owned()),
    }
}

/// Returns the environment of an action as sorted `K=V`. The action's values override the task's.
pub fn environment(task: &TaskStatus, action: &ActionStatus) -> Vec<String> {
    let mut merged = task.environment.clone();
    merged.extend(action.environment.iter().map(|(key, value)| (key.clone(), value.clone())));
    merged.into_iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// Returns the bind mounts of an action: first the task's mounts, then the action's.
pub fn volumes(task: &TaskStatus, action: &ActionStatus) -> Vec<String> {
    task.volumes.iter().chain(&action.volumes).cloned().collect()
}

#[cfg(test)]
mod tests;
