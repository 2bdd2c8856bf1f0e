//! The resource engine: every rule of reading and writing objects, for any definition.
//!
//! The HTTP façade and the box's own controllers call the same functions, so both live by the same
//! conflict rules. Objects are [`serde_json::Value`]s in served form.

mod create;
mod delete;
mod list;
mod metadata;
mod modify;
pub mod names;
pub mod object;
pub mod patch;
mod watch;

use std::sync::Arc;

use serde_json::{Value, json};
use stdx::Clock;
use store::{Key, Store, Txn};

use crate::definition::{Registry, ResourceDefinition};
use crate::status_error::{Reason, StatusError};

pub use delete::{DeleteOptions, Deleted};
pub use list::{ListOptions, ObjectList, RevisionMatch};
pub use object::MAX_OBJECT_BYTES;
pub use patch::Patch;
pub use watch::{EventKind, ObjectWatch, WatchEvent, WatchOptions};

/// Which part of an object a write may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// Everything but `status`, where that is a subresource.
    #[default]
    Main,
    /// Only `status`.
    Status,
}

/// How a create, update or patch is carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The part that is written.
    pub part: Part,
    /// Everything happens but the storing; the answer is the would-be object.
    pub dry_run: bool,
}

impl WriteOptions {
    /// A write of `/status`.
    pub fn status() -> Self {
        Self { part: Part::Status, dry_run: false }
    }
}

/// The engine; clones share it. Resources are named as in the store: `tinkerbell.org/hardware`,
/// core as `/secrets`; the namespace is empty for kinds of the whole box.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    registry: Registry,
    clock: Arc<dyn Clock>,
}

/// Why a write closure gave nothing to the store.
pub(crate) enum Abort<T> {
    Refused(StatusError),
    DryRun(T),
}

impl<T> From<StatusError> for Abort<T> {
    fn from(error: StatusError) -> Self {
        Self::Refused(error)
    }
}

/// A resource as one call addresses it: its definition and, checked, the namespace.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub definition: Arc<ResourceDefinition>,
    pub namespaces: Option<Arc<ResourceDefinition>>,
    pub namespace: String,
}

impl Place {
    pub(crate) fn key(&self, name: &str) -> Key {
        Key {
            resource: self.definition.id(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }
}

impl Engine {
    /// An engine for the kinds of `registry` over `store`.
    pub fn new(store: Store, registry: Registry, clock: Arc<dyn Clock>) -> Self {
        Self { inner: Arc::new(Inner { store, registry, clock }) }
    }

    /// Creates the objects every definition calls permanent (the namespaces `default` and
    /// `kube-system`) where they are missing. To be called once at start, before serving.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn ensure_permanent(&self) -> Result<(), StatusError> {
        for definition in self.registry().all() {
            for name in &definition.permanent {
                let object = json!({ "metadata": { "name": name } });
                match self.create(&definition.id(), "", object, WriteOptions::default()).await {
                    Err(error) if error.reason != Reason::AlreadyExists => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The kinds that are served.
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.inner.store.revision()
    }

    /// The clock the engine stamps with.
    pub fn clock(&self) -> &dyn Clock {
        self.inner.clock.as_ref()
    }

    /// One object.
    ///
    /// # Errors
    /// 404.
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
            Some(stored) => object::decode(&stored),
            None => Err(StatusError::not_found(&place.definition, name)),
        }
    }

    /// Finds the definition and checks that the namespace fits its scope.
    fn place(&self, resource: &str, namespace: &str) -> Result<Place, StatusError> {
        let registry = &self.inner.registry;
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
        })
    }

    /// Runs `f` in a write transaction; a dry run's result comes back though nothing was stored.
    async fn commit<T, F>(&self, f: F) -> Result<T, StatusError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Txn<'_>) -> Result<T, Abort<T>> + Send + 'static,
    {
        let written = self.inner.store.write(f).await;
        match written.map_err(|error| failed("write to the store", &error))? {
            Ok(done) | Err(Abort::DryRun(done)) => Ok(done),
            Err(Abort::Refused(error)) => Err(error),
        }
    }
}

/// A failure of the store as the client sees it.
pub(crate) fn failed(attempted: &str, error: &store::Error) -> StatusError {
    match error {
        store::Error::Compacted { after, .. } => StatusError::expired(*after),
        store::Error::Lagged { at, .. } => StatusError::expired(*at),
        store::Error::Future { after, current } => StatusError::from_the_future(*after, *current),
        other => StatusError::internal(attempted, other),
    }
}

#[cfg(test)]
mod tests;
