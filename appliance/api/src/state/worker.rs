//! Workflow data for older workers (tink-worker). They identify an action by its name and its
//! position in one list, without IDs and attempts.

use crate::tinkerbell::{ActionState, ActionStatus, TaskStatus, WorkflowStatus};

/// Returns every action with its task, in the order of execution.
pub fn list(status: &WorkflowStatus) -> impl Iterator<Item = (&TaskStatus, &ActionStatus)> {
    status.tasks.iter().flat_map(|task| task.actions.iter().map(move |action| (task, action)))
}

/// Returns the action with a task name and an action name; `None` if absent. A template permits no
/// action name twice in a task. For a duplicate name, the first action that has not succeeded is
/// returned.
pub fn named<'a>(
    status: &'a WorkflowStatus,
    task: &str,
    action: &str,
) -> Option<(&'a TaskStatus, &'a ActionStatus)> {
    let is_it = |it: &(&TaskStatus, &ActionStatus)| it.0.name == task && it.1.name == action;
    let open = |it: &(&TaskStatus, &ActionStatus)| it.1.state != ActionState::Success;
    list(status).filter(is_it).find(open).or_else(|| list(status).find(is_it))
}

/// Returns true if a report can only be about an earlier attempt: it reports the end of an action
/// that has not started. A worker starts no action without the box's consent, so the action was
/// reset for a repeat. (A report with an action ID needs no such check.)
pub fn is_late(action: &ActionStatus, reported: ActionState) -> bool {
    let ends =
        matches!(reported, ActionState::Success | ActionState::Failed | ActionState::Timeout);
    ends && action.state == ActionState::Pending
}

#[cfg(test)]
mod tests {
    use super::{is_late, list, named};
    use crate::state::attempt::begin_again;
    use crate::tinkerbell::{ActionState, ActionStatus, TaskStatus, WorkflowStatus};

    const STATES: [ActionState; 5] = [
        ActionState::Pending,
        ActionState::Running,
        ActionState::Success,
        ActionState::Failed,
        ActionState::Timeout,
    ];

    fn action(name: &str, id: &str, state: ActionState) -> ActionStatus {
        let (name, id) = (name.to_owned(), id.to_owned());
        ActionStatus { name, id, state, ..ActionStatus::default() }
    }

    fn task(name: &str, actions: Vec<ActionStatus>) -> TaskStatus {
        TaskStatus { name: name.to_owned(), actions, ..TaskStatus::default() }
    }

    #[test]
    fn an_action_is_told_by_both_names() {
        let tasks = vec![
            task("one", vec![action("write", "1", ActionState::Success)]),
            task("two", vec![action("write", "2", ActionState::Running)]),
        ];
        let status = WorkflowStatus { tasks, ..WorkflowStatus::default() };
        let id = |task: &str, action: &str| {
            named(&status, task, action).map(|(_, action)| action.id.as_str())
        };
        assert_eq!(id("one", "write"), Some("1"));
        assert_eq!(id("two", "write"), Some("2"));
        assert_eq!((id("two", "boot"), id("three", "write")), (None, None));
        let ids: Vec<_> = list(&status).map(|(_, action)| action.id.as_str()).collect();
        assert_eq!(ids, ["1", "2"]);
    }

    #[test]
    fn of_one_name_twice_the_one_to_be_done() {
        let both = |first, second| {
            let actions = vec![action("write", "1", first), action("write", "2", second)];
            let status =
                WorkflowStatus { tasks: vec![task("one", actions)], ..WorkflowStatus::default() };
            named(&status, "one", "write").map(|(_, action)| action.id.clone())
        };
        use ActionState::{Pending, Running, Success};
        assert_eq!(both(Running, Pending).as_deref(), Some("1"));
        assert_eq!(both(Success, Running).as_deref(), Some("2"));
        assert_eq!(both(Success, Success).as_deref(), Some("1"));
    }

    #[test]
    fn the_end_of_what_was_not_begun_is_late() {
        for state in STATES {
            for reported in STATES {
                let ends = !matches!(reported, ActionState::Pending | ActionState::Running);
                let want = ends && state == ActionState::Pending;
                assert_eq!(is_late(&action("a", "1", state), reported), want);
            }
        }
        let mut again = action("a", "1", ActionState::Running);
        assert!(!is_late(&again, ActionState::Failed));
        begin_again(&mut again);
        assert!(is_late(&again, ActionState::Failed), "sent twice, it would cost two attempts");
    }
}
