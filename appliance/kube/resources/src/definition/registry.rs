//! Registry: immutable snapshot of the served kinds.

use std::sync::Arc;

use super::ResourceDefinition;
use super::version::preference;

/// Error: two definitions have the same resource or kind.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot register {0}: its plural or kind is already taken in that group")]
pub struct Duplicate(pub String);

/// Snapshot of the served kinds, which [`crate::Engine::registry`] returns. The engine makes a new
/// snapshot whenever a kind is added, changed or removed.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    served: Vec<Arc<ResourceDefinition>>,
    stored: Vec<Arc<ResourceDefinition>>,
    generation: u64,
}

impl Registry {
    /// Makes a registry of `definitions`, in this order. A resource has one definition for each
    /// version; one of the versions is the storage version.
    ///
    /// # Errors
    /// Returns an error if two resources of a group share a plural or kind, or two definitions
    /// share a version.
    pub fn new(definitions: Vec<ResourceDefinition>) -> Result<Self, Duplicate> {
        let (registry, mut refused) = Self::default().with(definitions, 0);
        match refused.pop() {
            Some(duplicate) => Err(duplicate),
            None => Ok(registry),
        }
    }

    /// Returns this registry with `more` definitions and the new generation number. A definition
    /// whose resource or kind exists already is not added but returned as [`Duplicate`].
    #[must_use]
    pub fn with(&self, more: Vec<ResourceDefinition>, generation: u64) -> (Self, Vec<Duplicate>) {
        let mut refused = Vec::new();
        let mut registry = self.clone().at(generation);
        for definition in more {
            if registry.collides(&definition) {
                refused.push(Duplicate(definition.qualified()));
                continue;
            }
            let definition = Arc::new(definition);
            if definition.is_storage() {
                registry.stored.push(definition.clone());
            }
            if definition.served {
                registry.served.push(definition);
            }
        }
        sort(&mut registry.served);
        (registry, refused)
    }

    /// Sets the `since` revision of each kind's [`ResourceDefinition::stored_form`] to the result
    /// of `since`.
    #[must_use]
    pub(crate) fn with_forms_since(mut self, since: impl Fn(&ResourceDefinition) -> u64) -> Self {
        for one in self.served.iter_mut().chain(&mut self.stored) {
            if let Some(form) = &one.stored_form {
                let stored_form = form.clone().since(since(one));
                let mut dated = ResourceDefinition::clone(one);
                dated.stored_form = Some(stored_form);
                *one = Arc::new(dated);
            }
        }
        self
    }

    fn collides(&self, definition: &ResourceDefinition) -> bool {
        let known = self.served.iter().chain(&self.stored);
        known.filter(|other| other.group == definition.group).any(|other| {
            let same = (other.plural == definition.plural, other.kind == definition.kind);
            match same {
                // Kubernetes' own kinds cannot get further versions.
                (true, true) => {
                    other.version == definition.version || other.native != definition.native
                }
                (plural, kind) => plural || kind,
            }
        })
    }

    /// Returns the same kinds with another generation number; every change needs a new number.
    #[must_use]
    pub fn at(mut self, generation: u64) -> Self {
        self.generation = generation;
        self
    }

    /// Returns the number of this snapshot, which changes with every change of the served kinds.
    /// Caches compare the number to detect outdated documents.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns every served version of every resource. Groups are in order of registration, and the
    /// preferred version of a group comes first.
    pub fn all(&self) -> &[Arc<ResourceDefinition>] {
        &self.served
    }

    /// Returns the definition of the storage version of every resource.
    pub fn resources(&self) -> &[Arc<ResourceDefinition>] {
        &self.stored
    }

    /// Finds a definition by resource name. `tinkerbell.org/hardware` returns the storage version;
    /// `tinkerbell.org/hardware@v1alpha1` returns this version if it is served.
    pub fn by_id(&self, id: &str) -> Option<&Arc<ResourceDefinition>> {
        let (group, plural) = id.split_once('/')?;
        match plural.split_once('@') {
            Some((plural, version)) => self.by_path(group, version, plural),
            None => {
                let is =
                    |one: &&Arc<ResourceDefinition>| one.group == group && one.plural == plural;
                // A resource that is stored as another kind exists only in the served list.
                self.stored.iter().find(is).or_else(|| self.served.iter().find(is))
            }
        }
    }

    /// Finds the served definition for the segments of a request path.
    pub fn by_path(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<&Arc<ResourceDefinition>> {
        self.served
            .iter()
            .find(|one| one.group == group && one.version == version && one.plural == plural)
    }

    /// Returns the definition of Namespace; `None` if the registry has no such kind.
    pub fn namespaces(&self) -> Option<&Arc<ResourceDefinition>> {
        self.stored.iter().find(|one| one.is_namespace)
    }
}

/// Sorts definitions by group, in order of registration, then by version, the preferred version
/// first.
fn sort(definitions: &mut [Arc<ResourceDefinition>]) {
    let mut groups: Vec<String> = Vec::new();
    for definition in definitions.iter() {
        if !groups.contains(&definition.group) {
            groups.push(definition.group.clone());
        }
    }
    definitions.sort_by_key(|one| {
        (groups.iter().position(|group| *group == one.group), preference(&one.version))
    });
}
