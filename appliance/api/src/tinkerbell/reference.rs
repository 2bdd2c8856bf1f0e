//! References of a Hardware to other API objects, which templates read as `.references.NAME`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::meta::ObjectKey;

/// Maximum number of references that the box reads for one Hardware.
pub const REFERENCES_MAX: usize = 32;

/// Reference to an API object from a Hardware.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// API group; empty for the core group of Kubernetes.
    pub group: String,
    /// API version, without the group.
    pub version: String,
    /// Plural name, as in API paths.
    pub resource: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl Reference {
    /// Returns the references of a stored Hardware by their names, without invalid references.
    pub fn of(hardware: &Value) -> BTreeMap<String, Reference> {
        let all = hardware["spec"]["references"].as_object().into_iter().flatten();
        let read = |it: &Value| Reference::deserialize(it).ok();
        all.filter_map(|(name, it)| Some((name.clone(), read(it)?))).collect()
    }

    /// Returns the event, in upstream's shape, for the patterns of access rules: the referring
    /// Hardware `from` and the reference.
    pub fn event(&self, from: &ObjectKey) -> Value {
        json!({
            "source": { "name": from.name, "namespace": from.namespace },
            "reference": {
                "namespace": self.namespace,
                "name": self.name,
                "group": self.group,
                "version": self.version,
                "resource": self.resource,
            },
        })
    }
}
