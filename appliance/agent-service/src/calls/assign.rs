//! Assignment of actions to agents. Only the first workflow in the machine's queue assigns actions.

use agent_rpc::{Assignment, Refusal};
use api::meta::ObjectKey;
use api::state::queue;
use api::state::report;
use api::state::serve::{self, ServeDecision};
use api::tinkerbell::{ActionState, ActionStatus, TaskStatus, WORKFLOW, Workflow};
use objects::{ObjectError, fetch, write_status};

use crate::Service;
use crate::wire::assignment;

/// Message of a completed action that left the agent OS by reboot or kexec.
const BACK: &str = "the machine left the agent OS and returned";

/// Result of the search for an action in one workflow.
enum Offer {
    /// The search ends with an action, or with the reason why the agent must wait.
    Final(Result<Box<Assignment>, Refusal>),
    /// The workflow was changed: search the workflow again.
    Again,
    /// The workflow has no work for the agent: search the next workflow.
    Nothing,
}

impl Service {
    pub(crate) async fn assignment(&self, agent_id: &str) -> Result<Assignment, Refusal> {
        for (key, run) in self.runs.of_agent(agent_id) {
            if run.idle {
                continue;
            }
            let mut offer = Offer::Again;
            for _ in 0..crate::service::CONFLICTS_MAX {
                offer = self.offer(&key, agent_id).await?;
                if !matches!(offer, Offer::Again) {
                    break;
                }
            }
            match offer {
                Offer::Final(answer) => return answer.map(|given| *given),
                Offer::Nothing => {}
                Offer::Again => {
                    let why = format!("workflow {key} changes too often: try again");
                    return Err(Refusal::Unavailable(why));
                }
            }
        }
        Err(Refusal::NotFound(format!("no workflow for agent {agent_id}")))
    }

    async fn offer(&self, key: &ObjectKey, agent_id: &str) -> Result<Offer, Refusal> {
        let workflow: Workflow = match fetch(self.objects.as_ref(), WORKFLOW, key).await {
            Ok(workflow) => workflow,
            Err(ObjectError::NotFound(_)) => return Ok(Offer::Nothing),
            Err(error @ ObjectError::Unreadable { .. }) => {
                tracing::warn!(workflow = %key, %error, "workflow is not served");
                return Ok(Offer::Nothing);
            }
            Err(error) => return Err(Refusal::Internal(error.to_string())),
        };
        // The index of runs may be a moment behind.
        if !queue::holds(&workflow) || !queue::needs(&workflow.status, agent_id) {
            return Ok(Offer::Nothing);
        }
        let wait = |reason: &str| {
            Ok(Offer::Final(Err(Refusal::Precondition(format!("workflow {key}: {reason}")))))
        };
        let now = self.clock.now();
        let (task, action) = match serve::serve(&workflow.status, agent_id, now) {
            ServeDecision::Action { task, action } => (task, action),
            ServeDecision::Wait(reason) => return wait(reason),
        };
        let boot_id = self.agents.boot_of(agent_id);
        // An agent of the box may not have sent its Hello since the box started.
        let is_stock = self.settings.permissive && boot_id.is_empty();
        if serve::came_back(action, is_stock, now) {
            let success = report::Report {
                agent_id: agent_id.to_owned(),
                task_id: task.id.clone(),
                action_id: action.id.clone(),
                state: ActionState::Success,
                duration: String::new(),
                message: BACK.to_owned(),
                boot_id,
            };
            let mut status = workflow.status.clone();
            if report::take(&mut status, &success, now) != Ok(true) {
                return wait("the action of the returned agent has ended");
            }
            let objects = self.objects.as_ref();
            return match write_status(objects, WORKFLOW, &workflow.metadata, &status).await {
                Ok(()) | Err(ObjectError::Conflict(_)) => Ok(Offer::Again),
                Err(error) => Err(Refusal::Internal(error.to_string())),
            };
        }
        if workflow.spec.paused == Some(true) {
            return wait("it is paused");
        }
        let mut assignment = assignment(key, task, action);
        assignment.environment = self.environment_of(task, action, is_stock);
        Ok(Offer::Final(Ok(Box::new(assignment))))
    }

    /// Returns the environment of an action to send to the agent.
    pub(crate) fn environment_of(
        &self,
        task: &TaskStatus,
        action: &ActionStatus,
        is_stock: bool,
    ) -> Vec<String> {
        let environment = serve::environment(task, action);
        self.backend.environment(&task.agent_id, is_stock, &action.image, environment)
    }

    /// Returns the reason why an agent must stop its current action; `None` if the agent must
    /// continue. The index of runs is checked first, because the index is in memory. The index may
    /// be late, so the stored workflow is read before an action is stopped.
    pub(crate) async fn unwanted(
        &self,
        workflow_id: &str,
        action_id: &str,
        agent_id: &str,
    ) -> Option<String> {
        let is_its = self.runs.runs_for(workflow_id, agent_id);
        if is_its && self.runs.may_run(workflow_id, action_id) {
            return None;
        }
        let deleted = || Some("its workflow was deleted".to_owned());
        let key = crate::wire::workflow_key(workflow_id).ok()?;
        match fetch::<Workflow>(self.objects.as_ref(), WORKFLOW, &key).await {
            // An agent gets no information about workflows of other machines, not even that they
            // exist.
            Ok(workflow) => match workflow.status.tasks.iter().any(|it| it.agent_id == agent_id) {
                true => serve::unwanted(&workflow.status, action_id),
                false => deleted(),
            },
            Err(ObjectError::NotFound(_)) => deleted(),
            Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{AGENT, fixture};
    use api::tinkerbell::State;

    #[tokio::test]
    async fn an_agent_learns_nothing_of_the_workflows_of_others() {
        let fixture = fixture();
        let ask = async |agent: &str| fixture.service.unwanted("default/wf", "a", agent).await;
        let other = "52:54:00:77:00:02";
        let missing = ask(other).await;
        assert!(missing.is_some());
        for state in [State::Pending, State::Running, State::Success] {
            fixture.put(state);
            assert_eq!(ask(other).await, missing, "{state:?}");
            assert_ne!(ask(AGENT).await, missing, "{state:?}");
        }
    }
}
