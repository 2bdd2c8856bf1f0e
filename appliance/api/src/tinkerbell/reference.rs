//! References of a Hardware: other objects of the API that its templates read as
//! `.references.NAME`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::meta::ObjectKey;

/// The most references of one Hardware that are followed.
pub const REFERENCES_MAX: usize = 32;

/// An object that a Hardware names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// Group; empty for those of Kubernetes' core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural, as in paths.
    pub resource: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Reference {
    /// Those of a Hardware as it is stored, by the names that templates know them by; what is none
    /// is left out.
    pub fn of(hardware: &Value) -> BTreeMap<String, Reference> {
        let all = hardware["spec"]["references"].as_object().into_iter().flatten();
        let read = |it: &Value| Reference::deserialize(it).ok();
        all.filter_map(|(name, it)| Some((name.clone(), read(it)?))).collect()
    }

    /// What rules are held against (in upstream's shape): who names what.
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
