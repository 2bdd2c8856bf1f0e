//! What there is around a Workflow.

use api::bmc::{JOB, Job};
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, Hardware, TEMPLATE, Template, WORKFLOW, Workflow};
use serde_json::Value;

use super::{Life, WorkflowReconciler, boot};
use crate::ObjectError;
use crate::objects::{fetch, find, read};

/// A Workflow with everything a decision about it needs.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The Workflow.
    pub workflow: Workflow,
    /// Its Template, when there is one.
    pub template: Option<Template>,
    /// Its Hardware, when there is one.
    pub hardware: Option<Hardware>,
    /// The Hardware as stored, for templates and for writing it back whole.
    pub hardware_json: Value,
    /// Its boot Jobs by name, those that exist.
    pub jobs: Vec<Job>,
    /// Its agent's last sign of life.
    pub life: Life,
}

impl Observed {
    /// The boot Job of this name.
    pub fn job(&self, name: &str) -> Option<&Job> {
        self.jobs.iter().find(|job| job.metadata.name == name)
    }
}

impl WorkflowReconciler {
    pub(super) async fn observe(&self, key: &ObjectKey) -> Result<Observed, ObjectError> {
        let objects = self.objects.as_ref();
        let workflow: Workflow = fetch(objects, WORKFLOW, key).await?;
        let beside = |name: &str| ObjectKey::new(&key.namespace, name);

        let template = match workflow.spec.template_ref.as_str() {
            "" => None,
            name => find(objects, TEMPLATE, &beside(name)).await?,
        };
        let hardware_json = match workflow.spec.hardware_ref.as_str() {
            "" => Value::Null,
            name => match objects.get(HARDWARE, &beside(name)).await {
                Ok(object) => object,
                Err(ObjectError::NotFound(_)) => Value::Null,
                Err(error) => return Err(error),
            },
        };
        let hardware = match &hardware_json {
            Value::Null => None,
            object => Some(read::<Hardware>(object.clone())?),
        };
        let mut jobs = Vec::new();
        for name in boot::job_names(&workflow) {
            jobs.extend(find::<Job>(objects, JOB, &beside(&name)).await?);
        }
        let life = self.agents.life(&workflow.status.agent_id);
        Ok(Observed { workflow, template, hardware, hardware_json, jobs, life })
    }
}
