//! Queue of a machine, whose workflows run one at a time: first a workflow that has begun, then the
//! oldest workflow. (Upstream serves workflows in the order of its cache, which is undefined.)

use jiff::Timestamp;

use crate::tinkerbell::{ActionState, State, Workflow, WorkflowStatus};

/// Position of a workflow in the queue of its machine. The workflow with the lowest position runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePosition {
    /// True if the workflow has not begun.
    waits: bool,
    /// Creation time of the workflow.
    created: Option<Timestamp>,
    /// Namespace and name, the order of workflows that were created in the same second.
    name: (String, String),
}

impl QueuePosition {
    /// Returns the queue position of `workflow`.
    pub fn of(workflow: &Workflow) -> Self {
        let metadata = &workflow.metadata;
        Self {
            waits: !begun(&workflow.status),
            created: metadata.creation_timestamp,
            name: (metadata.namespace.clone(), metadata.name.clone()),
        }
    }
}

/// Returns true if the workflow has changed the machine (such as by a boot) and has not ended.
pub fn begun(status: &WorkflowStatus) -> bool {
    let booted = || {
        let boot = &status.boot_options;
        !boot.jobs.is_empty() || boot.allow_netboot.as_ref().is_some_and(|it| it.toggled_true)
    };
    match status.state {
        State::Running | State::Post => true,
        State::Preparing | State::Pending => booted(),
        State::New | State::Success | State::Failed | State::Timeout => false,
    }
}

/// Returns true if no action of the workflow may start: the workflow is disabled, being deleted, or
/// paused before its beginning.
pub fn idle(workflow: &Workflow) -> bool {
    workflow.spec.disabled == Some(true)
        || workflow.metadata.deletion_timestamp.is_some()
        || (workflow.spec.paused == Some(true) && !begun(&workflow.status))
}

/// Returns true if later workflows in the queue must wait for this workflow.
pub fn holds(workflow: &Workflow) -> bool {
    let state = workflow.status.state;
    state != State::New && !state.ended() && !idle(workflow)
}

/// Returns true if the agent has an unfinished action, or a task while the workflow is in `Post`.
pub fn needs(status: &WorkflowStatus, agent_id: &str) -> bool {
    let open = |state: ActionState| matches!(state, ActionState::Pending | ActionState::Running);
    status.tasks.iter().any(|task| {
        task.agent_id == agent_id
            && (status.state == State::Post || task.actions.iter().any(|it| open(it.state)))
    })
}

/// Returns the name of the workflow that `workflow` waits for: the first of `others` with the same
/// Hardware and an earlier queue position. `None` if there is no such workflow.
pub fn ahead<'a>(
    workflow: &Workflow,
    others: impl Iterator<Item = &'a Workflow>,
) -> Option<&'a str> {
    let own = QueuePosition::of(workflow);
    others
        .filter(|other| {
            other.spec.hardware_ref == workflow.spec.hardware_ref
                && other.metadata.namespace == workflow.metadata.namespace
                && other.metadata.name != workflow.metadata.name
                && holds(other)
        })
        .map(|other| (QueuePosition::of(other), other.metadata.name.as_str()))
        .filter(|(place, _)| *place < own)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::{ahead, begun, needs};
    use crate::tinkerbell::{ActionState, ActionStatus, State, TaskStatus, Workflow};

    fn workflow(name: &str, second: i64, state: State) -> Workflow {
        let mut workflow = Workflow::default();
        workflow.metadata.name = name.to_owned();
        workflow.metadata.creation_timestamp = jiff::Timestamp::from_second(second).ok();
        workflow.spec.hardware_ref = "nuc1".to_owned();
        workflow.status.state = state;
        workflow
    }

    fn before(own: &Workflow, others: &[Workflow]) -> Option<String> {
        ahead(own, others.iter()).map(str::to_owned)
    }

    #[test]
    fn what_has_begun_then_the_oldest() {
        let own = workflow("own", 5, State::Pending);
        let older = workflow("older", 3, State::Pending);
        let oldest = workflow("oldest", 1, State::Preparing);
        let younger = workflow("younger", 9, State::Pending);
        let runs = workflow("runs", 9, State::Running);
        let all = [older.clone(), younger.clone(), oldest, runs.clone()];
        assert_eq!(before(&own, &all).as_deref(), Some("runs"));
        assert_eq!(before(&own, &all[..3]).as_deref(), Some("oldest"));
        assert_eq!(before(&own, &all[..2]).as_deref(), Some("older"));
        assert_eq!(before(&own, &all[1..2]), None);
        assert_eq!(before(&runs, &all[..3]), None);
        // Workflows of the same second are ordered by name, so that exactly one of two waits.
        let twin = workflow("twin", 5, State::Pending);
        assert_eq!(before(&own, std::slice::from_ref(&twin)), None);
        assert_eq!(before(&twin, std::slice::from_ref(&own)).as_deref(), Some("own"));
    }

    #[test]
    fn who_does_not_run_holds_up_nobody() {
        let own = workflow("own", 5, State::Pending);
        for state in [State::New, State::Success, State::Failed, State::Timeout] {
            assert_eq!(before(&own, &[workflow("other", 1, state)]), None, "{state:?}");
        }
        let mut paused = workflow("paused", 1, State::Pending);
        paused.spec.paused = Some(true);
        assert_eq!(before(&own, &[paused.clone()]), None);
        paused.status.state = State::Running;
        assert_eq!(before(&own, &[paused]).as_deref(), Some("paused"), "it is half done");
        let mut off = workflow("off", 1, State::Running);
        off.spec.disabled = Some(true);
        let mut elsewhere = workflow("elsewhere", 1, State::Running);
        elsewhere.spec.hardware_ref = "nuc2".to_owned();
        assert_eq!(before(&own, &[off, elsewhere]), None);
    }

    #[test]
    fn a_boot_is_a_beginning() {
        let mut status = workflow("a", 1, State::Pending).status;
        assert!(!begun(&status));
        status.boot_options.jobs.entry("netboot-a".to_owned()).or_default();
        assert!(begun(&status));
    }

    #[test]
    fn an_agent_is_needed_until_its_last_action_is_done() {
        let task = |agent: &str, state| TaskStatus {
            agent_id: agent.to_owned(),
            actions: vec![ActionStatus { state, ..ActionStatus::default() }],
            ..TaskStatus::default()
        };
        let mut status = workflow("a", 1, State::Running).status;
        status.tasks = vec![task("a", ActionState::Success), task("b", ActionState::Pending)];
        assert!(!needs(&status, "a") && needs(&status, "b") && !needs(&status, "c"));
        status.state = State::Post;
        assert!(needs(&status, "a"), "its machine may be switched off in a moment");
    }
}
