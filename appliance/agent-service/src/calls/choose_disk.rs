//! Recording of the disk that an agent chose, before the agent uses the disk.

use agent_rpc::{DiskChoice, Refusal};
use api::state::disks::{self, DiskChoiceError};
use api::tinkerbell::ChosenDisk;

use crate::Service;
use crate::wire::workflow_key;

impl Service {
    /// Records a disk choice in the workflow. `Ok` means that the choice is stored.
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
        let changed = self.change(&key, |workflow| {
            let mut status = workflow.status.clone();
            match disks::choose(&mut status, &from.action_id, choice.clone()) {
                Ok(is_news) => Ok(is_news.then_some(status)),
                Err(error @ DiskChoiceError::Action { .. }) => {
                    Err(Refusal::NotFound(error.to_string()))
                }
                Err(error) => {
                    tracing::warn!(workflow = %key, agent = from.agent_id, %error, "disk refused");
                    Err(Refusal::Precondition(error.to_string()))
                }
            }
        });
        changed.await.map(drop)
    }
}

#[cfg(test)]
mod tests;
