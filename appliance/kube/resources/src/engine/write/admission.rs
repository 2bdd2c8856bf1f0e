//! Admission function: final check of an object, inside the transaction that stores it, because a
//! client's permission can depend on the final content.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::definition::ResourceDefinition;
use crate::status_error::StatusError;

type AdmissionFn =
    dyn Fn(&ResourceDefinition, &Value, Option<&Value>) -> Result<(), StatusError> + Send + Sync;

/// Function that decides if the new state of an object may be stored; it also gets the old state,
/// `None` on a create. The function must not block, because all other writes wait.
#[derive(Clone)]
pub struct Admission(Arc<AdmissionFn>);

impl Admission {
    /// Makes an admission from the function `look`.
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
