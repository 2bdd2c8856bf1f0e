//! Values that no two objects of a kind may share.

use std::sync::Arc;

use serde_json::Value;

/// Value that no other object of the same kind may have, in any namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UniqueValue {
    /// Category within which values must differ, such as `MAC address`; shown in messages.
    pub what: &'static str,
    /// Value in canonical form, so that equal values are equal texts.
    pub value: String,
    /// Path of the field that contains the value, for messages.
    pub field: String,
}

/// Function that returns the unique values of an object.
pub type UniqueValues = Arc<dyn Fn(&Value) -> Vec<UniqueValue> + Send + Sync>;
