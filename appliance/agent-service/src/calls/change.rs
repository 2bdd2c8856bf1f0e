//! Changes of a workflow's status. A change is stored before it is acknowledged.

use agent_rpc::Refusal;
use api::meta::ObjectKey;
use api::tinkerbell::{WORKFLOW, Workflow, WorkflowStatus};
use objects::{ObjectError, fetch, write_status};

use crate::Service;
use crate::service::CONFLICTS_MAX;

impl Service {
    /// Computes a new status of a workflow with `change`, and writes the status. After a
    /// conflicting write, both steps are repeated, at most [`CONFLICTS_MAX`] times. Returns the new
    /// status; `None` if `change` returns `None`.
    ///
    /// # Errors
    /// `change` fails, the workflow does not exist, or the status cannot be written.
    pub(crate) async fn change(
        &self,
        key: &ObjectKey,
        mut change: impl FnMut(&Workflow) -> Result<Option<WorkflowStatus>, Refusal>,
    ) -> Result<Option<WorkflowStatus>, Refusal> {
        let objects = self.objects.as_ref();
        for _ in 0..CONFLICTS_MAX {
            let workflow: Workflow = match fetch(objects, WORKFLOW, key).await {
                Ok(workflow) => workflow,
                Err(ObjectError::NotFound(why)) => return Err(Refusal::NotFound(why)),
                Err(error) => return Err(Refusal::Internal(error.to_string())),
            };
            let Some(status) = change(&workflow)? else { return Ok(None) };
            match write_status(objects, WORKFLOW, &workflow.metadata, &status).await {
                Ok(()) => return Ok(Some(status)),
                Err(ObjectError::Conflict(_)) => {}
                Err(error) => return Err(Refusal::Internal(error.to_string())),
            }
        }
        Err(Refusal::Unavailable(format!("workflow {key} changes too often: try again")))
    }
}
