//! Values that no two objects of a kind may have.

use std::sync::Arc;

use serde_json::Value;

/// A value of an object that no other object of its kind may have, in any namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UniqueValue {
    /// Name of the value's sort, such as `MAC address`.
    pub what: &'static str,
    /// The value in its canonical spelling.
    pub value: String,
    /// The field that has it.
    pub field: String,
}

/// Returns such values of an object.
pub type UniqueValues = Arc<dyn Fn(&Value) -> Vec<UniqueValue> + Send + Sync>;
