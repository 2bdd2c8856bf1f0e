//! Container images of workflows. The mirror serves their repositories until the workflow ends.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use api::meta::ObjectKey;
use api::tinkerbell::Workflow;
use artifact_cache::registry::{Mirror, Reference};

/// Container images of unfinished workflows, with the mirror that serves them.
pub struct Containers {
    mirror: Mirror,
    named: Mutex<BTreeMap<ObjectKey, Vec<Reference>>>,
}

impl Containers {
    /// Creates a list without workflows for `mirror`.
    pub fn new(mirror: Mirror) -> Self {
        Self { mirror, named: Mutex::default() }
    }

    /// Returns the registry mirror that serves the images.
    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// Adds or updates a workflow. Images of actions that are built into the agent are included,
    /// although no agent requests them.
    pub fn put(&self, workflow: &Workflow) {
        let actions = workflow.status.tasks.iter().flat_map(|task| &task.actions);
        let images = actions.filter_map(|action| Reference::of_image(&action.image).ok());
        let is_over = workflow.status.state.ended();
        self.replace(&workflow.key(), if is_over { Vec::new() } else { images.collect() });
    }

    /// Removes a workflow and its images.
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
