//! Final check of an object before it is stored, inside the transaction: a client's permission can
//! depend on the final content of the object.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::definition::ResourceDefinition;
use crate::status_error::StatusError;

type AdmissionFn =
    dyn Fn(&ResourceDefinition, &Value, Option<&Value>) -> Result<(), StatusError> + Send + Sync;

/// Decides if the new state of an object (over the old state, on an update) may be stored. The
/// function must not block, because all other writes wait for it.
#[derive(Clone)]
pub struct Admission(Arc<AdmissionFn>);

impl Admission {
    /// Makes an admission that calls `look`.
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
