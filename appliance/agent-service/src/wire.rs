//! Conversions between messages of the agent protocol and types of `api::state`.

use agent_rpc::{Assignment, Namespaces, Refusal, Report};
use api::meta::ObjectKey;
use api::state::{report, serve};
use api::tinkerbell::{ActionState, ActionStatus, TaskStatus, Workflow};

/// Parses a workflow ID, `namespace/name`.
pub fn workflow_key(id: &str) -> Result<ObjectKey, Refusal> {
    let (namespace, name) = id.split_once('/').ok_or_else(|| {
        Refusal::InvalidArgument(format!("workflow id {id:?} is not namespace/name"))
    })?;
    Ok(ObjectKey::new(namespace, name))
}

/// Creates the message that assigns an action to its agent.
pub fn assignment(key: &ObjectKey, task: &TaskStatus, action: &ActionStatus) -> Assignment {
    Assignment {
        workflow_id: key.to_string(),
        task_id: task.id.clone(),
        agent_id: task.agent_id.clone(),
        action_id: action.id.clone(),
        name: action.name.clone(),
        image: action.image.clone(),
        timeout_secs: match action.timeout {
            ..=0 => serve::NO_LIMIT_SECS,
            secs => secs,
        },
        command: action.command.clone(),
        volumes: serve::volumes(task, action),
        environment: serve::environment(task, action),
        pid: action.pid.clone(),
        namespaces: action
            .namespaces
            .clone()
            .map(|it| Namespaces { network: it.network, pid: it.pid }),
        on_failure: for_good(action, &action.on_failure),
        on_timeout: for_good(action, &action.on_timeout),
    }
}

/// Returns the command to run after a failure; empty while repeats of the action are left.
fn for_good(action: &ActionStatus, command: &[String]) -> Vec<String> {
    if action.retried < action.retries { Vec::new() } else { command.to_vec() }
}

/// Converts a report for `api::state`. `boot_id` is the boot ID of the agent's machine.
pub fn api_report(from: &Report, workflow: &Workflow, boot_id: String) -> report::Report {
    let agent_id = match from.agent_id.as_str() {
        "" => workflow.status.agent_id.clone(),
        id => id.to_owned(),
    };
    report::Report {
        agent_id,
        task_id: from.task_id.clone(),
        action_id: from.action_id.clone(),
        state: action_state(from.state),
        boot_id,
        duration: from.duration.clone(),
        message: from.message.clone(),
    }
}

/// Converts the state of an action for `api::state`.
pub fn action_state(state: agent_rpc::ActionState) -> ActionState {
    use agent_rpc::ActionState as Wire;
    match state {
        Wire::Pending => ActionState::Pending,
        Wire::Running => ActionState::Running,
        Wire::Failed => ActionState::Failed,
        Wire::Timeout => ActionState::Timeout,
        Wire::Success => ActionState::Success,
    }
}
