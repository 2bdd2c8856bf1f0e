//! Values that no two objects of a kind may share.

use std::sync::Arc;

use serde_json::Value;

/// A value of an object that no other object of its kind may have, in any namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UniqueValue {
    /// Name of the value's category, such as `MAC address`.
    pub what: &'static str,
    /// The value in canonical form.
    pub value: String,
    /// Path of the field with the value.
    pub field: String,
}

/// Function that returns the unique values of an object.
pub type UniqueValues = Arc<dyn Fn(&Value) -> Vec<UniqueValue> + Send + Sync>;
