//! Objects that templates read as `.references`, as listed in the Hardware.

use api::meta::ObjectKey;
use api::tinkerbell::{REFERENCES_MAX, Reference};
use serde_json::{Map, Value};

use super::WorkflowReconciler;
use objects::{ObjectError, Pending};

/// Reader of the objects to which a Hardware refers.
pub trait References: Send + Sync + 'static {
    /// Reads the object `to` for the templates of the Hardware `from`.
    ///
    /// # Errors
    /// The object cannot be read, or the access rules do not allow it ([`ObjectError::Invalid`]).
    fn read<'a>(&'a self, from: &'a ObjectKey, to: &'a Reference) -> Pending<'a, Value>;
}

/// Referenced objects of a Hardware.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReferencedObjects {
    /// Objects by their names in templates.
    pub objects: Map<String, Value>,
    /// Reasons for missing objects, as sentences.
    pub missing: Vec<String>,
}

impl ReferencedObjects {
    /// Returns the rendering error `why`, followed by the reasons for missing objects.
    pub fn explained(&self, why: String) -> String {
        match self.missing.is_empty() {
            true => why,
            false => format!("{why}; {}", self.missing.join("; ")),
        }
    }
}

impl WorkflowReconciler {
    /// Reads the referenced objects of a workflow's Hardware.
    pub(super) async fn refer(
        &self,
        workflow: &ObjectKey,
        hardware_ref: &str,
        hardware: &Value,
    ) -> Result<ReferencedObjects, ObjectError> {
        let from = ObjectKey::new(&workflow.namespace, hardware_ref);
        let mut referred = ReferencedObjects::default();
        let all = Reference::of(hardware);
        if all.len() > REFERENCES_MAX {
            let why =
                format!("only the first {REFERENCES_MAX} of {} references are used", all.len());
            referred.missing.push(why);
        }
        for (name, reference) in all.into_iter().take(REFERENCES_MAX) {
            match self.references.read(&from, &reference).await {
                Ok(object) => {
                    referred.objects.insert(name, object);
                }
                Err(ObjectError::NotFound(_)) => {
                    let Reference { resource, namespace, name: of_it, .. } = &reference;
                    let why =
                        format!("reference {name}: {resource} {namespace}/{of_it} does not exist");
                    referred.missing.push(why);
                }
                Err(ObjectError::Invalid(why)) => {
                    referred.missing.push(format!("reference {name} is not allowed: {why}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(referred)
    }
}
