//! State of the box's own system: `/apis/box.tinbox.dev/v1alpha1/update`.

use serde::{Deserialize, Serialize};

use crate::view::{Slot, Text, Update};

/// Request about an update that needs no bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateRequest {
    /// Starts the system in the other slot.
    RollBack,
    /// Restarts into an installed update, at any hour.
    Restart,
}

impl UpdateRequest {
    /// Returns the request with this word, as in the path of the API.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "rollback" => Some(Self::RollBack),
            "restart" => Some(Self::Restart),
            _ => None,
        }
    }
}

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
