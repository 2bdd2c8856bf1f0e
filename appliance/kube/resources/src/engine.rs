//! Resource engine: the rules of reading and writing objects, the same for all kinds.
//!
//! The HTTP API and the box's own controllers call the same functions, so both follow the same
//! conflict rules. Objects are [`serde_json::Value`]s in served form.

mod collector;
pub mod crd_finalizer;
mod fields;
mod metadata;
mod native;
mod ownership;
mod read;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use stdx::Clock;
use store::{Key, Store, Txn};
use tokio::sync::Semaphore;

use crate::builtin::compiled;
use crate::crds;
use crate::crds::kinds::Kinds;
use crate::definition::{Registry, ResourceDefinition, crd};
use crate::object;
pub use crate::object::{MAX_OBJECT_BYTES, MAX_WARNINGS, Warnings};
use crate::status_error::{Reason, StatusError, failed};

pub use collector::Collector;
pub use fields::{FieldValidation, Strictness};
pub use kube_patch::Patch;
pub use ownership::{BOX_MANAGER, MAX_MANAGER, manager_of};
pub use read::list::{ListOptions, ObjectList, RevisionMatch, TextList, WriteItem};
pub use read::text;
pub use read::watch::{EventKind, InitialEvents, ObjectWatch, RawEvent, WatchEvent, WatchOptions};
pub use write::admission::Admission;
pub use write::apply::Applied;
pub use write::delete::{DeleteOptions, Deleted, FOREGROUND, ORPHAN, Propagation};
pub use write::modify::Configuration;
use write::unique::Unique;

/// Part of an object that a write may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// The whole object; without `status` if the kind has the subresource `/status`.
    #[default]
    Main,
    /// Only the `status` field.
    Status,
    /// Only `spec.finalizers` of a namespace.
    Finalize,
}

/// Options of a create, update or patch.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Part of the object that is written.
    pub part: Part,
    /// Runs all checks but stores nothing; returns the object that would be stored.
    pub dry_run: bool,
    /// Handling of unknown and duplicate fields; the default drops them silently.
    pub fields: FieldValidation,
    /// Field manager that owns the written fields; `None` means the box itself (`tinbox`).
    pub manager: Option<String>,
    /// Subresource to record in `managedFields`; `None` derives the subresource from `part`.
    pub subresource: Option<&'static str>,
}

impl WriteOptions {
    /// Returns the default options with the part `/status`.
    pub fn status() -> Self {
        Self { part: Part::Status, ..Self::default() }
    }
}

/// Resource engine; clones share its state. Callers name a resource as the store does:
/// `tinkerbell.org/hardware`, or `/secrets` for core. The suffix `@v1alpha1` selects a version; the
/// default is the storage version. The namespace is empty for cluster-scoped kinds.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    admission: Option<Admission>,
}

struct Inner {
    store: Store,
    kinds: Kinds,
    clock: Arc<dyn Clock>,
    /// Permits for writes of objects with more than 10,000 values.
    heavy: Semaphore,
    unique: Arc<Unique>,
}

/// Reason for which a write transaction is rolled back.
pub(crate) enum Abort<T> {
    Refused(StatusError),
    DryRun(T),
}

impl<T> From<StatusError> for Abort<T> {
    fn from(error: StatusError) -> Self {
        Self::Refused(error)
    }
}

/// Target of one engine call: the definition of the resource and the checked namespace.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub definition: Arc<ResourceDefinition>,
    pub namespaces: Option<Arc<ResourceDefinition>>,
    pub namespace: String,
    pub admission: Option<Admission>,
    /// Index of unique values; `None` if the write changes no unique value.
    pub unique: Option<Arc<Unique>>,
}

impl Place {
    /// Calls the admission function, if the engine has one, with the new state of an object.
    pub(crate) fn admit(&self, new: &Value, old: Option<&Value>) -> Result<(), StatusError> {
        let admission = self.admission.as_ref();
        admission.map_or(Ok(()), |admission| admission.check(&self.definition, new, old))
    }

