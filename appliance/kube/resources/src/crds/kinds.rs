//! Served kinds: the compiled-in kinds and the kinds of stored CustomResourceDefinitions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use store::{Store, Stored};
use tokio::sync::watch::{Receiver, Sender};

use super::{RESOURCE, status};
use crate::builtin::compiled;
use crate::definition::{Origin, Registry, ResourceDefinition, crd};

/// Definitions made from one stored CustomResourceDefinition.
struct ServedDefinitions {
    revision: u64,
    definitions: Vec<ResourceDefinition>,
}

/// Holder of the current registry, which is replaced after each write of a definition.
pub struct Kinds {
    base: Registry,
    made: Mutex<BTreeMap<String, ServedDefinitions>>,
    current: Sender<Arc<Registry>>,
}

impl Kinds {
    /// Makes a holder with only the kinds of `base`, without stored definitions.
    pub fn new(base: Registry) -> Self {
        let current = Sender::new(Arc::new(base.clone()));
        Self { base, made: Mutex::default(), current }
    }

    /// Returns the current registry.
    pub fn current(&self) -> Arc<Registry> {
        self.current.borrow().clone()
    }

    /// Returns a receiver of the current and all later registries.
    pub fn subscribe(&self) -> Receiver<Arc<Registry>> {
        self.current.subscribe()
    }

    /// Reads the stored definitions into the registry. Of two concurrent calls, the call with the
    /// newer revision wins.
    pub fn reload(&self, store: &Store) -> Result<(), store::Error> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let (revision, stored) = store.list(RESOURCE, None)?;
        let mut next = BTreeMap::new();
        let mut compiled = BTreeMap::new();
        for (key, stored) in stored {
            if compiled::manifest(&key.name).is_some() {
                compiled.insert(key.name, stored.revision);
                continue;
            }
            let known = made.remove(&key.name).filter(|known| known.revision == stored.revision);
            next.insert(key.name.clone(), known.unwrap_or_else(|| make(&key.name, &stored)));
        }
        *made = next;
        let definitions = made.values().flat_map(|one| one.definitions.iter().cloned()).collect();
        let base = self.base.clone().with_forms_since(|one| {
            let name = format!("{}.{}", one.plural, one.group);
            compiled.get(&name).copied().unwrap_or(u64::MAX)
        });
        let (registry, refused) = base.with(definitions, revision);
        for refused in refused {
            tracing::warn!(%refused, "a stored definition is not served");
        }
        self.current.send_replace(Arc::new(registry));
        Ok(())
    }
}

/// Converts a stored CustomResourceDefinition; no definitions if not established or not readable.
fn make(name: &str, stored: &Stored) -> ServedDefinitions {
    let object: Value = serde_json::from_slice(&stored.value).unwrap_or_default();
    let definitions = if status::is(&object, "Established") {
        let mut definitions = crd::definitions(&object).unwrap_or_else(|error| {
            let why = stdx::chain(&error);
            tracing::error!(name, why, "a stored definition cannot be served");
            Vec::new()
        });
        let spec = [&object["spec"], &object["status"]["acceptedNames"]];
        let spec = Sha256::digest(spec.map(Value::to_string).concat()).into();
        for definition in &mut definitions {
            definition.origin = Some(Origin { revision: stored.revision, spec });
            let form = definition.stored_form.take();
            definition.stored_form = form.map(|form| form.since(stored.revision));
        }
        definitions
    } else {
        Vec::new()
    };
    ServedDefinitions { revision: stored.revision, definitions }
}
