//! Selection of stored objects by selectors. Parses only the needed part of an object.

use std::collections::BTreeMap;

use serde::Deserialize;
use store::{Key, Stored};

use super::text;
use crate::definition::ResourceDefinition;
use crate::object::decode;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status_error::StatusError;

/// Selectors of a list or watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
}

#[derive(Deserialize)]
struct Labels {
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

impl Selection {
    /// Returns true if there are no requirements, so that all objects match.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns true if a stored object matches both selectors.
    pub fn chooses(
        &self,
        definition: &ResourceDefinition,
        key: &Key,
        stored: &Stored,
    ) -> Result<bool, StatusError> {
        let Some(fields) = self.fields.beyond_the_key(&key.namespace, &key.name) else {
            return Ok(false);
        };
        if fields {
            let object = decode(definition, stored)?;
            return Ok(self.labels.matches(&object) && self.fields.matches(&object));
        }
        if self.labels.is_empty() {
            return Ok(true);
        }
        let Some(metadata) = text::metadata(&stored.value) else {
            return Ok(self.labels.matches(&decode(definition, stored)?));
        };
        // Parses the value at the front; the bytes after it are ignored.
        let labels = Labels::deserialize(&mut serde_json::Deserializer::from_slice(metadata))
            .map_err(|error| StatusError::internal("cannot read a stored object", &error))?;
        let labels = labels.labels.unwrap_or_default();
        Ok(self.labels.holds(|key| labels.get(key).map(String::as_str)))
    }
}