    /// Checks that no other object has a unique value of the new state.
    pub(crate) fn check_unique(
        &self,
        txn: &Txn<'_>,
        key: &Key,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), StatusError> {
        let unique = self.unique.as_ref();
        unique.map_or(Ok(()), |unique| unique.check(txn, (self, key), new, old))
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        Key {
            resource: self.definition.id(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }
}

impl Engine {
    /// Makes an engine that serves the kinds of `registry` from `store`.
    pub fn new(store: Store, registry: Registry, clock: Arc<dyn Clock>) -> Self {
        let kinds = Kinds::new(registry);
        let (heavy, unique) = (write::weight::turns(), Arc::default());
        let inner = Arc::new(Inner { store, kinds, clock, heavy, unique });
        Self { inner, admission: None }
    }

    /// Prepares the store; call once at start, before serving. Creates missing permanent objects
    /// such as namespace `default`, repairs stored objects of Kubernetes' own kinds, writes the
    /// CustomResourceDefinitions of compiled-in kinds, and loads all kinds.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read or written.
    pub async fn ensure_permanent(&self) -> Result<(), StatusError> {
        for definition in self.registry().resources() {
            for name in &definition.permanent {
                let object = json!({ "metadata": { "name": name } });
                match self.create(&definition.id(), "", object, WriteOptions::default()).await {
                    Err(error) if error.reason != Reason::AlreadyExists => return Err(error),
                    _ => {}
                }
            }
        }
        self.mend_natives().await?;
        self.publish_compiled().await?;
        self.reload_kinds().await
    }

    /// Creates or updates the stored CustomResourceDefinitions of the compiled-in kinds.
    async fn publish_compiled(&self) -> Result<(), StatusError> {
        if self.registry().by_id(crds::RESOURCE).is_none() {
            return Ok(());
        }
        let writes = compiled::manifests().iter().map(|(name, manifest)| async move {
            let spec = match self.get(crds::RESOURCE, "", name).await {
                Ok(stored) => stored["spec"].clone(),
                Err(_) => Value::Null,
            };
            let mut wanted = manifest.clone();
            crd::complete(&mut wanted);
            if spec == wanted["spec"] {
                return Ok(());
            }
            let options = WriteOptions::default();
            let written = if spec.is_null() {
                self.create(crds::RESOURCE, "", wanted, options).await
            } else {
                // The stored spec always becomes the compiled-in spec, whatever the patch contains.
                let patch = Patch::merge(json!({ "spec": wanted["spec"] }))?;
                self.patch(crds::RESOURCE, "", name, patch, options).await
            };
            written.map(drop)
        });
        let written = futures_util::future::join_all(writes).await;
        written.into_iter().collect()
    }

    /// Reads the stored CustomResourceDefinitions into the registry of served kinds.
    async fn reload_kinds(&self) -> Result<(), StatusError> {
        let inner = Arc::clone(&self.inner);
        // Reading and compiling schemas takes long, so it runs on a blocking thread.
        let reloaded = tokio::task::spawn_blocking(move || inner.kinds.reload(&inner.store)).await;
        let reloaded = reloaded
            .map_err(|error| StatusError::internal("read the definitions of kinds", &error))?;
        reloaded.map_err(|error| failed("read the definitions of kinds", &error))
    }

    /// Returns the error that stopped the store; `None` while the store accepts writes.
    pub fn stopped(&self) -> Option<Arc<store::Error>> {
        self.inner.store.stopped()
    }

    /// Returns a snapshot of the kinds that are served now.
    pub fn registry(&self) -> Arc<Registry> {
        self.inner.kinds.current()
    }

    /// Returns the definition of a resource by name, `GROUP/PLURAL` or `GROUP/PLURAL@VERSION`.
    pub(crate) fn definition(
        &self,
        resource: &str,
    ) -> Result<Arc<ResourceDefinition>, StatusError> {
        self.registry().by_id(resource).cloned().ok_or_else(StatusError::no_such_resource)
    }

    /// Returns the newest store revision.
    pub fn revision(&self) -> u64 {
        self.inner.store.revision()
    }

    /// Returns the clock that sets timestamps of objects.
    pub fn clock(&self) -> &dyn Clock {
        self.inner.clock.as_ref()
    }

    /// Returns the object `name` in served form.
    ///
    /// # Errors
    /// 404 if the object does not exist.
    #[allow(clippy::unused_async)] // the remote implementation of the same calls has to wait
    pub async fn get(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, StatusError> {
        let place = self.place(resource, namespace)?;
        let stored = self.inner.store.get(&place.key(name));
        match stored.map_err(|error| failed("read an object", &error))? {
            Some(stored) => object::decode(&place.definition, &stored),
            None => Err(StatusError::not_found(&place.definition, name)),
        }
    }

    /// Returns definition and namespace; 400 if the namespace does not fit the kind's scope.
    fn place(&self, resource: &str, namespace: &str) -> Result<Place, StatusError> {
        let registry = self.registry();
        let definition = registry.by_id(resource).ok_or_else(StatusError::no_such_resource)?;
        if definition.namespaced == namespace.is_empty() {
            let rule = if definition.namespaced { "needs" } else { "has no" };
            return Err(StatusError::bad_request(format!(
                "{} {rule} namespace",
                definition.qualified()
            )));
        }
        Ok(Place {
            definition: definition.clone(),
            namespaces: registry.namespaces().cloned(),
            namespace: namespace.to_owned(),
            admission: self.admission.clone(),
            unique: Some(Arc::clone(&self.inner.unique)),
        })
    }

    /// Returns the same engine with an admission function. The function is called before a created,
    /// replaced or patched object is stored.
    #[must_use]
    pub fn with_admission(&self, admission: Option<Admission>) -> Self {
        Self { inner: Arc::clone(&self.inner), admission }
    }

    /// Runs `f` in a write transaction; a dry run returns its result although nothing was stored.
    async fn commit<T, F>(&self, f: F) -> Result<T, StatusError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Txn<'_>) -> Result<T, Abort<T>> + Send + 'static,
    {
        let definition = self.registry().by_id(crds::RESOURCE).cloned();
        let now = self.inner.clock.now();
        let kinds_change = Arc::new(AtomicBool::new(false));
        let changed = kinds_change.clone();
        let written = self.inner.store.write(move |txn| {
            let done = f(txn)?;
            if let Some(definition) = definition.filter(|_| txn.changes(crds::RESOURCE)) {
                crds::lifecycle::release(txn, &definition, now)?;
                changed.store(true, Ordering::Relaxed);
            }
            Ok(done)
        });
        let written = written.await.map_err(|error| failed("write to the store", &error))?;
        if kinds_change.load(Ordering::Relaxed) {
            // Reloads before the response, so that the client then finds the current kinds.
            self.reload_kinds().await?;
        }
        match written {
            Ok(done) | Err(Abort::DryRun(done)) => Ok(done),
            Err(Abort::Refused(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
