//! Kind TinkerbellRemediation: request of a MachineHealthCheck to repair a machine, created from a
//! TinkerbellRemediationTemplate.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::{Condition, Object};

/// Request to repair the machine that has the name of the request. The MachineHealthCheck deletes
/// the request when the machine is healthy again.
pub type TinkerbellRemediation = Object<TinkerbellRemediationSpec, TinkerbellRemediationStatus>;

/// Steps of the repair.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TinkerbellRemediationSpec {
    /// Maximum number of power cycles before the machine is replaced.
    pub power_cycles: u32,
    /// Time in seconds in which the machine must become healthy after a power cycle.
    pub health_timeout_seconds: u32,
}

impl Default for TinkerbellRemediationSpec {
    fn default() -> Self {
        Self { power_cycles: 1, health_timeout_seconds: 600 }
    }
}

/// Progress of the repair.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TinkerbellRemediationStatus {
    /// Step of the repair: `PowerCycling`, `WaitingForHealth` or `Replacing`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Number of ended power cycles.
    pub power_cycles: u32,
    /// Time at which the last power cycle ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_power_cycle: Option<Timestamp>,
    /// Conditions: `Ready` with the reason of the step, and `Paused`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Other fields, which the box writes unchanged.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}
