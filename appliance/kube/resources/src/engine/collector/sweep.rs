//! Garbage collection of single objects. The transaction that changes an object also reads its
//! owners, so that no decision depends on outdated state.
//!
//! [`verdict`] makes the decision.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use store::{Key, Txn};

use super::super::{Abort, DeleteOptions, Engine, FOREGROUND, ORPHAN, Place, Propagation};
use super::head::{Head, Owner};
use super::verdict::{DependentState, OwnerState, Verdict, verdict};
use crate::definition::{Registry, ResourceDefinition};
use crate::engine::write::delete::Deletion;
use crate::object::{decode, encode_own, is_deleting, is_held, metadata_mut};
use crate::status_error::{Reason, StatusError, failed};

impl Engine {
    /// Deletes the object `key` if none of its owners exists. If some owners exist, removes the
    /// references to the others. `dependents` are the objects that name `key` as owner; `lost` are
    /// the uids of owners whose deletion was observed.
    pub(super) async fn collect_dependent(
        &self,
        key: Key,
        dependents: Vec<Key>,
        lost: BTreeSet<String>,
    ) -> Result<(), StatusError> {
        let registry = self.registry();
        let Some(definition) = registry.by_id(&key.resource).cloned() else { return Ok(()) };
        let now = self.inner.clock.now();
        self.commit(move |txn| {
            let place = place(&registry, &definition, &key);
            let Some((object, head)) = read(txn, &definition, &key)? else { return Ok(()) };
            let owners = head.owner_references.iter();
            let owners: Vec<OwnerState> = owners
                .map(|owner| look_up(txn, &registry, &place, owner, &lost))
                .collect::<Result<_, _>>()?;
            let below = match owners.contains(&OwnerState::Waiting) {
                true => look_below(txn, &dependents)?,
                // Without an owner that waits, the dependents do not matter.
                false => DependentState::Nothing,
            };
            match verdict(&head, &owners, below) {
                Verdict::Keep => Ok(()),
                Verdict::Forget => forget_owners(txn, &place, object, |at, _| {
                    owners.get(at) == Some(&OwnerState::Solid)
                }),
                Verdict::Delete { policy, unblock } => {
                    if unblock {
                        unblock_owners(txn, &place, object)?;
                    }
                    let deletion = Deletion { place: &place, name: &key.name, now };
                    delete(txn, &deletion, head.uid, policy)
                }
            }
        })
        .await
    }

    /// Removes the finalizer of an owner in foreground deletion if no dependent blocks it.
    pub(super) async fn release_foreground(
        &self,
        key: Key,
        dependents: Vec<Key>,
    ) -> Result<(), StatusError> {
        let registry = self.registry();
        let Some(definition) = registry.by_id(&key.resource).cloned() else { return Ok(()) };
        self.commit(move |txn| {
            let place = place(&registry, &definition, &key);
            let Some((object, head)) = read(txn, &definition, &key)? else { return Ok(()) };
            if !head.waits_for_dependents() {
                return Ok(());
            }
            for dependent in &dependents {
                if head_of(txn, dependent)?.is_some_and(|one| one.blocks(&head.uid)) {
                    return Ok(());
                }
            }
            drop_finalizer(txn, &place, object, FOREGROUND).map_err(Abort::Refused)
        })
        .await
    }

    /// Removes the owner with the uid `owner` from the owner references of `key`.
    pub(super) async fn orphan(&self, key: Key, owner: String) -> Result<(), StatusError> {
        let registry = self.registry();
        let Some(definition) = registry.by_id(&key.resource).cloned() else { return Ok(()) };
        self.commit(move |txn| {
            let place = place(&registry, &definition, &key);
            let Some((object, _)) = read(txn, &definition, &key)? else { return Ok(()) };
            forget_owners(txn, &place, object, |_, uid| uid != owner)
        })
        .await
    }

    /// Removes the finalizer of an owner in orphaning deletion, after its dependents were orphaned.
    pub(super) async fn release_orphaning(&self, key: Key) -> Result<(), StatusError> {
        let registry = self.registry();
        let Some(definition) = registry.by_id(&key.resource).cloned() else { return Ok(()) };
        self.commit(move |txn| {
            let place = place(&registry, &definition, &key);
            let Some((object, head)) = read(txn, &definition, &key)? else { return Ok(()) };
            if head.orphans_dependents() {
                drop_finalizer(txn, &place, object, ORPHAN)?;
            }
            Ok(())
        })
        .await
    }

    /// Deletes an expired record if its last write is at `revision`; a record written later stays.
    pub(super) async fn expire(&self, key: Key, revision: u64) -> Result<(), StatusError> {
        self.commit(move |txn| {
            let stored = txn.get(&key).map_err(|error| failed("read a record", &error))?;
            if stored.is_some_and(|stored| stored.revision == revision) {
                txn.delete(&key).map_err(|error| failed("drop an old record", &error))?;
            }
            Ok(())
        })
        .await
    }
}

fn place(registry: &Registry, definition: &Arc<ResourceDefinition>, key: &Key) -> Place {
    Place {
        definition: definition.clone(),
        namespaces: registry.namespaces().cloned(),
        namespace: key.namespace.clone(),
        admission: None,
        unique: None,
    }
}

fn read(
    txn: &Txn<'_>,
    definition: &ResourceDefinition,
    key: &Key,
) -> Result<Option<(Value, Head)>, StatusError> {
    let stored = txn.get(key).map_err(|error| failed("read an object", &error))?;
    let Some(stored) = stored else { return Ok(None) };
    let head = Head::read(&stored.value).unwrap_or_default();
    Ok(Some((decode(definition, &stored)?, head)))
}

