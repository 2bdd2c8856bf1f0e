//! Deletion of namespaces (first the objects in the namespace, then the namespace), and creation of
//! the default objects of new namespaces.

use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use serde_json::{Value, json};
use store::{Key, Txn, Walk};

use super::super::{Abort, DeleteOptions, Engine, Place, Propagation, WriteOptions};
use super::AT_ONCE;
use super::head::Head;
use super::sweep::settle;
use crate::definition::{Registry, ResourceDefinition};
use crate::object::namespace::KUBERNETES;
use crate::object::{decode, encode, is_deleting, time_text};
use crate::status_error::{Reason, StatusError, failed};

/// Maximum objects of a namespace deleted in one step.
const BATCH: usize = 64;

/// Remaining objects of one kind in a namespace.
struct RemainingObjects {
    definition: Arc<ResourceDefinition>,
    objects: usize,
    /// Finalizers of the remaining objects, each with the number of objects that have it.
    finalizers: Vec<(String, usize)>,
}

impl Engine {
    /// Deletes the next batch of objects in a terminating namespace, or removes an empty namespace.
    /// Returns true if more objects can be deleted at once, false if the rest waits for finalizers.
    pub(super) async fn empty_namespace(&self, name: &str) -> Result<bool, StatusError> {
        let registry = self.registry();
        let Some(namespaces) = registry.namespaces().cloned() else { return Ok(false) };
        let stored = self.inner.store.get(&Key::new(namespaces.id(), "", name));
        let stored = stored.map_err(|error| failed("read a namespace", &error))?;
        if !stored.is_some_and(|it| Head::read(&it.value).unwrap_or_default().is_deleting()) {
            return Ok(false);
        }
        let (engine, inside) = (self.clone(), name.to_owned());
        let kinds = registry.clone();
        let found = tokio::task::spawn_blocking(move || engine.inside(&kinds, &inside));
        let (batch, left) = found
            .await
            .map_err(|error| StatusError::internal("cannot look into a namespace", &error))??;
        if batch.is_empty() {
            self.close_namespace(&registry, namespaces, name, &left).await?;
            return Ok(false);
        }
        let deletes = batch.into_iter().map(|key| async move {
            let options = DeleteOptions {
                propagation: Some(Propagation::Background),
                ..DeleteOptions::default()
            };
            match self.delete(&key.resource, &key.namespace, &key.name, options).await {
                Err(error) if error.reason != Reason::NotFound => Err(error),
                _ => Ok(()),
            }
        });
        let deletes: Vec<_> = deletes.collect();
        let mut deletes = stream::iter(deletes).buffer_unordered(AT_ONCE);
        while let Some(deleted) = deletes.next().await {
            deleted?;
        }
        Ok(true)
    }

