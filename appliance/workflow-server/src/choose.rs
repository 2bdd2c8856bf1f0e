//! Which disk a hint chose: taken as the rules say, and written before the disk is used.

use api::state::disks::{self, Refused};
use api::tinkerbell::{ChosenDisk, WORKFLOW, Workflow};
use controllers::{ObjectError, fetch, write_status};
use workflow_rpc::{DiskChoice, Refusal};

use crate::Service;
use crate::service::CONFLICTS_MAX;
use crate::wire::workflow_key;

impl Service {
    /// Takes the choice of a disk; `Ok` once it is written.
    pub(crate) async fn take_choice(&self, from: &DiskChoice) -> Result<(), Refusal> {
        let key = workflow_key(&from.workflow_id)?;
        let choice = ChosenDisk {
            agent_id: from.agent_id.clone(),
            hint: from.hint.clone(),
            wwn: from.wwn.clone(),
            serial: from.serial.clone(),
            model: from.model.clone(),
            size: i64::try_from(from.bytes).unwrap_or(i64::MAX),
        };
        for _ in 0..CONFLICTS_MAX {
            let workflow: Workflow = match fetch(self.objects.as_ref(), WORKFLOW, &key).await {
                Ok(workflow) => workflow,
                Err(ObjectError::NotFound(why)) => return Err(Refusal::NotFound(why)),
                Err(error) => return Err(Refusal::Internal(error.to_string())),
            };
            let mut status = workflow.status.clone();
            match disks::choose(&mut status, &from.action_id, choice.clone()) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error @ Refused::Action { .. }) => {
                    return Err(Refusal::NotFound(error.to_string()));
                }
                Err(error) => {
                    tracing::warn!(workflow = %key, agent = from.agent_id, %error, "disk refused");
                    return Err(Refusal::Precondition(error.to_string()));
                }
            }
            let objects = self.objects.as_ref();
            match write_status(objects, WORKFLOW, &workflow.metadata, &status).await {
                Ok(()) => return Ok(()),
                Err(ObjectError::Conflict(_)) => {}
                Err(error) => return Err(Refusal::Internal(error.to_string())),
            }
        }
        Err(Refusal::Unavailable(format!("workflow {key} is being written too often")))
    }
}

#[cfg(test)]
mod tests;
