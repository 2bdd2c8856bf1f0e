//! Runs the handler of a failed action (`on-failure`, `on-timeout` of the template): one more run
//! of the image, with other arguments, as in upstream's first worker.

use agent_rpc::{ActionState, Assignment};

use super::{Host, Runner};
use crate::actions::Action;

impl<H: Host> Runner<H> {
    /// Runs the handler, if any, with the action's timeout. Returns text to append to the action's
    /// message; empty without a handler.
    pub(super) async fn handle(&self, assignment: &Assignment, ended: ActionState) -> String {
        let (key, command) = match ended {
            ActionState::Failed => ("on-failure", &assignment.on_failure),
            ActionState::Timeout => ("on-timeout", &assignment.on_timeout),
            _ => return String::new(),
        };
        if command.is_empty() {
            return String::new();
        }
        let handler = Assignment {
            command: command.clone(),
            on_failure: Vec::new(),
            on_timeout: Vec::new(),
            ..assignment.clone()
        };
        if !matches!(Action::parse(&handler, self.limits.clone()), Ok(Action::Container(_))) {
            return format!("; {key} was not run: {} takes no arguments", assignment.image);
        }
        tracing::info!(action = %assignment.name, "{key} begins");
        let ended = self.execute(&handler).await;
        match ended.state {
            ActionState::Success => format!("; {key} was run"),
            state => format!("; {key} ended as {state}: {}", ended.message),
        }
    }
}