    /// Returns the next objects to delete in a namespace, at most [`BATCH`], and a summary of all
    /// remaining objects by kind.
    fn inside(
        &self,
        registry: &Registry,
        namespace: &str,
    ) -> Result<(Vec<Key>, Vec<RemainingObjects>), StatusError> {
        let (mut batch, mut left) = (Vec::new(), Vec::new());
        for definition in registry.resources().iter().filter(|one| one.namespaced) {
            let resource = definition.id();
            let walk = Walk { resource: &resource, namespace: Some(namespace), ..Walk::default() };
            let mut here =
                RemainingObjects { definition: definition.clone(), objects: 0, finalizers: vec![] };
            let walked = self.inner.store.walk(walk, |key, stored| {
                let head = Head::read(&stored.value).unwrap_or_default();
                here.objects += 1;
                if head.is_deleting() {
                    for finalizer in head.finalizers {
                        match here.finalizers.iter_mut().find(|(one, _)| *one == finalizer) {
                            Some((_, count)) => *count += 1,
                            None => here.finalizers.push((finalizer, 1)),
                        }
                    }
                } else {
                    batch.push(key);
                }
                if batch.len() < BATCH { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            walked.map_err(|error| failed("look into a namespace", &error))?;
            if here.objects > 0 {
                left.push(here);
            }
            if batch.len() >= BATCH {
                break;
            }
        }
        Ok((batch, left))
    }

    /// Removes the finalizer of an empty namespace, which completes the deletion. Otherwise writes
    /// conditions with the remaining objects into the namespace's status.
    async fn close_namespace(
        &self,
        registry: &Arc<Registry>,
        definition: Arc<ResourceDefinition>,
        name: &str,
        left: &[RemainingObjects],
    ) -> Result<(), StatusError> {
        let now = self.inner.clock.now();
        let conditions = conditions(left, now);
        let empty = left.is_empty();
        let (registry, name) = (registry.clone(), name.to_owned());
        self.commit(move |txn| {
            let place = Place {
                namespaces: Some(definition.clone()),
                definition,
                namespace: String::new(),
                admission: None,
                unique: None,
            };
            let key = place.key(&name);
            let stored = txn.get(&key).map_err(|error| failed("read a namespace", &error))?;
            let Some(stored) = stored else { return Ok(()) };
            let mut object = decode(&place.definition, &stored)?;
            if !is_deleting(&object) {
                return Ok(());
            }
            // No object can be created in the namespace any more, so it stays empty.
            if empty && is_empty(txn, &registry, &name)? {
                let listed = object["spec"]["finalizers"].as_array_mut();
                if let Some(listed) = listed {
                    listed.retain(|one| one != KUBERNETES);
                }
                return settle(txn, &place, &object).map_err(Abort::Refused);
            }
            if take_conditions(&mut object, conditions) {
                txn.put(key, encode(&place.definition, &object)?);
            }
            Ok(())
        })
        .await
    }

    /// Creates the objects of `defaults` that are missing in a namespace.
    pub(super) async fn furnish(
        &self,
        namespace: &str,
        defaults: &[(String, Value)],
    ) -> Result<(), StatusError> {
        for (resource, object) in defaults {
            if self.registry().by_id(resource).is_none() {
                continue;
            }
            let made =
                self.create(resource, namespace, object.clone(), WriteOptions::default()).await;
            match made.map_err(|error| (error.reason, error)) {
                // The object exists already, or the namespace is terminating.
                Ok(_) | Err((Reason::AlreadyExists | Reason::Forbidden | Reason::NotFound, _)) => {}
                Err((_, error)) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_empty(txn: &Txn<'_>, registry: &Registry, namespace: &str) -> Result<bool, StatusError> {
    for definition in registry.resources().iter().filter(|one| one.namespaced) {
        let held = txn.list(&definition.id(), Some(namespace));
        if !held.map_err(|error| failed("look into a namespace", &error))?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the conditions of upstream's namespace controller for the objects and finalizers that
/// block the deletion of a namespace.
fn conditions(left: &[RemainingObjects], now: Timestamp) -> Vec<Value> {
    let at = time_text(now);
    let make = |kind: &str, is: bool, reason: &str, message: String| {
        json!({
            "type": kind, "status": if is { "True" } else { "False" },
            "lastTransitionTime": at, "reason": reason, "message": message,
        })
    };
    let remaining: Vec<String> = left
        .iter()
        .map(|one| {
            let (plural, group) = (&one.definition.plural, &one.definition.group);
            format!("{plural}.{group} has {} resource instances", one.objects)
        })
        .collect();
    let held: Vec<String> = left
        .iter()
        .flat_map(|one| &one.finalizers)
        .map(|(name, count)| format!("{name} in {count} resource instances"))
        .collect();
    let content = if remaining.is_empty() {
        ("ContentRemoved", "All content successfully removed".to_owned())
    } else {
        ("SomeResourcesRemain", format!("Some resources are remaining: {}", remaining.join(", ")))
    };
    let finalizers = if held.is_empty() {
        ("ContentHasNoFinalizers", "All content-preserving finalizers finished".to_owned())
    } else {
        let text = "Some content in the namespace has finalizers remaining";
        ("SomeFinalizersRemain", format!("{text}: {}", held.join(", ")))
    };
    vec![
        make("NamespaceContentRemaining", !remaining.is_empty(), content.0, content.1),
        make("NamespaceFinalizersRemaining", !held.is_empty(), finalizers.0, finalizers.1),
    ]
}

/// Writes conditions into a namespace's status. Returns true if their content changed.
fn take_conditions(object: &mut Value, conditions: Vec<Value>) -> bool {
    let says = |condition: &Value| {
        ["type", "status", "reason", "message"].map(|field| condition[field].clone())
    };
    let old = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let mut new = old.clone();
    new.retain(|one| conditions.iter().all(|made| made["type"] != one["type"]));
    for mut made in conditions {
        let before = old.iter().find(|one| one["type"] == made["type"]);
        if let Some(before) = before.filter(|before| before["status"] == made["status"]) {
            made["lastTransitionTime"] = before["lastTransitionTime"].clone();
        }
        new.push(made);
    }
    let changed =
        old.iter().map(says).collect::<Vec<_>>() != new.iter().map(says).collect::<Vec<_>>();
    if changed {
        object["status"]["conditions"] = json!(new);
    }
    changed
}
