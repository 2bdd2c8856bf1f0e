//! Execution of the actions on workflows and power.

mod erase;

use std::sync::Arc;

use api::bmc::JOB;
use api::meta::ObjectKey;
use api::tinkerbell::{
    CANCEL_REQUEST, Hardware, RETRY_FROM, RETRY_REQUEST, RetryFrom, State, WORKFLOW, Workflow,
};
use dismissals::Dismissals;
use objects::Objects;
use serde_json::{Value, json};
use status::view::work::{DISMISSED, dismissal};
use stdx::MacAddr;

use crate::action::Action;
use crate::error::ActionError;
use crate::lookup::{change, create_once, machine, workflow};

/// Request of a person for an action without a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRequest {
    /// Action that the person requested.
    pub action: Action,
    /// Name of the machine's Hardware.
    pub machine: String,
    /// Name of the machine's workflow that the person saw; empty if there was none.
    pub workflow: String,
    /// Id of the request: lower-case letters and digits. The same id twice has one effect.
    pub id: String,
}

impl ActionRequest {
    /// Number of random bytes in an id.
    const ID_BYTES: usize = 4;

    /// Creates a request with a new id.
    pub fn new(action: Action, machine: &str, workflow: &str) -> Self {
        let (machine, workflow) = (machine.to_owned(), workflow.to_owned());
        Self { action, machine, workflow, id: stdx::random_hex(Self::ID_BYTES) }
    }
}

/// Executor of the actions. Clones share the objects.
#[derive(Clone)]
pub struct MachineActions {
    /// Access to the objects that actions read and write.
    pub objects: Arc<dyn Objects>,
}

impl MachineActions {
    /// Stores the request of an action without a form. Controllers carry it out.
    ///
    /// # Errors
    /// The machine does not permit the action, or an object cannot be written. Nothing is changed.
    pub async fn request(&self, request: &ActionRequest) -> Result<(), ActionError> {
        if request.action == Action::Ignore {
            return self.ignore(&request.machine).await;
        }
        let hardware = machine(&*self.objects, &request.machine).await?;
        match (request.action.power(), request.action) {
            (Some(_), _) => self.switch(&hardware, request).await,
            (None, Action::Erase) => erase::erase(&*self.objects, &hardware, &request.id).await,
            (None, _) => self.change_workflow(&hardware, request).await,
        }
    }

    /// Ignores an unknown machine, whose name is its MAC address.
    async fn ignore(&self, name: &str) -> Result<(), ActionError> {
        let mac: MacAddr = name.parse().map_err(|_| ActionError::IsKnown(name.to_owned()))?;
        Ok(Dismissals::new(Arc::clone(&self.objects)).ignore(&[mac]).await?)
    }

    /// Creates the Job of a power action.
    async fn switch(
        &self,
        hardware: &Hardware,
        request: &ActionRequest,
    ) -> Result<(), ActionError> {
        let name = &hardware.metadata.name;
        let bmc = hardware.spec.bmc_ref.as_ref();
        let bmc = bmc.ok_or_else(|| ActionError::NoBmc(name.clone()))?;
        let (namespace, word) = (&hardware.metadata.namespace, request.action.power());
        let suffix = request.action.description().word;
        let job = json!({
            "apiVersion": JOB.api_version(),
            "kind": JOB.kind,
            "metadata": {
                "name": format!("{}-{suffix}-{}", bmc.name, request.id),
                "namespace": namespace,
            },
            "spec": {
                "machineRef": { "name": bmc.name, "namespace": namespace },
                "tasks": [{ "powerAction": word }],
            },
        });
        Ok(create_once(&*self.objects, JOB, job).await?)
    }

    /// Writes the request into the workflow.
    async fn change_workflow(
        &self,
        hardware: &Hardware,
        request: &ActionRequest,
    ) -> Result<(), ActionError> {
        let workflow = workflow(&*self.objects, hardware, &request.workflow).await?;
        permit(request.action, &workflow)?;
        let key = ObjectKey::new(&workflow.metadata.namespace, &workflow.metadata.name);
        let dismissal = dismissal(&workflow);
        let edit = |object: &mut Value| edit(object, request, &dismissal);
        Ok(change(&*self.objects, WORKFLOW, &key, edit).await?)
    }
}

/// Checks that the state of a workflow permits the action.
fn permit(action: Action, workflow: &Workflow) -> Result<(), ActionError> {
    let state = workflow.status.state;
    let permitted = match action {
        Action::Retry | Action::StartOver | Action::Dismiss => {
            matches!(state, State::Failed | State::Timeout)
        }
        Action::Cancel => !state.ended() && state != State::Post,
        Action::Pause => !state.ended(),
        Action::Resume => true,
        _ => return Err(ActionError::NeedsForm(action.description().label)),
    };
    if permitted {
        return Ok(());
    }
    Err(ActionError::State {
        action: action.description().word,
        workflow: workflow.metadata.name.clone(),
        state,
    })
}

/// Writes the request of an action into a Workflow object.
fn edit(workflow: &mut Value, request: &ActionRequest, dismissal: &str) {
    let id = Value::from(request.id.as_str());
    match request.action {
        Action::Pause => workflow["spec"]["paused"] = true.into(),
        // Removed instead of set to false, so that the object is as before the pause.
        Action::Resume => {
            if let Some(spec) = workflow["spec"].as_object_mut() {
                spec.remove("paused");
            }
        }
        Action::Cancel => workflow["metadata"]["annotations"][CANCEL_REQUEST] = id,
        Action::Dismiss => workflow["metadata"]["annotations"][DISMISSED] = dismissal.into(),
        Action::Retry | Action::StartOver => {
            let annotations = &mut workflow["metadata"]["annotations"];
            annotations[RETRY_REQUEST] = id;
            let from = match request.action {
                Action::Retry => RetryFrom::Failed,
                _ => RetryFrom::Start,
            };
            annotations[RETRY_FROM] = from.as_str().into();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
