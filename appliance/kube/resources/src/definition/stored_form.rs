//! Stored form of a kind's objects, which is the same for all versions in which clients write.

use std::sync::Arc;

use serde_json::Value;

use super::Merging;
use schema::Schema;

/// Schema of stored objects: that of the storage version. A compiled-in kind with several versions
/// has the fields of all versions, so that a write in one version loses no field of another.
#[derive(Clone)]
pub struct StoredForm {
    schema: Arc<Schema>,
    /// Merge rules of the stored fields, shared by the versions of the kind.
    merging: Arc<Merging>,
    /// Store revision of the last change of the schema. An object written earlier is converted on
    /// every read: unknown fields are dropped, new defaults are added.
    since: u64,
}

impl StoredForm {
    /// Makes the form that `schema` describes, which objects written after `since` have.
    pub fn new(schema: Arc<Schema>, since: u64) -> Self {
        Self { schema, merging: Arc::default(), since }
    }

    /// Returns the same form with another `since`.
    #[must_use]
    pub fn since(self, since: u64) -> Self {
        Self { since, ..self }
    }

    /// Returns the schema of stored objects.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns true if an object written at `revision` has this form.
    pub fn is_current(&self, revision: u64) -> bool {
        revision > self.since
    }

    /// Converts an older stored object to this form (apiextensions `schemaCoercingDecoder`).
    pub fn complete(&self, object: &mut Value) {
        self.schema.prune_quietly(object);
        self.schema.default(object);
    }

    pub(crate) fn merge_schema(&self, kind: &str) -> Arc<structured_merge::Schema> {
        self.merging.of(Some(&self.schema), kind)
    }
}
