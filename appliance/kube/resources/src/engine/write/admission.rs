//! A last look at an object before it is stored, inside the transaction that stores it: what the
//! caller may write can depend on what the object says then.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::definition::ResourceDefinition;
use crate::status_error::StatusError;

type Look =
    dyn Fn(&ResourceDefinition, &Value, Option<&Value>) -> Result<(), StatusError> + Send + Sync;

/// Says whether the new state of an object (over the old one, on an update) may be stored. Must not
/// wait for anything: it holds up every other write.
#[derive(Clone)]
pub struct Admission(Arc<Look>);

impl Admission {
    /// An admission that asks `look`.
    pub fn new(
        look: impl Fn(&ResourceDefinition, &Value, Option<&Value>) -> Result<(), StatusError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(look))
    }

    pub(in crate::engine) fn check(
        &self,
        definition: &ResourceDefinition,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), StatusError> {
        (self.0)(definition, new, old)
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Admission")
    }
}
