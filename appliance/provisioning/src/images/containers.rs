//! Images of containers that workflows name: their repositories are offered until the workflow
//! ends.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use api::meta::ObjectKey;
use api::tinkerbell::Workflow;
use artifact_cache::registry::{Mirror, Reference};

/// The images by workflow.
pub struct Containers {
    mirror: Mirror,
    named: Mutex<BTreeMap<ObjectKey, Vec<Reference>>>,
}

impl Containers {
    /// None yet.
    pub fn new(mirror: Mirror) -> Self {
        Self { mirror, named: Mutex::default() }
    }

    /// What machines are served by.
    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// Takes a workflow in, or its new version. What is built into the agent is offered too, and
    /// nobody asks for it.
    pub fn put(&self, workflow: &Workflow) {
        let actions = workflow.status.tasks.iter().flat_map(|task| &task.actions);
        let images = actions.filter_map(|action| Reference::of_image(&action.image).ok());
        let is_over = workflow.status.state.ended();
        self.replace(&workflow.key(), if is_over { Vec::new() } else { images.collect() });
    }

    /// Forgets a workflow.
    pub fn remove(&self, key: &ObjectKey) {
        self.replace(key, Vec::new());
    }

    fn replace(&self, key: &ObjectKey, images: Vec<Reference>) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.get(key).map_or(images.is_empty(), |known| *known == images) {
            return;
        }
        if images.is_empty() {
            named.remove(key);
        } else {
            named.insert(key.clone(), images);
        }
        self.mirror.offer(named.values().flatten().cloned());
    }
}
