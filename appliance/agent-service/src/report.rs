//! Reports of agents: checked by the rules, written to the workflow, then recorded as events.

use agent_rpc::{Refusal, Report};
use api::state::report::{self, Refused};
use api::tinkerbell::{ActionState, ActionStatus, WorkflowStatus};
use jiff::Timestamp;
use status::boot_event::BootEvent;

use crate::Service;
use crate::wire::{api_report, workflow_key};

impl Service {
    /// Applies a report; returns `Ok` after the write.
    pub(crate) async fn take(&self, from: &Report) -> Result<(), Refusal> {
        let key = workflow_key(&from.workflow_id)?;
        let mut said = None;
        let changed = self.change(&key, |workflow| {
            let report = api_report(from, workflow, self.known.boot_of(&from.agent_id));
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
            said = Some(report);
            match is_news {
                Ok(is_news) => Ok(is_news.then_some(status)),
                Err(error @ (Refused::Action { .. } | Refused::Agent { .. })) => {
                    Err(Refusal::NotFound(error.to_string()))
                }
                Err(error @ Refused::Late { .. }) => Err(Refusal::Precondition(error.to_string())),
            }
        });
        let changed = changed.await?;
        if let (Some(status), Some(said)) = (changed, said) {
            self.known.forget_progress(&from.workflow_id);
            self.waits.forget(&from.workflow_id);
            self.tell_report(&said, from, &status);
        }
        Ok(())
    }

    fn tell_report(&self, said: &report::Report, from: &Report, status: &WorkflowStatus) {
        let Some((action, took)) = said_of(status, &said.action_id) else { return };
        let name = action.name.clone();
        let millis = match took {
            (Some(start), Some(stop)) => stop.duration_since(start).as_millis(),
            _ => 0,
        };
        let mut message = from.message.clone();
        if action.id != said.action_id {
            let (retried, retries) = (action.retried, action.retries);
            message.push_str(&format!("; it starts again, retry {retried} of {retries}"));
        }
        let moment = match said.state {
            ActionState::Pending => return,
            ActionState::Running => BootEvent::ActionStarted { name },
            state => BootEvent::ActionEnded {
                name,
                ok: state == ActionState::Success,
                message,
                millis: u64::try_from(millis).unwrap_or(0),
            },
        };
        self.rack.tell(&said.agent_id, &moment);
    }
}

/// Start and end of an attempt.
type Took = (Option<Timestamp>, Option<Timestamp>);

/// Action with an attempt of this id, with the start and end of that attempt.
fn said_of<'a>(status: &'a WorkflowStatus, id: &str) -> Option<(&'a ActionStatus, Took)> {
    let mut actions = status.tasks.iter().flat_map(|task| &task.actions);
    actions.find_map(|action| {
        if action.id == id {
            return Some((action, (action.execution_start, action.execution_stop)));
        }
        let before = action.history.iter().find(|attempt| attempt.id == id)?;
        Some((action, (before.execution_start, before.execution_stop)))
    })
}
