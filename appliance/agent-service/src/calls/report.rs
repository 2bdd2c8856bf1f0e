//! Reports of agents: checked by the rules, stored in the workflow, then recorded as events.

use agent_rpc::{Refusal, Report};
use api::state::report::{self, ReportError};
use api::tinkerbell::{ActionState, ActionStatus, WorkflowStatus};
use jiff::Timestamp;
use status::boot_event::BootEvent;

use crate::Service;
use crate::wire::{api_report, workflow_key};

impl Service {
    /// Applies a report to its workflow. `Ok` means that the result is stored.
    pub(crate) async fn take(&self, from: &Report) -> Result<(), Refusal> {
        let key = workflow_key(&from.workflow_id)?;
        let mut accepted = None;
        let changed = self.change(&key, |workflow| {
            let report = api_report(from, workflow, self.agents.boot_of(&from.agent_id));
            let held = match &workflow.spec {
                spec if spec.disabled == Some(true) => Some("disabled"),
                spec if spec.paused == Some(true) => Some("paused"),
                _ => None,
            };
            if let (Some(held), ActionState::Running) = (held, report.state) {
                return Err(Refusal::Precondition(format!("workflow {key} is {held}")));
            }
            let mut status = workflow.status.clone();
            let is_news = report::take(&mut status, &report, self.clock.now());
            accepted = Some(report);
            match is_news {
                Ok(is_news) => Ok(is_news.then_some(status)),
                Err(error @ (ReportError::Action { .. } | ReportError::Agent { .. })) => {
                    Err(Refusal::NotFound(error.to_string()))
                }
                Err(error @ ReportError::Late { .. }) => {
                    Err(Refusal::Precondition(error.to_string()))
                }
            }
        });
        let changed = changed.await?;
        if let (Some(status), Some(accepted)) = (changed, accepted) {
            self.agents.forget_progress(&from.workflow_id);
            self.waits.forget(&from.workflow_id);
            self.record_report(&accepted, from, &status);
        }
        Ok(())
    }

    fn record_report(&self, accepted: &report::Report, from: &Report, status: &WorkflowStatus) {
        let Some((action, times)) = attempt_of(status, &accepted.action_id) else { return };
        let name = action.name.clone();
        let millis = match (times.start, times.stop) {
            (Some(start), Some(stop)) => stop.duration_since(start).as_millis(),
            _ => 0,
        };
        let mut message = from.message.clone();
        if action.id != accepted.action_id {
            let (retried, retries) = (action.retried, action.retries);
            message.push_str(&format!("; the action starts again, retry {retried} of {retries}"));
        }
        let event = match accepted.state {
            ActionState::Pending => return,
            ActionState::Running => BootEvent::ActionStarted { name },
            state => BootEvent::ActionEnded {
                name,
                ok: state == ActionState::Success,
                message,
                millis: u64::try_from(millis).unwrap_or(0),
            },
        };
        self.backend.record_event(&accepted.agent_id, &event);
    }
}

/// Start and end of an attempt of an action.
struct AttemptTimes {
    start: Option<Timestamp>,
    stop: Option<Timestamp>,
}

/// Returns the action that has an attempt with this ID, and start and end of the attempt.
fn attempt_of<'a>(
    status: &'a WorkflowStatus,
    id: &str,
) -> Option<(&'a ActionStatus, AttemptTimes)> {
    let mut actions = status.tasks.iter().flat_map(|task| &task.actions);
    actions.find_map(|action| {
        if action.id == id {
            let (start, stop) = (action.execution_start, action.execution_stop);
            return Some((action, AttemptTimes { start, stop }));
        }
        let before = action.history.iter().find(|attempt| attempt.id == id)?;
        let (start, stop) = (before.execution_start, before.execution_stop);
        Some((action, AttemptTimes { start, stop }))
    })
}
