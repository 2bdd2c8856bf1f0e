//! State of the box's own system: `/apis/box.tinbox.dev/v1alpha1/update`.

use serde::{Deserialize, Serialize};

use crate::view::{Slot, Text, Update};

/// Response to a GET of `/apis/box.tinbox.dev/v1alpha1/update`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateReport {
    /// Release that is running.
    pub version: Text,
    /// System slots, A before B.
    pub slots: Vec<Slot>,
    /// Update in progress, or the last one; `None` if there was no update.
    pub update: Option<Update>,
}
