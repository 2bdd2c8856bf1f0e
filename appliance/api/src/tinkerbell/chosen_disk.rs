//! Disk that a hint chose, as a Workflow records it.

use serde::{Deserialize, Serialize};

use super::workflow::is_zero;

/// Disk that a hint chose on the machine of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChosenDisk {
    /// ID of the agent.
    #[serde(rename = "agentID")]
    pub agent_id: String,
    /// Hint, such as `minSizeGigabytes=200,model=Samsung`.
    pub hint: String,
    /// World Wide Name; empty if the disk has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wwn: String,
    /// Serial number; empty if the disk has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial: String,
    /// Model name of the disk.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Size in bytes; 0 if unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub size: i64,
}
