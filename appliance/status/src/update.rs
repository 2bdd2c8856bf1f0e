//! State of the box's own system: `/apis/box.tinbox.dev/v1alpha1/update`.

use serde::{Deserialize, Serialize};

use crate::view::{Slot, Text, Update};

/// The answer to a GET.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateReport {
    /// The release that runs.
    pub version: Text,
    /// Both slots, A first.
    pub slots: Vec<Slot>,
    /// The update that is made, or the last one that was; `None` when there was none.
    pub update: Option<Update>,
}
