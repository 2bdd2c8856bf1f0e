//! Deletion of an object: immediate, or after its last finalizer is removed.

use jiff::Timestamp;
use serde_json::{Value, json};
use store::Txn;

use crate::crds::lifecycle;
use crate::engine::{Abort, Engine, Place};
use crate::object::{
    bump_generation, decode, encode, finalizers, is_deleting, is_held, meta, metadata_mut,
    set_revision, time_text,
};
use crate::status_error::{Reason, StatusError, failed};

/// Handling of the objects that name the deleted object as their owner (`propagationPolicy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents are deleted after the owner.
    Background,
    /// Dependents are deleted before the owner.
    Foreground,
    /// Dependents stay, and lose the reference to the owner.
    Orphan,
}

impl Propagation {
    /// Returns the finalizer that keeps the owner until its dependents have been handled.
    pub fn finalizer(self) -> Option<&'static str> {
        match self {
            Self::Background => None,
            Self::Foreground => Some(FOREGROUND),
            Self::Orphan => Some(ORPHAN),
        }
    }
}

/// Finalizer of an owner that waits until its dependents are deleted.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an owner that waits until its dependents no longer refer to it.
pub const ORPHAN: &str = "orphan";

/// Options of a delete request. There is no grace period, because no kind here has one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Deletes only the object with this uid, not a later one of the same name.
    pub uid: Option<String>,
    /// Deletes only the object at this resourceVersion.
    pub resource_version: Option<String>,
    /// Handling of dependents; `None` uses the object's finalizers, which usually means
    /// [`Propagation::Background`].
    pub propagation: Option<Propagation>,
    /// Runs all checks but deletes nothing.
    pub dry_run: bool,
}

/// Result of a delete; the value is the last state of the object.
#[derive(Debug, Clone, PartialEq)]
pub enum Deleted {
    /// The object is deleted.
    Gone(Value),
    /// The object is marked, and is deleted after its finalizers are removed.
    Finalizing(Value),
}

impl Deleted {
    /// Returns the object's last state.
    pub fn object(&self) -> &Value {
        match self {
            Self::Gone(object) | Self::Finalizing(object) => object,
        }
    }
}

impl Engine {
    /// Deletes an object. The collector handles the objects that name it as their owner (see
    /// [`crate::engine::Collector`]).
    ///
    /// # Errors
    /// 404; 409 for a failed precondition; 403 for a permanent object.
    pub async fn delete(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        options: DeleteOptions,
    ) -> Result<Deleted, StatusError> {
        let place = self.place(resource, namespace)?;
        let name = name.to_owned();
        let now = self.inner.clock.now();
        self.commit(move |txn| {
            let deletion = Deletion { place: &place, name: &name, now };
            let deleted = deletion.run(txn, &options)?;
            if options.dry_run { Err(Abort::DryRun(deleted)) } else { Ok(deleted) }
        })
        .await
    }
}

/// One deletion inside a transaction.
pub(in crate::engine) struct Deletion<'a> {
    pub place: &'a Place,
    pub name: &'a str,
    pub now: Timestamp,
}

impl Deletion<'_> {
    pub fn run(&self, txn: &mut Txn<'_>, options: &DeleteOptions) -> Result<Deleted, StatusError> {
        let definition = self.place.definition.as_ref();
        let key = self.place.key(self.name);
        let stored = txn.get(&key).map_err(|error| failed("read an object", &error))?;
        let stored = stored.ok_or_else(|| StatusError::not_found(definition, self.name))?;
        let old = decode(definition, &stored)?;
        self.check_preconditions(&old, options)?;
        if definition.permanent.iter().any(|one| one == self.name) {
            let what = definition.singular.as_str();
            let why = format!("this {what} may not be deleted");
            return Err(StatusError::forbidden(definition, self.name, &why));
        }
        let mut object = old.clone();
        propagate(&mut object, options.propagation);
        if definition.defines_kinds {
            lifecycle::mark(definition, &mut object, self.now)?;
        }
        if !is_held(definition, &object) {
            let revision = txn.delete(&key).map_err(|error| failed("delete an object", &error))?;
            set_revision(&mut object, revision.unwrap_or(stored.revision));
            return Ok(Deleted::Gone(object));
        }
        if !is_deleting(&object) {
            self.mark(&mut object);
        }
        if object != old {
            let revision = txn.put(key, encode(definition, &object)?);
            set_revision(&mut object, revision);
        }
        Ok(Deleted::Finalizing(object))
    }

    fn mark(&self, object: &mut Value) {
        let definition = self.place.definition.as_ref();
        let metadata = metadata_mut(object);
        metadata.insert("deletionTimestamp".to_owned(), json!(time_text(self.now)));
        if definition.is_namespace {
            object["status"]["phase"] = json!("Terminating");
        } else {
            metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
        }
        if definition.tracks_generation {
            bump_generation(object);
        }
    }

    /// Checks uid and resourceVersion. The messages are upstream's (`apiserver`
    /// `pkg/registry/rest/delete.go`), which name the kind.
    fn check_preconditions(
        &self,
        object: &Value,
        options: &DeleteOptions,
    ) -> Result<(), StatusError> {
        let wanted = [
            (
                ("UID", "uid", options.uid.as_deref()),
                "The object might have been deleted and then recreated",
            ),
            (
                ("ResourceVersion", "resourceVersion", options.resource_version.as_deref()),
                "The object might have been modified",
            ),
        ];
        for ((title, field, wanted), perhaps) in wanted {
            let is = meta(object, field);
            let Some(wanted) = wanted.filter(|wanted| *wanted != is) else { continue };
            let definition = self.place.definition.as_ref();
            let why = format!(
                "the {title} in the precondition ({wanted}) does not match the {title} in record \
                 ({is}). {perhaps}"
            );
            let named = match definition.group.as_str() {
                "" => definition.kind.clone(),
                group => format!("{}.{group}", definition.kind),
            };
            let name = self.name;
            let why = format!("Operation cannot be fulfilled on {named} \"{name}\": {why}");
            let mut error = StatusError::about(Reason::Conflict, definition, name, why);
            error.details.kind.clone_from(&definition.kind);
            return Err(error);
        }
        Ok(())
    }
}

/// Replaces another policy's finalizer by the finalizer of `policy`; without a policy, finalizers
/// stay unchanged.
fn propagate(object: &mut Value, policy: Option<Propagation>) {
    let Some(policy) = policy else { return };
    let before: Vec<String> = finalizers(object).map(str::to_owned).collect();
    let wanted = policy.finalizer();
    let mut after: Vec<String> = before
        .iter()
        .filter(|one| ![FOREGROUND, ORPHAN].contains(&one.as_str()) || Some(one.as_str()) == wanted)
        .cloned()
        .collect();
    if let Some(wanted) = wanted.filter(|wanted| before.iter().all(|one| one != wanted)) {
        after.push(wanted.to_owned());
    }
    if after == before {
        return;
    }
    let metadata = metadata_mut(object);
    if after.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(after));
    }
}
