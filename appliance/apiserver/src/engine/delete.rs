//! Deleting an object: at once, or when its last finalizer goes.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use store::Txn;

use super::object::{
    bump_generation, decode, encode, finalizers, is_deleting, meta, metadata_mut, set_revision,
    time_text,
};
use super::{Abort, Engine, Place, failed};
use crate::definition::ResourceDefinition;
use crate::status_error::StatusError;

/// How a delete is carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Only this very object, not a later one of the same name.
    pub uid: Option<String>,
    /// Only the object as of this resourceVersion.
    pub resource_version: Option<String>,
    /// Everything happens but the deleting.
    pub dry_run: bool,
}

/// What became of the object; the value is its last state.
#[derive(Debug, Clone, PartialEq)]
pub enum Deleted {
    /// It is gone.
    Gone(Value),
    /// It is marked, and goes when its finalizers have been taken away.
    Finalizing(Value),
}

impl Deleted {
    /// The object's last state.
    pub fn object(&self) -> &Value {
        match self {
            Self::Gone(object) | Self::Finalizing(object) => object,
        }
    }
}

impl Engine {
    /// Deletes an object. Objects that name it as their owner stay: there is no garbage collection
    /// yet.
    ///
    /// # Errors
    /// 404; 409 for an unmet precondition, and for a namespace that still holds objects; 403 for a
    /// permanent object.
    pub async fn delete(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        options: DeleteOptions,
    ) -> Result<Deleted, StatusError> {
        let place = self.place(resource, namespace)?;
        let dwellers: Vec<Arc<ResourceDefinition>> = if place.definition.is_namespace {
            self.registry().all().iter().filter(|one| one.namespaced).cloned().collect()
        } else {
            Vec::new()
        };
        let name = name.to_owned();
        let now = self.inner.clock.now();
        self.commit(move |txn| {
            let deletion = Deletion { place: &place, name: &name, dwellers: &dwellers, now };
            let deleted = deletion.run(txn, &options)?;
            if options.dry_run { Err(Abort::DryRun(deleted)) } else { Ok(deleted) }
        })
        .await
    }
}

struct Deletion<'a> {
    place: &'a Place,
    name: &'a str,
    /// The kinds whose objects live in the namespace that is to be deleted.
    dwellers: &'a [Arc<ResourceDefinition>],
    now: Timestamp,
}

impl Deletion<'_> {
    fn run(&self, txn: &mut Txn<'_>, options: &DeleteOptions) -> Result<Deleted, StatusError> {
        let definition = self.place.definition.as_ref();
        let key = self.place.key(self.name);
        let stored = txn.get(&key).map_err(|error| failed("read an object", &error))?;
        let stored = stored.ok_or_else(|| StatusError::not_found(definition, self.name))?;
        let mut object = decode(&stored)?;
        self.check_preconditions(&object, options)?;
        if definition.permanent.iter().any(|one| one == self.name) {
            let why = "this object may not be deleted";
            return Err(StatusError::forbidden(definition, self.name, why));
        }
        self.empty_namespace(txn)?;
        if finalizers(&object).next().is_none() {
            let revision = txn.delete(&key).map_err(|error| failed("delete an object", &error))?;
            set_revision(&mut object, revision.unwrap_or(stored.revision));
            return Ok(Deleted::Gone(object));
        }
        if is_deleting(&object) {
            return Ok(Deleted::Finalizing(object));
        }
        let metadata = metadata_mut(&mut object);
        metadata.insert("deletionTimestamp".to_owned(), json!(time_text(self.now)));
        metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
        if definition.tracks_generation {
            bump_generation(&mut object);
        }
        let revision = txn.put(key, encode(&object)?);
        set_revision(&mut object, revision);
        Ok(Deleted::Finalizing(object))
    }

    fn check_preconditions(
        &self,
        object: &Value,
        options: &DeleteOptions,
    ) -> Result<(), StatusError> {
        let wanted = [
            ("UID", "uid", options.uid.as_deref()),
            ("ResourceVersion", "resourceVersion", options.resource_version.as_deref()),
        ];
        for (title, field, wanted) in wanted {
            let is = meta(object, field);
            if let Some(wanted) = wanted.filter(|wanted| *wanted != is) {
                let why = format!(
                    "Precondition failed: {title} in precondition: {wanted}, {title} in object \
                     meta: {is}"
                );
                return Err(StatusError::conflict(&self.place.definition, self.name, &why));
            }
        }
        Ok(())
    }

    /// A namespace goes only when nothing but records is left in it: a delete that silently took
    /// every machine of a rack with it would be a trap.
    fn empty_namespace(&self, txn: &mut Txn<'_>) -> Result<(), StatusError> {
        let failed = |error| failed("look into a namespace", &error);
        let mut records = Vec::new();
        for dweller in self.dwellers {
            let held = txn.list(&dweller.id(), Some(self.name)).map_err(failed)?;
            if dweller.keep_newest.is_some() {
                records.extend(held);
            } else if let Some((first, _)) = held.first() {
                let why = format!(
                    "it still holds {} {} (such as {}); delete them first",
                    held.len(),
                    dweller.qualified(),
                    first.name
                );
                return Err(StatusError::conflict(&self.place.definition, self.name, &why));
            }
        }
        for (key, _) in records {
            txn.delete(&key).map_err(failed)?;
        }
        Ok(())
    }
}
