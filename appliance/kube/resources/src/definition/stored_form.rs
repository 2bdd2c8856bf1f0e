//! The form in which the objects of a kind are stored, independent of the version in which they are
//! written.

use std::sync::Arc;

use serde_json::Value;

use super::Merging;
use schema::Schema;

/// The fields of stored objects, which are the fields of the storage version. For a compiled-in
/// kind with several versions, the schema is a superset of all versions. A write in one version
/// therefore loses no field of another version.
#[derive(Clone)]
pub struct StoredForm {
    schema: Arc<Schema>,
    /// Merge rules of the fields; shared by the versions of the kind.
    merging: Arc<Merging>,
    /// Store revision since which objects are written in this form. An older object is converted on
    /// every read: unknown fields are dropped, new defaults are added.
    since: u64,
}

impl StoredForm {
    /// Makes the form that `schema` describes, for objects written after `since`.
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

    /// Returns true for an object that was written at `revision`, after the schema took effect.
    pub fn is_current(&self, revision: u64) -> bool {
        revision > self.since
    }

    /// Converts a stored object to this form (apiextensions `schemaCoercingDecoder`).
    pub fn complete(&self, object: &mut Value) {
        self.schema.prune_quietly(object);
        self.schema.default(object);
    }

    pub(crate) fn merge_schema(&self, kind: &str) -> Arc<structured_merge::Schema> {
        self.merging.of(Some(&self.schema), kind)
    }
}
