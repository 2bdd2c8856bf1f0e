//! Execution of the steps of a decision.

use api::bmc::{JOB, JobSpec, SecretRef};
use api::core::ObjectEvent;
use api::meta::{ObjectKey, ObjectMeta};
use api::tinkerbell::{HARDWARE, WORKFLOW};
use serde_json::{Value, json};

use super::WorkflowReconciler;
use super::decide::Step;
use super::observe::Observed;
use objects::{ObjectError, gone_is_fine, write_status};

impl WorkflowReconciler {
    pub(super) async fn apply(&self, observed: &Observed, step: Step) -> Result<(), ObjectError> {
        let objects = self.objects.as_ref();
        let metadata = &observed.workflow.metadata;
        match step {
            Step::Status(status) => {
                write_status(objects, WORKFLOW, metadata, status.as_ref()).await
            }
            Step::AllowNetboot(allow) => {
                let object = allow_netboot(observed.hardware_json.clone(), allow);
                gone_is_fine(objects.update(HARDWARE, object).await.map(drop))
            }
            Step::CreateJob { name, actions } => {
                let job = self.job(observed, &name, actions);
                match objects.create(JOB, job).await {
                    Ok(_) | Err(ObjectError::AlreadyExists(_)) => Ok(()),
                    Err(error) => Err(error),
                }
            }
            Step::DeleteJob(name) => {
                let key = ObjectKey::new(&metadata.namespace, name);
                gone_is_fine(objects.delete(JOB, &key).await)
            }
            Step::Tell { reason, message, warning } => {
                objects.record(ObjectEvent {
                    about: WORKFLOW,
                    namespace: metadata.namespace.clone(),
                    name: metadata.name.clone(),
                    uid: metadata.uid.clone(),
                    reason: reason.to_owned(),
                    message,
                    warning,
                    component: "workflow-controller".to_owned(),
                    at: self.clock.now(),
                });
                Ok(())
            }
        }
    }

    fn job(&self, observed: &Observed, name: &str, actions: Vec<api::bmc::Action>) -> Value {
        let workflow = &observed.workflow;
        let machine = observed
            .hardware
            .as_ref()
            .and_then(|hardware| hardware.spec.bmc_ref.as_ref())
            .map_or_else(String::new, |machine| machine.name.clone());
        let namespace = workflow.metadata.namespace.clone();
        let marker = ("tink-controller-auto-created".to_owned(), "true".to_owned());
        let metadata = ObjectMeta {
            name: name.to_owned(),
            namespace: namespace.clone(),
            labels: [marker.clone()].into(),
            annotations: [marker].into(),
            owner_references: vec![workflow.controller_reference(WORKFLOW)],
            ..ObjectMeta::default()
        };
        let machine_ref = SecretRef { name: machine, namespace };
        json!({
            "apiVersion": JOB.api_version(),
            "kind": JOB.kind,
            "metadata": metadata,
            "spec": JobSpec { machine_ref, tasks: actions },
        })
    }
}

/// Returns the Hardware with `allowPXE` set on every interface.
fn allow_netboot(mut hardware: Value, allow: bool) -> Value {
    let interfaces = hardware.pointer_mut("/spec/interfaces").and_then(Value::as_array_mut);
    for interface in interfaces.into_iter().flatten() {
        if let Some(interface) = interface.as_object_mut() {
            let netboot = interface.entry("netboot").or_insert_with(|| json!({}));
            if let Some(netboot) = netboot.as_object_mut() {
                netboot.insert("allowPXE".to_owned(), Value::Bool(allow));
            }
        }
    }
    hardware
}
