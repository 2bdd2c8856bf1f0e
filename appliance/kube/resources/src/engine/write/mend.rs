//! Repair, at start, of stored objects that an earlier release accepted but typed Go clients cannot
//! read. One such object makes a whole list unreadable.

use std::sync::Arc;

use store::Key;

use crate::definition::ResourceDefinition;
use crate::engine::native;
use crate::engine::{Abort, Engine};
use crate::object;
use crate::status_error::{StatusError, failed};

/// Maximum number of objects that are repaired in one transaction.
const BATCH: usize = 500;

impl Engine {
    /// Repairs the stored objects of Kubernetes' own kinds. Call once at start.
    pub(in crate::engine) async fn mend_natives(&self) -> Result<(), StatusError> {
        let registry = self.registry();
        for definition in registry.resources().iter().filter(|one| one.native) {
            let schema = definition.schema.as_ref();
            if !schema.is_some_and(|schema| native::has_forms(schema.root(), "")) {
                continue;
            }
            let listed = self.inner.store.list(&definition.id(), None);
            let (_, stored) = listed.map_err(|error| failed("read stored objects", &error))?;
            let misfit = stored.into_iter().filter_map(|(key, stored)| {
                let mut read = object::decode(definition, &stored).ok()?;
                native::mend(definition, &mut read).then_some(key)
            });
            let keys: Vec<Key> = misfit.collect();
            for keys in keys.chunks(BATCH) {
                self.mend(definition, keys.to_vec()).await?;
            }
        }
        Ok(())
    }

    async fn mend(
        &self,
        definition: &Arc<ResourceDefinition>,
        keys: Vec<Key>,
    ) -> Result<(), StatusError> {
        let definition = definition.clone();
        let (count, kind) = (keys.len(), definition.qualified());
        let written = self.commit(move |txn| {
            for key in keys {
                let stored = txn.get(&key).map_err(|error| failed("read an object", &error))?;
                let Some(stored) = stored else { continue };
                let mut mended = object::decode(&definition, &stored)?;
                if native::mend(&definition, &mut mended) {
                    let value = object::encode_own(&definition, &mended)?;
                    txn.put(key, value);
                }
            }
            Ok::<(), Abort<()>>(())
        });
        written.await?;
        tracing::warn!(kind, count, "repaired times and numbers that clients cannot read");
        Ok(())
    }
}