fn head_of(txn: &Txn<'_>, key: &Key) -> Result<Option<Head>, StatusError> {
    let stored = txn.get(key).map_err(|error| failed("read an object", &error))?;
    Ok(stored.and_then(|stored| Head::read(&stored.value)))
}

/// Returns the state of an object's dependents, given their keys.
fn look_below(txn: &Txn<'_>, dependents: &[Key]) -> Result<DependentState, StatusError> {
    let mut below = DependentState::Nothing;
    for key in dependents {
        let waits = head_of(txn, key)?.is_some_and(|head| head.waits_for_dependents());
        below = if waits { return Ok(DependentState::Circle) } else { DependentState::Dependents };
    }
    Ok(below)
}

fn look_up(
    txn: &Txn<'_>,
    registry: &Registry,
    dependent: &Place,
    owner: &Owner,
    lost: &BTreeSet<String>,
) -> Result<OwnerState, StatusError> {
    let Some(definition) = kind_of(registry, owner) else {
        // If the owner's kind was removed with the owner, no lookup is possible.
        return Ok(if lost.contains(&owner.uid) {
            OwnerState::Absent
        } else {
            OwnerState::Unknown
        });
    };
    let Some(key) = key_of(definition, &dependent.namespace, owner) else {
        return Ok(OwnerState::Unknown);
    };
    Ok(match head_of(txn, &key)? {
        Some(head) if head.uid == owner.uid && head.waits_for_dependents() => OwnerState::Waiting,
        Some(head) if head.uid == owner.uid => OwnerState::Solid,
        _ => OwnerState::Absent,
    })
}

/// Returns the key of an owner; `namespace` is the dependent's. `None` if the owner's kind is not
/// served, or if a cluster-scoped dependent names a namespaced owner.
pub(super) fn owner_key(registry: &Registry, namespace: &str, owner: &Owner) -> Option<Key> {
    key_of(kind_of(registry, owner)?, namespace, owner)
}

fn kind_of<'a>(registry: &'a Registry, owner: &Owner) -> Option<&'a Arc<ResourceDefinition>> {
    let mut served = registry.all().iter();
    served.find(|one| one.kind == owner.kind && one.api_version() == owner.api_version)
}

fn key_of(definition: &ResourceDefinition, namespace: &str, owner: &Owner) -> Option<Key> {
    match (definition.namespaced, namespace.is_empty()) {
        (true, true) => None,
        (true, false) => Some(Key::new(definition.id(), namespace, owner.name.as_str())),
        (false, _) => Some(Key::new(definition.id(), "", owner.name.as_str())),
    }
}

/// Deletes an object whose owners are gone. An object that must not be deleted stays unchanged.
fn delete(
    txn: &mut Txn<'_>,
    deletion: &Deletion<'_>,
    uid: String,
    policy: Propagation,
) -> Result<(), Abort<()>> {
    let options =
        DeleteOptions { uid: Some(uid), propagation: Some(policy), ..DeleteOptions::default() };
    match deletion.run(txn, &options) {
        Err(error) if error.reason == Reason::Forbidden => Ok(()),
        done => done.map(drop).map_err(Abort::Refused),
    }
}

/// Removes the owner references for which `keep`, called with position and uid, returns false.
fn forget_owners(
    txn: &mut Txn<'_>,
    place: &Place,
    mut object: Value,
    keep: impl Fn(usize, &str) -> bool,
) -> Result<(), Abort<()>> {
    let metadata = metadata_mut(&mut object);
    let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) else {
        return Ok(());
    };
    let before = owners.len();
    let mut at = 0;
    owners.retain(|owner| {
        let kept = keep(at, owner["uid"].as_str().unwrap_or_default());
        at += 1;
        kept
    });
    let left = owners.len();
    if left == before {
        return Ok(());
    }
    if left == 0 {
        metadata.remove("ownerReferences");
    }
    put(txn, place, &object)
}

/// Breaks a cycle of waiting objects: sets `blockOwnerDeletion` to false in all owner references.
fn unblock_owners(txn: &mut Txn<'_>, place: &Place, mut object: Value) -> Result<(), Abort<()>> {
    let owners = metadata_mut(&mut object).get_mut("ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        owner["blockOwnerDeletion"] = json!(false);
    }
    put(txn, place, &object)
}

fn drop_finalizer(
    txn: &mut Txn<'_>,
    place: &Place,
    mut object: Value,
    finalizer: &str,
) -> Result<(), StatusError> {
    let metadata = metadata_mut(&mut object);
    if let Some(listed) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
        listed.retain(|one| one != finalizer);
        if listed.is_empty() {
            metadata.remove("finalizers");
        }
    }
    settle(txn, place, &object)
}

/// Stores an object after a change; deletes an object in deletion that has no finalizers left.
pub(super) fn settle(txn: &mut Txn<'_>, place: &Place, object: &Value) -> Result<(), StatusError> {
    let key = place.key(object["metadata"]["name"].as_str().unwrap_or_default());
    if is_deleting(object) && !is_held(&place.definition, object) {
        txn.delete(&key).map_err(|error| failed("delete an object", &error))?;
    } else {
        txn.put(key, encode_own(&place.definition, object)?);
    }
    Ok(())
}

fn put(txn: &mut Txn<'_>, place: &Place, object: &Value) -> Result<(), Abort<()>> {
    let key = place.key(object["metadata"]["name"].as_str().unwrap_or_default());
    txn.put(key, encode_own(&place.definition, object)?);
    Ok(())
}
