//! The kinds that are served, all at one moment.

use std::sync::Arc;

use super::ResourceDefinition;
use super::version::preference;

/// Two definitions claim the same resource or kind.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot register {0}: its plural or kind is already taken in that group")]
pub struct Duplicate(pub String);

/// The kinds that are served: a snapshot, which [`crate::Engine::registry`] hands out and replaces
/// as a whole when a kind comes, changes or goes.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    served: Vec<Arc<ResourceDefinition>>,
    stored: Vec<Arc<ResourceDefinition>>,
    generation: u64,
}

impl Registry {
    /// A registry of `definitions`, served in this order. The definitions of one resource differ in
    /// their version, and one of them is its storage version.
    ///
    /// # Errors
    /// When two resources of a group share a plural or kind, or two definitions a version.
    pub fn new(definitions: Vec<ResourceDefinition>) -> Result<Self, Duplicate> {
        let (registry, mut refused) = Self::default().with(definitions, 0);
        match refused.pop() {
            Some(duplicate) => Err(duplicate),
            None => Ok(registry),
        }
    }

    /// This registry with the definitions of kinds that arrived at run time. One that collides with
    /// what is there is left out and told of.
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

    /// This registry with objects in their stored form from the revision on that `since` gives; see
    /// [`ResourceDefinition::stored_form`].
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
                // Kubernetes' own kinds get no further versions.
                (true, true) => {
                    other.version == definition.version || other.native != definition.native
                }
                (plural, kind) => plural || kind,
            }
        })
    }

    /// The same kinds as another state of what is served: differs for every change.
    #[must_use]
    pub fn at(mut self, generation: u64) -> Self {
        self.generation = generation;
        self
    }

    /// Counts the changes of what is served; documents made from a registry are as new as this.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Every served version of every resource, in order of registration; the versions of a group
    /// come with the preferred one first.
    pub fn all(&self) -> &[Arc<ResourceDefinition>] {
        &self.served
    }

    /// Every resource once, by the definition its objects are stored by.
    pub fn resources(&self) -> &[Arc<ResourceDefinition>] {
        &self.stored
    }

    /// By store key, `tinkerbell.org/hardware`, which gives the stored version; or by that and a
    /// version, `tinkerbell.org/hardware@v1alpha1`.
    pub fn by_id(&self, id: &str) -> Option<&Arc<ResourceDefinition>> {
        let (group, plural) = id.split_once('/')?;
        match plural.split_once('@') {
            Some((plural, version)) => self.by_path(group, version, plural),
            None => {
                let is =
                    |one: &&Arc<ResourceDefinition>| one.group == group && one.plural == plural;
                // One that is stored as another kind is only served.
                self.stored.iter().find(is).or_else(|| self.served.iter().find(is))
            }
        }
    }

    /// By path segments.
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

    /// The kind whose objects are the namespaces.
    pub fn namespaces(&self) -> Option<&Arc<ResourceDefinition>> {
        self.stored.iter().find(|one| one.is_namespace)
    }
}

/// Groups stay in order of registration; inside one the preferred version comes first.
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
