//! What a Template sees as `.references`: the objects that its Hardware names.

use api::meta::ObjectKey;
use api::tinkerbell::{REFERENCES_MAX, Reference};
use serde_json::{Map, Value};

use super::WorkflowReconciler;
use objects::{ObjectError, Pending};

/// Follows references of Hardware.
pub trait References: Send + Sync + 'static {
    /// The object that Hardware `from` names.
    ///
    /// # Errors
    /// [`ObjectError::Invalid`] where `from` may not show it to its templates.
    fn read<'a>(&'a self, from: &'a ObjectKey, to: &'a Reference) -> Pending<'a, Value>;
}

/// What the references of a Hardware lead to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Referred {
    /// The objects, by the names that the Hardware gives them.
    pub objects: Map<String, Value>,
    /// Why the others are not among them, in sentences.
    pub missing: Vec<String>,
}

impl Referred {
    /// Why a template is not rendered, with what it may have looked for in vain.
    pub fn explained(&self, why: String) -> String {
        match self.missing.is_empty() {
            true => why,
            false => format!("{why}; {}", self.missing.join("; ")),
        }
    }
}

impl WorkflowReconciler {
    /// Follows the references of a workflow's Hardware.
    pub(super) async fn refer(
        &self,
        workflow: &ObjectKey,
        hardware_ref: &str,
        hardware: &Value,
    ) -> Result<Referred, ObjectError> {
        let from = ObjectKey::new(&workflow.namespace, hardware_ref);
        let mut referred = Referred::default();
        let all = Reference::of(hardware);
        if all.len() > REFERENCES_MAX {
            let why = format!("of {} references only {REFERENCES_MAX} are given", all.len());
            referred.missing.push(why);
        }
        for (name, reference) in all.into_iter().take(REFERENCES_MAX) {
            match self.references.read(&from, &reference).await {
                Ok(object) => {
                    referred.objects.insert(name, object);
                }
                Err(ObjectError::NotFound(_)) => {
                    let Reference { resource, namespace, name: of_it, .. } = &reference;
                    let why = format!("reference {name}: no {resource} {namespace}/{of_it}");
                    referred.missing.push(why);
                }
                Err(ObjectError::Invalid(why)) => {
                    referred.missing.push(format!("reference {name} is not given: {why}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(referred)
    }
}
