//! The disk that a hint chose, as a Workflow records it.

use serde::{Deserialize, Serialize};

use super::workflow::is_zero;

/// The disk that a hint chose on the machine of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChosenDisk {
    /// The agent.
    #[serde(rename = "agentID")]
    pub agent_id: String,
    /// The hint, such as `minSizeGigabytes=200,model=Samsung`.
    pub hint: String,
    /// World wide name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wwn: String,
    /// Serial number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial: String,
    /// Model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub size: i64,
}
