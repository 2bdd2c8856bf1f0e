//! Deletion of an object: at once, or after its last finalizer was removed.

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

/// Handling of dependents, the objects that name the deleted object as owner (`propagationPolicy`).
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
    /// Returns the finalizer that keeps the owner until its dependents are processed, if any.
    pub fn finalizer(self) -> Option<&'static str> {
        match self {
            Self::Background => None,
            Self::Foreground => Some(FOREGROUND),
            Self::Orphan => Some(ORPHAN),
        }
    }
}

/// Finalizer of an owner in foreground deletion, which waits until its dependents are deleted.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an owner in deletion, which waits until its dependents are orphaned.
pub const ORPHAN: &str = "orphan";

/// Options of a delete request. A grace period is not supported: no kind of the box has one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Precondition: uid of the object; 409 if another object has the name. `None` for any uid.
    pub uid: Option<String>,
    /// Precondition: resourceVersion of the object; 409 if the object has changed. `None` for any.
    pub resource_version: Option<String>,
    /// Handling of dependents; `None` keeps the policy of the object's finalizers, usually
    /// [`Propagation::Background`].
    pub propagation: Option<Propagation>,
    /// Runs all checks but deletes nothing.
    pub dry_run: bool,
}

/// Result of a delete, with the last state of the object.
#[derive(Debug, Clone, PartialEq)]
pub enum Deleted {
    /// The object is deleted.
    Gone(Value),
    /// The object has a deletionTimestamp, and is deleted after its finalizers are removed.
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
    /// Deletes an object. [`crate::engine::Collector`] later processes its dependents.
    ///
    /// # Errors
    /// 404 if the object does not exist, 409 for a failed precondition, 403 for a permanent object.
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

/// Deletion of one object inside a transaction.
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

    /// Checks the preconditions uid and resourceVersion, with upstream's messages (`apiserver`
    /// `pkg/registry/rest/delete.go`).
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

/// Sets the finalizer of `policy` and removes that of any other policy. Without a policy,
/// finalizers stay unchanged.
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
