//! What an agent is given when it asks for work (upstream tink `internal/grpc`, GetAction).

use crate::tinkerbell::{ActionState, ActionStatus, State, TaskStatus, WorkflowStatus};

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
/// an agent that comes back after a power cut starts it anew. An action that leaves the agent OS
/// reports success before it leaves, so it is never served twice.
pub fn serve<'a>(status: &'a WorkflowStatus, agent_id: &str) -> Serve<'a> {
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
mod tests {
    use super::{Serve, environment, serve, volumes};
    use crate::state::workflow::STATES;
    use crate::tinkerbell::{ActionState, ActionStatus, State, TaskStatus, WorkflowStatus};

    fn action(name: &str, state: ActionState) -> ActionStatus {
        ActionStatus { id: name.into(), name: name.into(), state, ..Default::default() }
    }

    fn status(state: State, tasks: &[(&str, &[ActionState])]) -> WorkflowStatus {
        let tasks = tasks
            .iter()
            .map(|(agent, states)| TaskStatus {
                id: format!("task-{agent}"),
                agent_id: (*agent).into(),
                actions: states
                    .iter()
                    .enumerate()
                    .map(|(at, state)| action(&format!("{agent}{at}"), *state))
                    .collect(),
                ..Default::default()
            })
            .collect();
        WorkflowStatus { state, tasks, ..Default::default() }
    }

    fn served(status: &WorkflowStatus, agent: &str) -> Option<String> {
        match serve(status, agent) {
            Serve::Action { action, .. } => Some(action.id.clone()),
            Serve::Wait(_) => None,
        }
    }

    #[test]
    fn actions_come_in_order_and_a_running_one_comes_again() {
        use ActionState::{Failed, Pending, Running, Success, Timeout};
        /// Tasks by agent and their actions' states, who asks, the action that is served.
        type Case<'a> = (&'a [(&'a str, &'a [ActionState])], &'a str, Option<&'a str>);
        let cases: &[Case<'_>] = &[
            (&[("a", &[Pending, Pending])], "a", Some("a0")),
            (&[("a", &[Running, Pending])], "a", Some("a0")),
            (&[("a", &[Success, Pending])], "a", Some("a1")),
            (&[("a", &[Success, Success])], "a", None),
            (&[("a", &[Failed, Pending])], "a", None),
            (&[("a", &[Timeout, Pending])], "a", None),
            (&[("a", &[Success]), ("b", &[Pending])], "a", None),
            (&[("a", &[Success]), ("b", &[Pending])], "b", Some("b0")),
            (&[("a", &[Pending]), ("b", &[Pending])], "b", None),
        ];
        for (tasks, agent, want) in cases {
            let got = served(&status(State::Running, tasks), agent);
            assert_eq!(got.as_deref(), *want, "{tasks:?} {agent}");
        }
    }

    #[test]
    fn only_pending_and_running_workflows_serve() {
        for state in STATES {
            let status = status(state, &[("a", &[ActionState::Pending])]);
            assert_eq!(served(&status, "a").is_some(), state.serves(), "{state:?}");
        }
    }

    #[test]
    fn the_action_overlays_its_task() {
        let mut task = TaskStatus { volumes: vec!["/dev:/dev".into()], ..Default::default() };
        task.environment = [("A".into(), "task".into()), ("B".into(), "task".into())].into();
        let mut action = action("x", ActionState::Pending);
        action.volumes = vec!["/tmp:/tmp".into()];
        action.environment = [("B".into(), "action".into())].into();
        assert_eq!(environment(&task, &action), ["A=task", "B=action"]);
        assert_eq!(volumes(&task, &action), ["/dev:/dev", "/tmp:/tmp"]);
    }
}
