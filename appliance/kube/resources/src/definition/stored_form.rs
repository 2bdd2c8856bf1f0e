//! The form in which the objects of a kind are stored, whatever version they are written in.

use std::sync::Arc;

use serde_json::Value;

use super::Merging;
use schema::Schema;

/// The fields of stored objects: those of the version in which objects are stored. Of a compiled-in
/// kind with several versions the schema is a superset of all of them, so that a write in one
/// version loses nothing that another version knows.
#[derive(Clone)]
pub struct StoredForm {
    schema: Arc<Schema>,
    /// Merge rules of its fields; shared by the versions of the kind.
    merging: Arc<Merging>,
    /// Revision of the store since which objects are written in this form. An older object is
    /// brought to it whenever it is read: unknown fields go, new defaults come.
    since: u64,
}

impl StoredForm {
    /// The form that `schema` describes, for objects written after `since`.
    pub fn new(schema: Arc<Schema>, since: u64) -> Self {
        Self { schema, merging: Arc::default(), since }
    }

    /// The same form, of objects written after `since`.
    #[must_use]
    pub fn since(self, since: u64) -> Self {
        Self { since, ..self }
    }

    /// The fields of stored objects.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// True for an object that was written at `revision`, after the schema came.
    pub fn is_current(&self, revision: u64) -> bool {
        revision > self.since
    }

    /// Brings a stored object to this form (apiextensions `schemaCoercingDecoder`).
    pub fn complete(&self, object: &mut Value) {
        self.schema.prune_quietly(object);
        self.schema.default(object);
    }

    pub(crate) fn merge_schema(&self, kind: &str) -> Arc<structured_merge::Schema> {
        self.merging.of(Some(&self.schema), kind)
    }
}
